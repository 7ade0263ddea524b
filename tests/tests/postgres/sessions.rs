//! Locks that live with a session, on a real PostgreSQL server: who excludes whom, what is refused, poolers, cancelled calls.

use std::time::{Duration, Instant};

use fencelock::driver::postgres::lock_in;
use fencelock::{Code, Token};
use fencelock_tests::postgres::{Pooler, PostgresSessions};
use fencelock_tests::session_store::{self, PATIENCE, code};
use tokio_postgres::NoTls;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_excludes_and_its_tokens_rise() {
    let server = PostgresSessions::start_with_rights();
    let (one, two) = (server.client("").await, server.client("").await);
    let mut last = Token::default();
    for _ in 0..3 {
        let guard = one.lock("a").acquire().await.unwrap();
        assert!(two.lock("a").try_acquire().await.unwrap().is_none());
        assert!(one.lock("a").try_acquire().await.unwrap().is_none());
        let other = two.lock("a/b").try_acquire().await.unwrap().expect("another name");
        assert!(guard.token() > last);
        last = guard.token();
        let state = two.lock("a").inspect().await.unwrap();
        assert_eq!((state.holders.len(), state.waiters.len()), (1, 0));
        guard.release().await.check().unwrap();
        let next = two.lock("a").try_acquire().await.unwrap().expect("it is free");
        assert!(next.token() > last);
        last = next.token();
        next.release().await.check().unwrap();
        other.release().await.check().unwrap();
    }
    one.close().await;
    assert_eq!(code(one.lock("a").acquire().await), Some(Code::Closed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_share_and_writers_do_not() {
    let server = PostgresSessions::start_with_rights();
    let (one, two) = (server.client("").await, server.client("").await);
    let first = one.read("x").acquire().await.unwrap();
    let second = one.read("x").acquire().await.unwrap();
    let third = two.read("x").acquire().await.unwrap();
    assert!(two.write("x").try_acquire().await.unwrap().is_none());
    assert!(one.write("x").try_acquire().await.unwrap().is_none());
    let writes = tokio::spawn(one.write("x").acquire_within(PATIENCE));
    server.comes_to("3|1").await;
    // No new reader goes past a writer, not even one of a client that reads already.
    assert!(one.read("x").try_acquire().await.unwrap().is_none());
    assert!(two.read("x").try_acquire().await.unwrap().is_none());
    for guard in [first, second, third] {
        guard.release().await.check().unwrap();
    }
    let writer = writes.await.unwrap().unwrap();
    assert!(one.read("x").try_acquire().await.unwrap().is_none());
    writer.release().await.check().unwrap();
    server.comes_to("0|0").await;
}

/// What the server cannot do is refused with the reason.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_session_cannot_do_is_unsupported() {
    let server = PostgresSessions::start_with_rights();
    let client = server.client("?ttl=5s").await;
    let unsupported = Some(Code::Unsupported);
    assert_eq!(code(client.permits("x", 2).acquire().await), unsupported);
    assert_eq!(code(client.upgradeable("x").acquire().await), unsupported);
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_are_served_in_order() {
    let server = PostgresSessions::start_with_rights();
    let took = session_store::waiters_are_served_in_order(&server, "", 8, || ()).await;
    println!("8 hand-overs took {took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_given_up_leaves_nothing() {
    let server = PostgresSessions::start_with_rights();
    session_store::what_is_given_up_leaves_nothing(&server, "").await;
}

/// B88: a wait that ends just as the lock is granted leaves no lock behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b88_a_wait_that_ends_at_the_grant_leaves_no_lock() {
    let server = PostgresSessions::start_with_rights();
    let (one, two) = (server.client("").await, server.client("").await);
    let rounds = if fencelock_tests::in_full() { 500 } else { 100 };
    let mut granted = 0;
    for round in 0..rounds {
        let guard = one.lock("x").acquire().await.unwrap();
        let limit = Duration::from_micros(2000 + round % 50 * 100);
        let waits = tokio::spawn(two.lock("x").acquire_within(limit));
        tokio::time::sleep(Duration::from_micros(4500)).await;
        guard.release().await.check().unwrap();
        match waits.await.unwrap() {
            Ok(guard) => {
                granted += 1;
                guard.release().await.check().unwrap();
            }
            Err(error) => assert_eq!(error.code(), Code::Timeout, "{error}"),
        }
        let free = one.lock("x").acquire_within(PATIENCE).await.expect("nobody has it");
        free.release().await.check().unwrap();
    }
    println!("{granted} of {rounds} were granted");
    server.comes_to("0|0").await;
}

/// B89: heartbeats beside everything else that a session does end no lock, and hold nothing up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b89_heartbeats_end_no_lock() {
    let server = PostgresSessions::start_with_rights();
    // A heartbeat every 150 ms, and a session that ends after 600.
    let client = server.client("?ttl=600ms").await;
    let kept = client.lock("kept").acquire().await.unwrap();
    let began = Instant::now();
    let lasts = Duration::from_secs(if fencelock_tests::in_full() { 60 } else { 3 });
    let mut rounds = 0;
    while began.elapsed() < lasts {
        let guard = client.lock("x").acquire_within(PATIENCE).await.unwrap();
        let waits = tokio::spawn(client.read("y").acquire_within(PATIENCE));
        guard.release().await.check().unwrap();
        waits.await.unwrap().unwrap().release().await.check().unwrap();
        rounds += 1;
        // Also where nothing but heartbeats goes on for longer than a session lives.
        if rounds % 500 == 0 {
            tokio::time::sleep(Duration::from_millis(700)).await;
        }
        assert!(kept.is_held(), "after {rounds} rounds");
    }
    kept.release().await.check().unwrap();
    println!("{rounds} rounds");
    server.comes_to("0|0").await;
}

/// A lock within a user's transaction excludes a session, and the other way round; their tokens are of one order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_users_transaction_takes_the_same_lock() {
    let server = PostgresSessions::start_with_rights();
    let client = server.client("").await;
    let url = server.server.url("locks");
    let (mut user, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let mut last = Token::default();
    for _ in 0..3 {
        let guard = client.lock("ö").acquire().await.unwrap();
        assert!(guard.token() > last);
        let transaction = user.transaction().await.unwrap();
        let ask = async |sql: &str, name: &str| {
            let row = transaction.query_one(sql, &[&name]).await.expect("the server answers");
            Ok::<i64, fencelock::Error>(row.get(0))
        };
        let token = guard.token();
        last = {
            let mut asked = std::pin::pin!(lock_in("ö", ask));
            let early = tokio::time::timeout(Duration::from_millis(100), &mut asked).await;
            assert!(early.is_err(), "it waits");
            guard.release().await.check().unwrap();
            asked.await.unwrap()
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
    let server = PostgresSessions::start_with_rights();
    for mode in ["transaction", "statement"] {
        let pooler = Pooler::before(server.server.port(), &["locks"], mode);
        for _ in 0..3 {
            let error = fencelock::connect(&server.at(pooler.port(), "")).await.err();
            let error = error.unwrap_or_else(|| panic!("{mode} is refused"));
            if mode == "transaction" {
                assert_eq!(error.code(), Code::Unsupported, "{error}");
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

/// A client waits for 31 locks at once. What it asks for beside them is asked for again later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waits_are_limited_and_give_their_connections_back() {
    let server = PostgresSessions::start_with_rights();
    let (one, two) = (server.client("").await, server.client("").await);
    let names: Vec<String> = (0..40).map(|number| format!("x{number}")).collect();
    let mut guards = Vec::new();
    for name in &names {
        guards.push(one.lock(name).acquire().await.unwrap());
    }
    let waits: Vec<_> =
        names.iter().map(|name| tokio::spawn(two.lock(name).acquire_within(PATIENCE))).collect();
    server.comes_to("40|31").await;
    // Whoever does not wait needs no connection of its own.
    let free = two.lock("free").try_acquire().await.unwrap().expect("it is free");
    free.release().await.check().unwrap();
    for guard in guards {
        guard.release().await.check().unwrap();
    }
    for wait in waits {
        wait.await.unwrap().unwrap().release().await.check().unwrap();
    }
    server.comes_to("0|0").await;
    let sessions = "SELECT count(*) <= 10 FROM pg_stat_activity WHERE usename = 'locks'";
    let began = Instant::now();
    while server.server.sql(sessions) != "t" {
        assert!(began.elapsed() < PATIENCE, "connections that nobody needs are ended");
    }
}
