//! Rows of names that nobody uses any more, on a real PostgreSQL server: which go, and which stay.

use std::time::{Duration, Instant};

use fencelock::Client;
use fencelock_tests::postgres::PostgresServer;
use tokio_postgres::NoTls;

const PATIENCE: Duration = Duration::from_secs(30);

/// Uses so many names that were not used before.
async fn use_names(client: &Client, prefix: &str, count: usize) {
    for number in 0..count {
        let guard = client.lock(&format!("{prefix}{number}")).acquire().await.unwrap();
        guard.release().await.check().unwrap();
    }
}

/// Rows that nobody has used for a week go as others come; those that are in use, are locked or are younger stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_unused_names_go() {
    let server = PostgresServer::start();
    let client = fencelock::connect(&server.place("a")).await.unwrap();
    let known = client.lock("known").acquire().await.unwrap();
    let token = known.token();
    known.release().await.check().unwrap();
    let week =
        "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint - 7 * 86400 * 1000000::bigint";
    server.sql(&format!(
        "SET search_path = a; INSERT INTO fencelock (name, counter_until, last_token)
             SELECT 'old' || n, {week} - 1000000, 5 FROM generate_series(1, 300) AS n;
         INSERT INTO fencelock (name, counter_until) VALUES ('young', {week} + 600000000), ('locked', 5);
         INSERT INTO fencelock (name, owner, expires_at) VALUES ('held', repeat('a', 32), to_timestamp(0));
         INSERT INTO fencelock (name, rest) VALUES ('waited', '{{}}');
         UPDATE fencelock SET counter_until = 5, last_token = 5 WHERE name = 'known'"
    ));
    let (stranger, connection) = tokio_postgres::connect(&server.url("a"), NoTls).await.unwrap();
    tokio::spawn(connection);
    let lock = "BEGIN; SELECT FROM fencelock WHERE name = 'locked' FOR UPDATE";
    stranger.batch_execute(lock).await.unwrap();
    let left =
        "SELECT string_agg(name, ' ' ORDER BY name) FROM a.fencelock WHERE name NOT LIKE 'new%'";
    let began = Instant::now();
    let mut round = 0;
    while server.sql(left) != "held locked waited young" {
        assert!(began.elapsed() < PATIENCE, "{}", server.sql(left));
        use_names(&client, &format!("new{round}:"), 64).await;
        round += 1;
    }
    // Each 16 rows look at 64 others: it is a matter of a few rounds over all of them.
    assert!(round <= 16, "{round} rounds");
    stranger.batch_execute("COMMIT").await.unwrap();
    // The client knows of the row that is gone, and gets a greater token all the same.
    let again = client.lock("known").acquire().await.unwrap();
    assert!(again.token() > token);
    again.release().await.check().unwrap();
    let ended = client.lock("held").try_acquire().await.unwrap();
    assert!(ended.is_some(), "the lease has ended");
}

/// A user who may not delete rows has the same locks, and all rows stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_right_rows_stay() {
    let server = PostgresServer::start();
    server.sql(&fencelock::driver::postgres::schema("fencelock").unwrap());
    server.sql(
        "CREATE ROLE locks LOGIN; GRANT SELECT, INSERT, UPDATE ON fencelock TO locks;
         INSERT INTO fencelock (name) SELECT 'old' || n FROM generate_series(1, 10) AS n",
    );
    let client = fencelock::connect(&server.url("locks")).await.unwrap();
    use_names(&client, "new", 100).await;
    assert_eq!(server.sql("SELECT count(*) FROM fencelock"), "110");
}

/// B85: however many runs of a job there are, the server has no more sessions after them, and no transaction stays open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b85_runs_leave_no_session() {
    let server = PostgresServer::start();
    let client = fencelock::connect(&server.place("a")).await.unwrap();
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'a'";
    let job = client.job("nightly", Duration::from_millis(10));
    let mut ran = 0;
    while ran < if fencelock_tests::in_full() { 10_000 } else { 300 } {
        let Ok(run) = job.start().await.unwrap() else { continue };
        run.succeed().await.check().unwrap();
        ran += 1;
    }
    let count: u32 = server.sql(sessions).parse().unwrap();
    assert!(count <= 5, "{count} sessions");
    let open =
        "SELECT count(*) FROM pg_stat_activity WHERE usename = 'a' AND state LIKE 'idle in%'";
    let began = Instant::now();
    while server.sql(open) != "0" {
        assert!(began.elapsed() < PATIENCE, "no transaction stays open");
    }
    drop((job, client));
    while server.sql(sessions) != "0" {
        assert!(began.elapsed() < PATIENCE, "no connection stays open");
    }
}
