//! Locks that live with a session, on a real MariaDB server, in both ways where both can: what is refused, whose locks they are, tokens.

use std::time::{Duration, Instant};

use fencelock::driver::mysql::gate_trigger;
use fencelock::{Code, Token};
use fencelock_tests::database::connect;
use fencelock_tests::database_sessions::{DatabaseSessions, Way, sessions};
use fencelock_tests::in_both_ways;
use fencelock_tests::mysql::{MysqlServer, MysqlSessions};
use fencelock_tests::session_store::{PATIENCE, code, waiting};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};

in_both_ways! {
    MysqlSessions, sessions:
    a_lock_excludes_and_its_tokens_rise,
    waiters_are_served,
    what_is_given_up_leaves_nothing,
    b88_a_wait_that_ends_at_the_grant_leaves_no_lock,
    b89_heartbeats_end_no_lock,
    waits_are_limited_and_give_their_connections_back,
    a_break_names_the_servers_statement,
}

/// The name by which the server knows a lock, as the reference says it.
const KEY: &str = "CONCAT('fencelock:', LEFT(SHA2(CONCAT(CAST(DATABASE() AS BINARY), 0x00, CAST(:name AS BINARY)), 256), 48))";

async fn connection(server: &MysqlSessions) -> Conn {
    let url = format!("mysql://owner@127.0.0.1:{}/locks", server.port());
    Conn::new(Opts::from_url(&url).expect("this is a URL")).await.expect("it connects")
}

/// U11: those who wait hold up nobody who wants the whole server read-only, as a backup does, nor an insert behind that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u11_waiters_hold_no_backup_up() {
    for way in Way::ALL {
        let server = MysqlSessions::start_with_rights(way);
        let holder = server.client("").await;
        let guard = holder.lock("x").acquire().await.unwrap();
        let mut waits = Vec::new();
        for number in 1..=10 {
            let client = server.client("").await;
            waits.push(tokio::spawn(async move { client.lock("x").acquire().await.map(drop) }));
            server.comes_to(&format!("1|{number}")).await;
        }
        tokio::task::block_in_place(|| the_server_is_read_only_for_a_while(&server.server));
        guard.release().await.check().unwrap();
        for wait in waits {
            tokio::time::timeout(PATIENCE, wait).await.expect("it is served").unwrap().unwrap();
        }
    }
}

/// The same of the table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u11_waiters_of_the_table_hold_no_backup_up() {
    let server = MysqlServer::start();
    let url = server.place("a");
    let holder = connect(&url).await;
    let guard = holder.lock("x").acquire().await.unwrap();
    let mut waits = Vec::new();
    for _ in 0..10 {
        let client = connect(&url).await;
        waits.push(tokio::spawn(async move { client.lock("x").acquire().await.map(drop) }));
    }
    waiting(&holder, "x", 10).await;
    tokio::task::block_in_place(|| the_server_is_read_only_for_a_while(&server));
    guard.release().await.check().unwrap();
    for wait in waits {
        tokio::time::timeout(PATIENCE, wait).await.expect("it is served").unwrap().unwrap();
    }
}

/// Within two seconds, as if nobody had a lock.
fn the_server_is_read_only_for_a_while(server: &MysqlServer) {
    for statements in [
        "FLUSH TABLES WITH READ LOCK; UNLOCK TABLES",
        "SET GLOBAL read_only = 1; SET GLOBAL read_only = 0",
    ] {
        let began = Instant::now();
        server.sql(statements);
        println!("{statements} took {:?}", began.elapsed());
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    }
}

