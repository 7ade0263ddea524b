//! Locks that live with a session of a database server, in both ways: who excludes whom, what is limited, cancelled calls.

use std::time::{Duration, Instant};

use fencelock::{Code, Token};

use super::{DatabaseSessions, Way};
use crate::in_full;
use crate::session_store::{self, PATIENCE, code};

/// A lock excludes, in one client too, and tokens rise.
pub async fn a_lock_excludes_and_its_tokens_rise<S: DatabaseSessions>(way: Way) {
    let server = S::start_with_rights(way);
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

/// Eight waiters are served, each with a token of its own, though the statement in which they wait ends each second.
pub async fn waiters_are_served<S: DatabaseSessions>(way: Way) {
    let server = S::start_with_rights(way);
    let holder = server.client("").await;
    let guard = holder.lock("x").acquire().await.unwrap();
    let mut waits = Vec::new();
    for number in 1..=8 {
        let client = server.client("").await;
        waits.push(tokio::spawn(async move {
            let guard = client.lock("x").acquire().await.unwrap();
            let token = guard.token();
            guard.release().await.check().unwrap();
            token
        }));
        server.comes_to(&format!("1|{number}")).await;
    }
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let began = Instant::now();
    let mut tokens = vec![guard.token()];
    guard.release().await.check().unwrap();
    for wait in waits {
        tokens.push(tokio::time::timeout(PATIENCE, wait).await.expect("it is served").unwrap());
    }
    println!("8 hand-overs took {:?}", began.elapsed());
    tokens[1..].sort();
    assert!(tokens.windows(2).all(|pair| pair[0] < pair[1]), "{tokens:?}");
    server.comes_to("0|0").await;
}

/// An acquire that is given up at any moment leaves nothing.
pub async fn what_is_given_up_leaves_nothing<S: DatabaseSessions>(way: Way) {
    let server = S::start_with_rights(way);
    session_store::what_is_given_up_leaves_nothing(&server, "").await;
}

/// B88: a wait that ends just as the lock is granted leaves no lock behind.
pub async fn b88_a_wait_that_ends_at_the_grant_leaves_no_lock<S: DatabaseSessions>(way: Way) {
    let server = S::start_with_rights(way);
    let (one, two) = (server.client("").await, server.client("").await);
    let rounds = if in_full() { 500 } else { 100 };
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
pub async fn b89_heartbeats_end_no_lock<S: DatabaseSessions>(way: Way) {
    let server = S::start_with_rights(way);
    // A heartbeat every 150 ms, and a session that ends after 600.
    let client = server.client("?ttl=600ms").await;
    let kept = client.lock("kept").acquire().await.unwrap();
    let began = Instant::now();
    let lasts = Duration::from_secs(if in_full() { 60 } else { 3 });
    let mut rounds = 0;
    while began.elapsed() < lasts {
        let guard = client.lock("x").acquire_within(PATIENCE).await.unwrap();
        let waits = tokio::spawn(client.lock("y").acquire_within(PATIENCE));
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

/// A client waits for 31 locks at once. What it asks for beside them is asked for again later.
pub async fn waits_are_limited_and_give_their_connections_back<S: DatabaseSessions>(way: Way) {
    let server = S::start_with_rights(way);
    let (one, other) = (server.client("").await, server.client("").await);
    let two = server.client("").await;
    let names: Vec<String> = (0..40).map(|number| format!("x{number}")).collect();
    let mut guards = Vec::new();
    for (number, name) in names.iter().enumerate() {
        // A client has 31 locks at most where each takes a connection.
        let holder = if number % 2 == 0 { &one } else { &other };
        guards.push(holder.lock(name).acquire().await.unwrap());
    }
    // Each gives its lock back at once: those that have no connection yet need it, whichever they are.
    let pass = |name: &String| {
        let wait = two.lock(name).acquire_within(PATIENCE);
        tokio::spawn(async move { wait.await.unwrap().release().await.check().unwrap() })
    };
    let waits: Vec<_> = names.iter().map(pass).collect();
    server.comes_to("40|31").await;
    let free = two.lock("free").try_acquire().await;
    match way {
        // Whoever does not wait needs no connection of its own.
        Way::Names => {
            free.unwrap().expect("it is free").release().await.check().unwrap();
        }
        Way::Rows => assert_eq!(code(free), Some(Code::Unavailable)),
    }
    for guard in guards {
        guard.release().await.check().unwrap();
    }
    for wait in waits {
        wait.await.unwrap();
    }
    server.comes_to("0|0").await;
    let began = Instant::now();
    while server.connections() > 6 {
        assert!(began.elapsed() < PATIENCE, "connections that nobody needs are ended");
    }
}

/// The server alone can end a session's hold: the error says by which statement, and the holder keeps it.
pub async fn a_break_names_the_servers_statement<S: DatabaseSessions>(way: Way) {
    let server = S::start_with_rights(way);
    let (one, two) = (server.client("").await, server.client("").await);
    let guard = one.lock("x").acquire().await.unwrap();
    let refused = two.break_lock("x", "it hangs").await.unwrap_err();
    assert_eq!(refused.code(), Code::Unsupported, "{refused}");
    let statement = &refused.fields()["statement"];
    let ends = ["SELECT pg_terminate_backend(", "KILL "];
    assert!(ends.iter().any(|words| statement.starts_with(words)), "{statement}");
    guard.check().unwrap();
    let free = two.break_lock("y", "it hangs").await.unwrap_err();
    assert_eq!(free.code(), Code::NotHeld, "{free}");
}
