//! Versions and jobs on a real etcd.
#![allow(missing_docs)]

use std::time::{Duration, Instant};

use fencelock::{Client, Code, JobState, Released, Status, Swapped, Why};
use fencelock_tests::etcd::EtcdServer;
use futures_util::future::join_all;

const HOUR: Duration = Duration::from_hours(1);
const PATIENCE: Duration = Duration::from_secs(20);

async fn client(server: &EtcdServer) -> Client {
    let url = format!("{}?ttl=2s", server.url("app"));
    fencelock::connect(&url).await.expect("it connects")
}

fn leases(server: &EtcdServer) -> usize {
    server.ctl(&["lease", "list"]).lines().count() - 1
}

#[tokio::test]
async fn updates_of_everybody_are_all_counted() {
    let server = EtcdServer::start();
    let all = join_all((0..4).map(|_| client(&server))).await;
    let count = async |client: &Client| {
        for _ in 0..25 {
            let number = client.version("stock").retries(1000);
            number.update(|old: Option<u64>| Some(old.unwrap_or(0) + 1)).await.unwrap();
        }
    };
    join_all(all.iter().map(count)).await;
    let seen = all[0].version("stock").read::<u64>().await.unwrap().expect("it was written");
    assert_eq!(seen.value, 100);
    // What was deleted comes back with a higher version.
    let Swapped::Done(deleted) = all[1].version("stock").delete::<u64>(seen.version).await.unwrap()
    else {
        panic!("nobody changes it")
    };
    assert!(deleted > seen.version);
    assert!(all[0].version("stock").read::<u64>().await.unwrap().is_none());
    all[0].version("stock").update(|old: Option<u64>| old.xor(Some(1))).await.unwrap();
    let again = all[2].version("stock").read::<u64>().await.unwrap().expect("it was written");
    assert!(again.version > deleted);
}

#[tokio::test]
async fn what_has_an_end_is_removed_by_few_leases() {
    let server = EtcdServer::start();
    let client = client(&server).await;
    let before = leases(&server);
    for number in 0..50 {
        let value = client.version(&format!("v{number}")).keep(HOUR);
        value.update(|_: Option<u64>| Some(number)).await.unwrap();
    }
    assert_eq!(leases(&server) - before, 1);
}

#[tokio::test]
async fn a_lease_that_somebody_revoked_is_replaced() {
    let server = EtcdServer::start();
    let client = client(&server).await;
    let value = client.version("x").keep(HOUR);
    value.update(|_: Option<u64>| Some(1)).await.unwrap();
    let found = server.ctl(&["get", "app/!version!x", "-w", "json"]);
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    let lease = found["kvs"][0]["lease"].as_i64().expect("it has one");
    server.ctl(&["lease", "revoke", &format!("{lease:x}")]);
    assert!(value.read::<u64>().await.unwrap().is_none(), "it went with the lease");
    value.update(|_: Option<u64>| Some(2)).await.unwrap();
    assert_eq!(value.read::<u64>().await.unwrap().expect("it was written").value, 2);
}

#[tokio::test]
async fn what_another_program_wrote_is_a_conflict() {
    let server = EtcdServer::start();
    let client = client(&server).await;
    server.ctl(&["put", "app/!version!theirs", "hello"]);
    let error = client.version("theirs").read::<u64>().await.unwrap_err();
    assert_eq!((error.code(), error.fields()["name"].as_str()), (Code::Conflict, "theirs"));
    let update = client.version("theirs").update(|_: Option<u64>| Some(1)).await.unwrap_err();
    assert_eq!(update.code(), Code::Conflict);
    assert!(server.ctl(&["get", "app/!version!theirs"]).contains("hello"), "it is left as it is");
}

async fn state(client: &Client) -> JobState {
    client.job("nightly", HOUR).inspect().await.unwrap().expect("it was run")
}

#[tokio::test]
async fn a_job_runs_once_and_a_run_whose_session_ended_is_dead() {
    let server = EtcdServer::start();
    let (one, two) = (client(&server).await, client(&server).await);
    let run = one.job("nightly", HOUR).start().await.unwrap().expect("nobody ran it");
    let skipped = two.job("nightly", HOUR).start_or_why().await.unwrap().err();
    assert_eq!(skipped.map(|skipped| skipped.why), Some(Why::Running));
    assert!(!state(&two).await.dead);
    assert!(two.names("").await.unwrap().is_empty(), "the lock of a job is nobody's business");
    // It outlasts its session's length.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(run.is_held());
    assert_eq!(run.succeed().await, Released::Released);
    let skipped = two.job("nightly", HOUR).start_or_why().await.unwrap().err();
    assert_eq!(skipped.map(|skipped| skipped.why), Some(Why::Done));
    assert_eq!(state(&two).await.status, Status::Succeeded);

    let other = one.job("hourly", HOUR).start().await.unwrap().expect("nobody ran it");
    let found = server.ctl(&["get", "app/fencelock:job:hourly/", "--prefix", "-w", "json"]);
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    let lease = found["kvs"][0]["lease"].as_i64().expect("it belongs to a session");
    server.ctl(&["lease", "revoke", &format!("{lease:x}")]);
    tokio::time::timeout(PATIENCE, other.lost()).await.expect("it is told");
    let hourly = two.job("hourly", HOUR);
    assert!(hourly.inspect().await.unwrap().expect("it was run").dead);
    assert!(hourly.start().await.unwrap().is_none(), "it may have done its work");
    let again = hourly.retry_dead(true).start().await.unwrap().expect("asked for");
    assert!(again.token() > other.token());
    assert_eq!(other.succeed().await, Released::AlreadyLost);
    assert_eq!(again.succeed().await, Released::Released);
}

#[tokio::test]
async fn a_start_is_few_requests() {
    let server = EtcdServer::start();
    let client = client(&server).await;
    // The first one opens the session and the lease of the cell.
    let job = |number: u64| {
        client.job("often", Duration::from_millis(10)).at(Duration::from_secs(number))
    };
    job(1).start().await.unwrap().expect("nobody ran it").succeed().await.check().unwrap();
    let began = Instant::now();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let before = server.requests("Txn");
    let run = job(2).start().await.unwrap().expect("nobody ran it");
    let started = server.requests("Txn");
    run.succeed().await.check().unwrap();
    let ended = server.requests("Txn");
    assert_eq!((started - before, ended - started), (4, 3), "after {:?}", began.elapsed());
}