/// A request for what the server cannot do is refused with the reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_session_cannot_do_is_unsupported() {
    let unsupported = Some(Code::Unsupported);
    for way in Way::ALL {
        let server = MysqlSessions::start_with_rights(way);
        let client = server.client("?ttl=5s").await;
        assert_eq!(code(client.semaphore("x", 2).acquire().await), unsupported);
        assert_eq!(code(client.read_lock("x").acquire().await), unsupported);
        assert_eq!(code(client.write_lock("x").acquire().await), unsupported);
        assert_eq!(code(client.version("x").read::<u64>().await), unsupported);
        let long = client.lock("x").ttl(Duration::from_secs(6)).acquire().await;
        assert_eq!(code(long), Some(Code::Invalid));
        assert_eq!(server.locks(), "0|0");
        let url = server.at(server.port(), "");
        let poor = url.replace("locks@", "poor@");
        server.sql("CREATE USER poor; GRANT SELECT ON locks.fencelock TO poor");
        assert_eq!(code(fencelock::connect(&poor).await), Some(Code::Auth));
        server.sql("GRANT SELECT ON locks.fencelock_token TO poor; GRANT SELECT ON locks.fencelock_row TO poor");
        let error = match fencelock::connect(&poor).await {
            Ok(poor) => poor.lock("x").acquire().await.err(),
            Err(error) => Some(error),
        };
        let error = error.expect("a token may not be drawn");
        assert!(
            error.code() == Code::Auth && error.message().contains("fencelock_token"),
            "{error}"
        );
        let relaxed = fencelock::connect(&format!("{url}?durability=relaxed")).await;
        assert_eq!(code(relaxed), Some(Code::Invalid));
        server.sql("DROP SEQUENCE fencelock_token");
        assert_eq!(code(fencelock::connect(&url).await), unsupported);
        let owner = url.replace("locks@", "owner@");
        let made = fencelock::connect(&format!("{owner}?create=true")).await.unwrap();
        made.lock("a").acquire().await.unwrap().release().await.check().unwrap();
    }
    let server = MysqlSessions::start_with_rights(Way::Names);
    assert_eq!(code(server.client("").await.names("").await), unsupported);
}

/// Names of rows are known. Without a right to make or lock them, that is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_of_rows_are_known() {
    let server = MysqlSessions::start_with_rights(Way::Rows);
    let client = server.client("").await;
    let [a, b] = [client.lock("a/b").acquire().await, client.lock("a/c").acquire().await];
    client.lock("a").acquire().await.unwrap().release().await.check().unwrap();
    assert_eq!(client.names("").await.unwrap(), ["a/b", "a/c"]);
    assert_eq!(client.names("a/b").await.unwrap(), ["a/b"]);
    drop((a, b));
    server.comes_to("0|0").await;
    assert_eq!(client.names("").await.unwrap(), [] as [&str; 0]);
    server.sql("REVOKE INSERT ON locks.fencelock_row FROM locks");
    assert_eq!(code(client.lock("new").acquire().await), Some(Code::Auth));
    client.lock("a").acquire().await.unwrap().release().await.check().unwrap();
    server.sql("REVOKE SELECT ON locks.fencelock_row FROM locks");
    let error = client.lock("a").acquire().await.unwrap_err();
    assert!(error.code() == Code::Auth && error.message().contains("fencelock_row"), "{error}");
    server.comes_to("0|0").await;
}

/// Rows of names that were made long ago go, but for those that are locked. A waiter whose row was deleted makes it anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_are_old_go_and_come_back() {
    let server = MysqlSessions::start_with_rights(Way::Rows);
    let (one, two) = (server.client("").await, server.client("").await);
    let held = one.lock("held").acquire().await.unwrap();
    let waits = tokio::spawn(two.lock("held").acquire_within(PATIENCE));
    server.comes_to("1|1").await;
    server.sql("INSERT INTO fencelock_row (name) SELECT CONCAT('old', seq) FROM seq_1_to_60");
    let old = "UPDATE fencelock_row SET made = made - INTERVAL 8 DAY WHERE name LIKE 'old%'";
    server.sql(old);
    for number in 0..40 {
        let name = format!("new{number}");
        one.lock(&name).acquire().await.unwrap().release().await.check().unwrap();
    }
    assert_eq!(server.sql("SELECT COUNT(*) FROM fencelock_row WHERE name LIKE 'old%'"), "0");
    assert_eq!(server.locks(), "1|1");
    held.release().await.check().unwrap();
    waits.await.unwrap().unwrap().release().await.check().unwrap();
    // Somebody deletes the row while it is waited for.
    let mut user = connection(&server).await;
    user.query_drop("BEGIN; DELETE FROM fencelock_row WHERE name = 'held'").await.unwrap();
    let waits = tokio::spawn(two.lock("held").acquire_within(PATIENCE));
    server.comes_to("0|1").await;
    user.query_drop("COMMIT").await.unwrap();
    let guard = waits.await.unwrap().unwrap();
    assert!(one.lock("held").try_acquire().await.unwrap().is_none());
    guard.release().await.check().unwrap();
    server.comes_to("0|0").await;
}

