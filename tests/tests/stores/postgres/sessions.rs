//! Locks that live with a session, on a real PostgreSQL server, in both ways where both can: what is refused, poolers, rows that go.

use std::time::{Duration, Instant};

use fencelock::{Code, Token};
use fencelock_tests::database::connect;
use fencelock_tests::database_sessions::{DatabaseSessions, Way, sessions};
use fencelock_tests::in_both_ways;
use fencelock_tests::postgres::{Pooler, PostgresServer, PostgresSessions};
use fencelock_tests::session_store::{PATIENCE, code, waiting};
use tokio_postgres::{NoTls, SimpleQueryMessage};

in_both_ways! {
    PostgresSessions, sessions:
    a_lock_excludes_and_its_tokens_rise,
    waiters_are_served,
    what_is_given_up_leaves_nothing,
    b88_a_wait_that_ends_at_the_grant_leaves_no_lock,
    b89_heartbeats_end_no_lock,
    waits_are_limited_and_give_their_connections_back,
    a_break_names_the_servers_statement,
}

/// U10: those who wait keep nobody's VACUUM from removing rows and no index from being built.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u10_waiters_pin_no_snapshot() {
    for way in Way::ALL {
        let server = PostgresSessions::start_with_rights(way);
        let holder = server.client("").await;
        let guard = holder.lock("x").acquire().await.unwrap();
        let mut waits = Vec::new();
        for number in 1..=10 {
            let client = server.client("").await;
            waits.push(tokio::spawn(async move { client.lock("x").acquire().await.map(drop) }));
            server.comes_to(&format!("1|{number}")).await;
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
        let sql = |statements: &str| tokio::task::block_in_place(|| server.server.sql(statements));
        let old = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND now() - xact_start > interval '2 s'";
        assert_eq!(sql(old), "0", "{way:?}");
        if way == Way::Names {
            // A holder by row has a transaction open, for which both wait anyway.
            an_index_is_built_and_rows_are_removed(&sql);
        }
        guard.release().await.check().unwrap();
        for wait in waits {
            tokio::time::timeout(PATIENCE, wait).await.expect("it is served").unwrap().unwrap();
        }
    }
}

/// The same of the table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u10_waiters_of_the_table_pin_no_snapshot() {
    let server = PostgresServer::start();
    let url = server.place("a");
    let holder = connect(&url).await;
    let guard = holder.lock("x").acquire().await.unwrap();
    let mut waits = Vec::new();
    for _ in 0..10 {
        let client = connect(&url).await;
        waits.push(tokio::spawn(async move { client.lock("x").acquire().await.map(drop) }));
    }
    waiting(&holder, "x", 10).await;
    tokio::task::block_in_place(|| {
        an_index_is_built_and_rows_are_removed(&|statements| server.sql(statements));
    });
    guard.release().await.check().unwrap();
    for wait in waits {
        tokio::time::timeout(PATIENCE, wait).await.expect("it is served").unwrap().unwrap();
    }
}

