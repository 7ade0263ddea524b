//! Versions and jobs on a real etcd.

use std::time::{Duration, Instant, UNIX_EPOCH};

use fencelock::{Client, Code};
use fencelock_tests::etcd::EtcdServer;
use fencelock_tests::session_cells;

const HOUR: Duration = Duration::from_hours(1);

async fn client(server: &EtcdServer) -> Client {
    let url = format!("{}?ttl=2s", server.url("app"));
    fencelock::connect(&url).await.expect("it connects")
}

fn leases(server: &EtcdServer) -> usize {
    server.ctl(&["lease", "list"]).lines().count() - 1
}

#[tokio::test]
async fn updates_of_everybody_are_all_counted() {
    session_cells::updates_of_everybody_are_all_counted(&EtcdServer::start(), "app").await;
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

#[tokio::test]
async fn a_job_runs_once_and_a_run_whose_session_ended_is_dead() {
    let server = EtcdServer::start();
    let revoke = async |job: &str| {
        let found =
            server.ctl(&["get", &format!("app/fencelock:job:{job}/"), "--prefix", "-w", "json"]);
        let found: serde_json::Value = serde_json::from_str(&found).unwrap();
        let lease = found["kvs"][0]["lease"].as_i64().expect("it belongs to a session");
        server.ctl(&["lease", "revoke", &format!("{lease:x}")]);
    };
    let dead = session_cells::a_job_runs_once_and_a_run_whose_session_ended_is_dead;
    dead(&server, "app", revoke).await;
}

#[tokio::test]
async fn a_start_is_few_requests() {
    let server = EtcdServer::start();
    let client = client(&server).await;
    // The first one opens the session and the lease of the cell.
    let job = |number: u64| {
        client.job("often", Duration::from_millis(10)).at(UNIX_EPOCH + Duration::from_secs(number))
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