/// A session of the user's own takes the same lock, by the rule that is published.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_users_session_takes_the_same_lock() {
    let docs = include_str!("../../../../docs/reference/mysql-sessions.md");
    assert!(docs.contains(&KEY.replace(":name", "'orders:42'")));
    let server = MysqlSessions::start_with_rights(Way::Names);
    let client = server.client("").await;
    let mut user = connection(&server).await;
    let key = KEY.replace(":name", "'\u{f6}'");
    let guard = client.lock("\u{f6}").acquire().await.unwrap();
    let take = format!("SELECT GET_LOCK({key}, 0)");
    assert_eq!(user.query_first(&take).await.unwrap(), Some(0));
    guard.release().await.check().unwrap();
    assert_eq!(user.query_first(&take).await.unwrap(), Some(1));
    let waits = tokio::spawn(client.lock("\u{f6}").acquire_within(PATIENCE));
    server.comes_to("1|1").await;
    user.query_drop(format!("DO RELEASE_LOCK({key})")).await.unwrap();
    waits.await.unwrap().unwrap().release().await.check().unwrap();
    // The server has one set of names for all databases, and does not tell upper from lower case.
    server.sql(&format!(
        "CREATE DATABASE other; USE other; {} GRANT ALL ON other.* TO owner",
        fencelock::driver::mysql::schema("fencelock").unwrap()
    ));
    let other =
        server.at(server.port(), "").replace("locks@", "owner@").replace("/locks", "/other");
    let other = fencelock::connect(&other).await.unwrap();
    let guards = [
        client.lock("x").try_acquire().await.unwrap(),
        client.lock("X").try_acquire().await.unwrap(),
        client.lock(&"x".repeat(512)).try_acquire().await.unwrap(),
        other.lock("x").try_acquire().await.unwrap(),
    ];
    assert!(guards.iter().all(Option::is_some), "each is a lock of its own");
}

/// Holders and waiters are shown as connections, as far as the user may see them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_shows_connections() {
    for way in Way::ALL {
        let server = MysqlSessions::start_with_rights(way);
        let url = server.at(server.port(), "");
        let (one, two) = (server.client("").await, server.client("").await);
        let other = fencelock::connect(&url.replace("locks@", "owner@")).await.unwrap();
        let guard = one.lock("x").acquire().await.unwrap();
        let mut waits = Vec::new();
        for (number, client) in [&two, &other, &two].into_iter().enumerate() {
            // Each client has one who waits for a name.
            let client = if number == 2 { server.client("").await } else { client.clone() };
            waits.push(tokio::spawn(client.lock("x").acquire_within(PATIENCE)));
            server.comes_to(&format!("1|{}", number + 1)).await;
        }
        let state = two.lock("x").inspect().await.unwrap();
        assert!(state.holders[0].info.contains("\"user\":\"locks\""), "{state:?}");
        assert_eq!((state.holders.len(), state.waiters.len()), (1, 2), "{state:?}");
        server.sql("GRANT PROCESS ON *.* TO locks");
        let state = server.client("").await.lock("x").inspect().await.unwrap();
        let owners = state.waiters.iter().map(|waiter| waiter.info.contains("\"owner\""));
        assert_eq!(owners.collect::<Vec<_>>(), [false, true, false], "{state:?}");
        assert!(state.waiters[0].waiting_for >= state.waiters[2].waiting_for, "{state:?}");
        // Of a lock of somebody else's it is seen that it is held.
        guard.release().await.check().unwrap();
        waits.remove(0).await.unwrap().unwrap().release().await.check().unwrap();
        server.sql("REVOKE PROCESS ON *.* FROM locks");
        server.comes_to("1|1").await;
        let state = server.client("").await.lock("x").inspect().await.unwrap();
        assert!(!state.holders[0].info.contains("owner"), "{state:?}");
        for wait in waits {
            wait.await.unwrap().unwrap().release().await.check().unwrap();
        }
        server.comes_to("0|0").await;
    }
}

/// The gate in front of a table refuses the token of a holder whose session was ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gate_refuses_whoever_lost_the_lock() {
    for way in Way::ALL {
        let server = MysqlSessions::start(way);
        let mut user = connection(&server).await;
        let shelf =
            "CREATE TABLE shelf (item int PRIMARY KEY, stock int, fence bigint NOT NULL DEFAULT 0)";
        user.query_drop(shelf).await.unwrap();
        user.query_drop("INSERT INTO shelf (item, stock) VALUES (1, 10)").await.unwrap();
        for statement in gate_trigger("shelf", "fence").unwrap() {
            user.query_drop(statement).await.unwrap();
        }
        let (one, two) = (server.client("").await, server.client("").await);
        let lost = one.lock("x").acquire().await.unwrap();
        let waits = tokio::spawn(two.lock("x").acquire_within(PATIENCE));
        server.comes_to("1|1").await;
        server.end_connections(true);
        let held = waits.await.unwrap().unwrap();
        for (guard, passes) in [(&lost, true), (&held, true), (&held, true), (&lost, false)] {
            let token = guard.token().get();
            let sell =
                format!("UPDATE shelf SET stock = stock - 1, fence = {token} WHERE item = 1");
            assert_eq!(user.query_drop(sell).await.is_ok(), passes, "{token}");
        }
        held.release().await.check().unwrap();
    }
}

