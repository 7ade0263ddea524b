//! Tests of clients of an ensemble that has lost its majority.

use std::time::{Duration, Instant};

use fencelock::{Client, Code, Error};

const TTL: Duration = Duration::from_secs(2);
/// The time that a loaded machine may add to the end of a lease.
const SLACK: Duration = Duration::from_secs(1);
/// How long the members may take to agree again.
const PATIENCE: Duration = Duration::from_secs(30);

async fn connect(url: &str) -> Result<Client, Error> {
    let client = Client::builder()
        .option("ttl", TTL.as_millis() as u64)
        .option("timeout", "500ms")
        .option("connect_timeout", "2s");
    client.connect(url).await
}

/// Nothing is granted while most members are gone: whoever asks is told so, a hold ends on its own clock, also if its client comes later.
/// When they are back, the same clients go on, and tokens rise.
pub async fn is_needed<S>(
    set: &mut S,
    url: &str,
    lose: impl FnOnce(&mut S),
    back: impl FnOnce(&mut S),
) {
    let client = connect(url).await.expect("the members are there");
    let guard = client.lock("held").acquire().await.expect("nobody has it");
    tokio::task::block_in_place(|| lose(set));
    let lost = Instant::now();
    let asked = client.lock("other").try_acquire().await;
    is_unavailable(&asked.expect_err("nobody can grant it"));
    let waited = client.lock("other").acquire_within(SLACK).await;
    assert!(
        matches!(waited, Err(error) if matches!(error.code(), Code::Unavailable | Code::Timeout))
    );
    while guard.is_held() {
        assert!(lost.elapsed() < TTL + SLACK, "a hold ends on its own clock");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    match connect(url).await {
        Err(error) => is_unavailable(&error),
        Ok(late) => {
            let asked = late.lock("other").try_acquire().await;
            is_unavailable(&asked.expect_err("nobody can grant it"));
        }
    }
    tokio::task::block_in_place(|| back(set));
    let began = Instant::now();
    for name in ["held", "other"] {
        let next = loop {
            match client.lock(name).acquire_within(TTL * 2).await {
                Ok(next) => break next,
                Err(error) if began.elapsed() < PATIENCE => {
                    assert!(matches!(error.code(), Code::Unavailable | Code::Timeout), "{error}");
                }
                Err(error) => panic!("the members are back: {error}"),
            }
        };
        assert!(next.token() > guard.token() || name == "other");
        next.release().await.check().expect("the members are back");
    }
}

/// It says that it may be asked again, and which servers were asked.
fn is_unavailable(error: &Error) {
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(error.retryable(), "{error}");
    assert!(format!("{error} {:?}", error.fields()).contains("127.0.0.1"), "{error}");
}
