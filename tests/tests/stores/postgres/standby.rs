//! A PostgreSQL server and its standby: of several hosts the one is used that takes writes, also when that becomes another one.

use std::time::{Duration, Instant};

use fencelock::{Client, Code};
use fencelock_tests::database::a_silent_host_is_passed_over;
use fencelock_tests::postgres::PostgresServer;

const PATIENCE: Duration = Duration::from_secs(60);

async fn until(mut there: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !there().await {
        assert!(began.elapsed() < PATIENCE, "it comes about");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn try_hold(client: &Client) -> bool {
    match client.lock("y").try_acquire().await {
        Ok(guard) => {
            guard.expect("nobody has it").release().await.check().unwrap();
            true
        }
        Err(error) => {
            assert_eq!(error.code(), Code::Unavailable, "{error}");
            false
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_that_takes_writes_is_used() {
    let mut primary = PostgresServer::start();
    primary.sql(&fencelock::driver::postgres::schema("fencelock").unwrap());
    let standby = primary.standby();
    let at = |scheme: &str, ports: &[u16]| {
        let hosts: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        format!(
            "{scheme}://postgres@{}/postgres?timeout=1s&target_session_attrs=primary",
            hosts.join(",")
        )
    };
    let both = [standby.port(), primary.port()];
    for scheme in ["postgres", "postgres+advisory", "postgres+row"] {
        let refused = fencelock::connect(&at(scheme, &both[..1])).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unavailable, "{refused}");
        assert!(refused.message().contains("read-only"), "{refused}");
    }
    for scheme in ["postgres", "postgres+advisory", "postgres+row"] {
        let primary = primary.port();
        a_silent_host_is_passed_over(&at(scheme, &[primary]), primary).await;
    }
    let table = fencelock::connect(&at("postgres", &both)).await.unwrap();
    let session = fencelock::connect(&at("postgres+advisory", &both)).await.unwrap();
    let kept = table.lock("x").acquire().await.unwrap();
    let ends = session.lock("x").acquire().await.unwrap();
    let copied = "SELECT count(owner) FROM fencelock";
    until(async || standby.sql(copied) == "1").await;

    primary.kill_hard();
    standby.sql("SELECT pg_promote()");
    // The hold in the table was copied and goes on; the session has ended.
    until(async || kept.extend(Duration::from_secs(30)).await.is_ok()).await;
    assert!(kept.is_held());
    tokio::time::timeout(PATIENCE, ends.lost()).await.expect("it is told");
    for client in [&table, &session] {
        until(async || try_hold(client).await).await;
    }
    assert!(table.lock("x").try_acquire().await.unwrap().is_none());
    let token = kept.token();
    kept.release().await.check().unwrap();
    let next = table.lock("x").acquire_within(PATIENCE).await.unwrap();
    assert!(next.token() > token);
    let again = session.lock("x").acquire_within(PATIENCE).await.unwrap();
    assert!(again.token() > ends.token());
}