/// A server that says it is a MySQL has no sequence. Its tokens are its clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_of_mysql_are_its_clock() {
    for way in Way::ALL {
        let server = MysqlSessions::start_with(way, &["version=8.0.36"]);
        server.sql("DROP SEQUENCE fencelock_token");
        let (one, two) = (server.client("").await, server.client("").await);
        let mut last = Token::default();
        for round in 0..200 {
            let client = if round % 2 == 0 { &one } else { &two };
            let guard = client.lock("x").acquire_within(PATIENCE).await.unwrap();
            assert!(guard.token() > last);
            last = guard.token();
            guard.release().await.check().unwrap();
        }
        sessions_take_turns(&server, last).await;
        server.comes_to("0|0").await;
    }
}

/// Two clients hand a lock over again and again.
async fn sessions_take_turns(server: &MysqlSessions, mut last: Token) {
    let (one, two) = (server.client("").await, server.client("").await);
    let mut guard = one.lock("x").local(0).acquire().await.unwrap();
    for round in 0..50 {
        let next = if round % 2 == 0 { &two } else { &one };
        let waits = tokio::spawn(next.lock("x").local(0).acquire_within(PATIENCE));
        server.comes_to("1|1").await;
        assert!(guard.token() > last);
        last = guard.token();
        guard.release().await.check().unwrap();
        guard = waits.await.unwrap().unwrap();
    }
    assert!(guard.token() > last);
    guard.release().await.check().unwrap();
}

/// A server that crashes may lose what it drew last. Tokens rise all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_rise_over_crashes_that_lose_some() {
    for way in Way::ALL {
        let lax = ["innodb-flush-log-at-trx-commit=0"];
        let mut server = MysqlSessions::start_with(way, &lax);
        let mut last = Token::default();
        for _ in 0..if fencelock_tests::in_full() { 20 } else { 3 } {
            let client = server.client("").await;
            for _ in 0..100 {
                let guard = client.lock("x").acquire_within(PATIENCE).await.unwrap();
                assert!(guard.token() > last);
                last = guard.token();
                guard.release().await.check().unwrap();
            }
            client.close().await;
            server.server.kill_hard();
            server.server.start_again();
        }
    }
}

/// Limits for statements and idle transactions that a server has by default end no lock and no wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn defaults_of_the_server_do_not_matter() {
    for way in Way::ALL {
        let settings = [
            "max-statement-time=0.2",
            "idle-transaction-timeout=1",
            "idle-readonly-transaction-timeout=1",
            "wait-timeout=1",
            "transaction-isolation=SERIALIZABLE",
            "innodb-lock-wait-timeout=1",
            "lock-wait-timeout=1",
            "autocommit=0",
        ];
        let server = MysqlSessions::start_with(way, &settings);
        let (one, two) = (server.client("").await, server.client("").await);
        let held = one.lock("x").acquire().await.unwrap();
        let waits = tokio::spawn(two.lock("x").acquire_within(PATIENCE));
        tokio::time::sleep(Duration::from_millis(2500)).await;
        assert_eq!(server.locks(), "1|1");
        assert!(held.is_held());
        held.release().await.check().unwrap();
        waits.await.unwrap().unwrap().release().await.check().unwrap();
        server.comes_to("0|0").await;
    }
}

/// A binary log takes what sessions do, but for one of statements: that is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_binary_log_of_statements_is_refused() {
    for way in Way::ALL {
        for (format, works) in [("ROW", true), ("MIXED", true), ("STATEMENT", false)] {
            let format = format!("binlog-format={format}");
            let server = MysqlSessions::start_with(way, &["log-bin=bin", &format]);
            let url = server.at(server.port(), "");
            let acquired = async {
                let client = fencelock::connect(&url).await?;
                client.lock("x").acquire().await?.release().await.check()
            };
            let acquired = acquired.await;
            assert_eq!(acquired.is_ok(), works, "{format}: {acquired:?}");
            if let Err(error) = acquired {
                assert!(error.message().contains("ROW or MIXED"), "{error}");
            }
        }
    }
}