/// Within two seconds each. A waiter of a session begins a new statement each second, before which a vacuum may leave rows.
fn an_index_is_built_and_rows_are_removed(sql: &impl Fn(&str) -> String) {
    let began = Instant::now();
    sql("CREATE TABLE big AS SELECT generate_series(1, 1000) AS n");
    sql("CREATE INDEX CONCURRENTLY big_n ON big (n)");
    let (built, began) = (began.elapsed(), Instant::now());
    sql("DELETE FROM big");
    sql("VACUUM big");
    while sql("SELECT pg_relation_size('big')") != "0" {
        assert!(began.elapsed() < PATIENCE, "rows are left");
        sql("VACUUM big");
    }
    let swept = began.elapsed();
    println!("an index took {built:?}, a deletion with its vacuum {swept:?}");
    assert!(built.max(swept) < Duration::from_secs(2), "{built:?}, {swept:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_share_and_writers_do_not() {
    let server = PostgresSessions::start_with_rights(Way::Names);
    let (one, two) = (server.client("").await, server.client("").await);
    let first = one.read_lock("x").acquire().await.unwrap();
    let second = one.read_lock("x").acquire().await.unwrap();
    let third = two.read_lock("x").acquire().await.unwrap();
    assert!(two.write_lock("x").try_acquire().await.unwrap().is_none());
    assert!(one.write_lock("x").try_acquire().await.unwrap().is_none());
    let writes = tokio::spawn(one.write_lock("x").acquire_within(PATIENCE));
    server.comes_to("3|1").await;
    // No new reader goes past a writer, not even one of a client that reads already.
    assert!(one.read_lock("x").try_acquire().await.unwrap().is_none());
    assert!(two.read_lock("x").try_acquire().await.unwrap().is_none());
    for guard in [first, second, third] {
        guard.release().await.check().unwrap();
    }
    let writer = writes.await.unwrap().unwrap();
    assert!(one.read_lock("x").try_acquire().await.unwrap().is_none());
    writer.release().await.check().unwrap();
    server.comes_to("0|0").await;
}

/// A request for what the server cannot do is refused with the reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_session_cannot_do_is_unsupported() {
    let server = PostgresSessions::start_with_rights(Way::Names);
    let client = server.client("?ttl=5s").await;
    let unsupported = Some(Code::Unsupported);
    assert_eq!(code(client.semaphore("x", 2).acquire().await), unsupported);
    assert_eq!(code(client.names("").await), unsupported);
    assert_eq!(code(client.version("x").read::<u64>().await), unsupported);
    assert_eq!(
        code(client.lock("x").ttl(Duration::from_secs(6)).acquire().await),
        Some(Code::Invalid)
    );
    assert_eq!(server.locks(), "0|0");
    let poor = server.at(server.server.port(), "").replace("locks@", "poor@");
    server.server.sql("CREATE ROLE poor LOGIN");
    assert_eq!(code(fencelock::connect(&poor).await), Some(Code::Auth));
    server.server.sql("DROP SEQUENCE fencelock_token");
    let url = server.at(server.server.port(), "");
    assert_eq!(code(fencelock::connect(&url).await), unsupported);
}

/// The same of rows: they have no readers. Their names are known.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_row_cannot_do_is_unsupported() {
    let server = PostgresSessions::start_with_rights(Way::Rows);
    let client = server.client("?ttl=5s").await;
    let unsupported = Some(Code::Unsupported);
    assert_eq!(code(client.read_lock("x").acquire().await), unsupported);
    assert_eq!(code(client.write_lock("x").acquire().await), unsupported);
    assert_eq!(code(client.semaphore("x", 2).acquire().await), unsupported);
    assert_eq!(code(client.version("x").read::<u64>().await), unsupported);
    let [a, b] = [client.lock("a/b").acquire().await, client.lock("a/c").acquire().await];
    client.lock("a").acquire().await.unwrap().release().await.check().unwrap();
    assert_eq!(client.names("").await.unwrap(), ["a/b", "a/c"]);
    assert_eq!(client.names("a/b").await.unwrap(), ["a/b"]);
    drop((a, b));
    server.comes_to("0|0").await;
    assert_eq!(client.names("").await.unwrap(), [] as [&str; 0]);
    server.server.sql("REVOKE INSERT ON fencelock_row FROM locks");
    assert_eq!(code(client.lock("new").acquire().await), Some(Code::Auth));
    client.lock("a").acquire().await.unwrap().release().await.check().unwrap();
    server.server.sql("REVOKE UPDATE ON fencelock_row FROM locks");
    let error = client.lock("a").acquire().await.unwrap_err();
    assert!(error.code() == Code::Auth && error.message().contains("fencelock_row"), "{error}");
    server.comes_to("0|0").await;
    server.server.sql("DROP TABLE fencelock_row");
    let url = server.at(server.server.port(), "");
    assert_eq!(code(fencelock::connect(&url).await), unsupported);
    let owner = url.replace("locks@", "postgres@");
    let made = fencelock::connect(&format!("{owner}?create=true")).await.unwrap();
    made.lock("a").acquire().await.unwrap().release().await.check().unwrap();
}

/// Rows of names that were made long ago go, but for those that are locked. A waiter whose row was deleted makes it anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_are_old_go_and_come_back() {
    let server = PostgresSessions::start_with_rights(Way::Rows);
    let (one, two) = (server.client("").await, server.client("").await);
    let held = one.lock("held").acquire().await.unwrap();
    let waits = tokio::spawn(two.lock("held").acquire_within(PATIENCE));
    server.comes_to("1|1").await;
    server
        .server
        .sql("INSERT INTO fencelock_row SELECT 'old' || n FROM generate_series(1, 60) AS n");
    server
        .server
        .sql("UPDATE fencelock_row SET made = made - interval '8 days' WHERE name <> 'held'");
    for number in 0..40 {
        let name = format!("new{number}");
        one.lock(&name).acquire().await.unwrap().release().await.check().unwrap();
    }
    let old = "SELECT count(*) FROM fencelock_row WHERE name LIKE 'old%'";
    assert_eq!(server.server.sql(old), "0");
    assert_eq!(server.locks(), "1|1");
    held.release().await.check().unwrap();
    waits.await.unwrap().unwrap().release().await.check().unwrap();
    // Somebody deletes the row while it is waited for.
    let url = server.server.url("postgres");
    let (mut user, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let deletes = user.transaction().await.unwrap();
    deletes.execute("DELETE FROM fencelock_row WHERE name = 'held'", &[]).await.unwrap();
    let waits = tokio::spawn(two.lock("held").acquire_within(PATIENCE));
    server.comes_to("1|1").await;
    deletes.commit().await.unwrap();
    let guard = waits.await.unwrap().unwrap();
    assert!(one.lock("held").try_acquire().await.unwrap().is_none());
    guard.release().await.check().unwrap();
    server.comes_to("0|0").await;
}

