//! The results of a body under a lock or a run: its own error wins, and the loss of its lease is attached.
#![allow(missing_docs, clippy::disallowed_methods)] // A user of the core may use clocks as it likes.

use std::time::Duration;

use fencelock::{Code, Reason, Skipped, Status, WithError};

const LEASE: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_hours(1);

/// Work that looks at nothing until the lease of whoever does it is over, and then comes to this.
fn late<T>(ended: Result<T, &'static str>) -> Result<T, &'static str> {
    std::thread::sleep(LEASE);
    ended
}

#[track_caller]
fn failed_in_a_lost<T: std::fmt::Debug>(ended: Result<T, WithError<&str>>) {
    let Err(WithError::Body { error: "mine", lost: Some(lost) }) = ended else {
        panic!("the body's error is hidden: {ended:?}");
    };
    assert_eq!(lost.code(), Code::Lost);
}

#[track_caller]
fn failed<T: std::fmt::Debug>(ended: &Result<T, WithError<&str>>) {
    let Err(WithError::Body { error: "mine", lost: None }) = ended else {
        panic!("the body's error is not told: {ended:?}");
    };
}

#[track_caller]
fn was_lost<T: std::fmt::Debug>(ended: Result<T, WithError<&str>>) {
    let Err(WithError::Lock(lost)) = ended else { panic!("the loss is not told: {ended:?}") };
    assert_eq!(lost.code(), Code::Lost);
}

#[tokio::test]
async fn under_a_lock() {
    let client = fencelock::connect("memory:with-under").await.unwrap();
    let (short, long) = (client.lock("x").ttl(LEASE).renew(false), client.lock("x"));
    failed_in_a_lost(short.with(async |_| late(Err::<(), _>("mine"))).await);
    was_lost(short.with(async |_| late(Ok(1))).await);
    was_lost(short.with(async |_| std::future::pending::<Result<(), &str>>().await).await);
    failed(&long.with(async |_| Err::<(), _>("mine")).await);
    assert_eq!(long.with(async |_| Ok::<_, &str>(1)).await.unwrap(), 1);
}

#[tokio::test]
async fn as_a_run() {
    let client = fencelock::connect("memory:with-run").await.unwrap();
    let short = |name| client.job(name, HOUR).at_most_for(LEASE);
    failed_in_a_lost(short("a").with(async |_| late(Err::<(), _>("mine"))).await);
    was_lost(short("b").with(async |_| late(Ok(1))).await);
    was_lost(short("c").with(async |_| std::future::pending::<Result<(), &str>>().await).await);
    let long = client.job("d", HOUR);
    failed(&long.with(async |_| Err::<(), _>("mine")).await);
    assert_eq!(long.inspect().await.unwrap().unwrap().status, Status::Failed);
    let skipped = long.with(async |_| Ok::<_, &str>(1)).await.unwrap().unwrap_err();
    assert_eq!(skipped.reason, Reason::Done);
}

#[test]
fn of_threads() {
    let client = fencelock::blocking::connect("memory:with-threads").unwrap();
    let (short, long) = (client.lock("x").ttl(LEASE).renew(false), client.lock("x"));
    failed_in_a_lost(short.with(|_| late(Err::<(), _>("mine"))));
    was_lost(short.with(|_| late(Ok(1))));
    failed(&long.with(|_| Err::<(), _>("mine")));
    assert_eq!(long.with(|_| Ok::<_, &str>(1)).unwrap(), 1);
    let short = |name| client.job(name, HOUR).option("at_most_for", "1s");
    failed_in_a_lost(short("a").with(|_| late(Err::<(), _>("mine"))));
    was_lost(short("b").with(|_| late(Ok(1))));
    let long = client.job("d", HOUR);
    failed(&long.with(|_| Err::<(), _>("mine")));
    let ran: Result<u8, Skipped> = long.with(|_| Ok::<_, &str>(1)).unwrap();
    assert_eq!(ran.unwrap_err().reason, Reason::Done);
}

#[tokio::test]
async fn a_loss_is_a_field_where_all_errors_are_fencelocks() {
    let client = fencelock::connect("memory:with-field").await.unwrap();
    let short = client.lock("x").ttl(LEASE).renew(false);
    let body = async |_| {
        std::thread::sleep(LEASE);
        Err::<(), _>(fencelock::Error::new(Code::Conflict, "somebody was faster; look again"))
    };
    let ended = short.with(body).await.unwrap_err();
    assert!(ended.to_string().starts_with("conflict: "), "{ended}");
    assert!(ended.to_string().contains("by then lost: "), "{ended}");
    let error = ended.into_error();
    assert_eq!(error.code(), Code::Conflict);
    assert!(error.fields()["lost"].contains("no longer held"), "{error}");
}