/// A lock within a user's transaction excludes a session, and the other way round; their tokens are of one order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_users_transaction_takes_the_same_lock() {
    let server = PostgresSessions::start_with_rights(Way::Names);
    let client = server.client("").await;
    let url = server.server.url("locks");
    let (mut user, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let mut last = Token::default();
    for _ in 0..3 {
        let guard = client.lock("ö").acquire().await.unwrap();
        assert!(guard.token() > last);
        let transaction = user.transaction().await.unwrap();
        let token = guard.token();
        last = {
            let lock = "SELECT pg_advisory_xact_lock(fencelock_key('ö'))";
            let mut asked = std::pin::pin!(transaction.batch_execute(lock));
            let early = tokio::time::timeout(Duration::from_millis(100), &mut asked).await;
            assert!(early.is_err(), "it waits");
            guard.release().await.check().unwrap();
            asked.await.unwrap();
            let drawn = transaction.query_one("SELECT nextval('fencelock_token')", &[]).await;
            Token::new(drawn.unwrap().get::<_, i64>(0).unsigned_abs())
        };
        assert!(last > token);
        assert!(client.lock("ö").try_acquire().await.unwrap().is_none());
        transaction.commit().await.unwrap();
    }
    let guard = client.lock("ö").try_acquire().await.unwrap().expect("it is free");
    guard.release().await.check().unwrap();
}

/// B91: a pooler that does not keep sessions is found and refused, one that does is used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b91_a_pooler_has_to_keep_sessions() {
    for way in Way::ALL {
        a_pooler_has_to_keep_sessions(way).await;
    }
}

async fn a_pooler_has_to_keep_sessions(way: Way) {
    let server = PostgresSessions::start_with_rights(way);
    for mode in ["transaction", "statement"] {
        let pooler = Pooler::before(server.server.port(), &["locks"], mode);
        for _ in 0..3 {
            let error = fencelock::connect(&server.at(pooler.port(), "")).await.err();
            let error = error.unwrap_or_else(|| panic!("{mode} is refused"));
            if mode == "transaction" {
                assert_eq!(error.code(), Code::Unsupported, "{error}");
            }
        }
        if mode == "transaction" {
            let table = PostgresServer::url_at(pooler.port(), "locks");
            // Others go on with these sessions.
            let connected = tokio_postgres::connect(&table, NoTls).await;
            let (other, connection) = connected.expect("the pooler takes connections");
            tokio::spawn(connection);
            for setting in ["lock_timeout", "idle_session_timeout", "statement_timeout"] {
                let left = other.simple_query(&format!("SHOW {setting}")).await.unwrap();
                let left = left.iter().find_map(|answer| match answer {
                    SimpleQueryMessage::Row(row) => row.get(0),
                    _ => None,
                });
                assert_eq!(left, Some("0"), "what was refused has set `{setting}`");
            }
        }
        drop(pooler);
        server.comes_to("0|0").await;
    }
    let pooler = Pooler::before(server.server.port(), &["locks"], "session");
    let one = fencelock::connect(&server.at(pooler.port(), "")).await.unwrap();
    let two = server.client("").await;
    let guard = one.lock("x").acquire().await.unwrap();
    let waits = tokio::spawn(two.lock("x").acquire_within(PATIENCE));
    server.comes_to("1|1").await;
    guard.release().await.check().unwrap();
    let guard = waits.await.unwrap().unwrap();
    let waits = tokio::spawn(one.lock("x").acquire());
    server.comes_to("1|1").await;
    // A wait behind a pooler is interrupted too.
    waits.abort();
    server.comes_to("1|0").await;
    guard.release().await.check().unwrap();
}
