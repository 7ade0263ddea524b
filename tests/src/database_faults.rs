//! Faults that every database server with a table of locks is put through.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fencelock::{Client, Code, Released};

use crate::database::{DatabaseServer, connect};
use crate::in_full;
use crate::proxy::Proxy;
use crate::session_store::waiting;
use crate::turns::median;

/// How long a test waits for what has to come.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A client behind a proxy, another one beside it.
pub async fn behind<S: DatabaseServer>(server: &S, user: &str) -> (Proxy, Client, Client) {
    let direct = server.place(user);
    let beside = connect(&direct).await;
    let proxy = Proxy::before(server.port()).await;
    let port = proxy.url().port().expect("a proxy has a port");
    let through = format!("{}?timeout=1s", S::url_at(port, user));
    (proxy, connect(&through).await, beside)
}

/// Each of these clients has the lock so often, alone, and with rising tokens.
pub async fn take_turns(clients: &[Client]) {
    let held = Arc::new(AtomicUsize::new(0));
    let rounds = if in_full() { 200 } else { 20 };
    let turns = |client: &Client| {
        let (held, lock) = (held.clone(), client.lock("x"));
        tokio::spawn(async move {
            let mut last = None;
            for _ in 0..rounds {
                let guard = lock.acquire_within(PATIENCE).await.unwrap();
                assert_eq!(held.fetch_add(1, Ordering::SeqCst), 0, "one holds at a time");
                assert!(Some(guard.token()) > last);
                last = Some(guard.token());
                held.fetch_sub(1, Ordering::SeqCst);
                guard.release().await.check().unwrap();
            }
        })
    };
    for task in clients.iter().map(turns).collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

/// A server that was killed and started again with its data keeps what was held and who waits.
pub async fn a_restart_keeps_the_locks<S: DatabaseServer>() {
    let mut server = S::start();
    let url = server.place("a");
    let (one, two) = (connect(&url).await, connect(&url).await);
    let guard = one.lock("x").acquire().await.unwrap();
    let waits = tokio::spawn(two.lock("x").acquire_within(PATIENCE));
    waiting(&one, "x", 1).await;
    server.kill_hard();
    let tried = one.lock("y").try_acquire().await;
    assert_eq!(tried.unwrap_err().code(), Code::Unavailable);
    server.start_again();
    // Whoever waits is not told of an attempt to connect that began before.
    drop(one.lock("z").acquire_within(PATIENCE).await.unwrap());
    guard.extend(Duration::from_secs(30)).await.unwrap();
    let token = guard.token();
    guard.release().await.check().unwrap();
    let next = waits.await.unwrap().expect("it goes on waiting");
    assert!(next.token() > token);
    next.release().await.check().unwrap();
    // What was tried while nobody answered has left nothing.
    drop(one.lock("y").acquire_within(Duration::from_secs(5)).await.unwrap());
}

/// B90, B93: connections that are ended cost neither a hold nor a place in the queue, and what comes after them works.
pub async fn ended_connections_cost_no_lock<S: DatabaseServer>() {
    let server = S::start();
    let url = server.place("a");
    let (one, two) = (connect(&url).await, connect(&url).await);
    let rounds = if in_full() { 50 } else { 5 };
    for _ in 0..rounds {
        let guard = one.lock("x").acquire_within(PATIENCE).await.unwrap();
        let waits = tokio::spawn(two.lock("x").acquire_within(PATIENCE));
        waiting(&one, "x", 1).await;
        server.end_connections("a");
        assert!(guard.is_held(), "the lock lies in the table");
        // The first call may go to the connection that was ended, the next one does not.
        if guard.extend(Duration::from_secs(30)).await.is_err() {
            guard.extend(Duration::from_secs(30)).await.expect("it has connected again");
        }
        let token = guard.token();
        // A Free whose connection breaks is repeated.
        server.end_connections("a");
        let released = guard.release().await;
        assert!(matches!(released, Released::Released | Released::Unconfirmed), "{released:?}");
        let next = waits.await.unwrap().expect("it goes on waiting");
        assert!(next.token() > token);
        next.release().await.check().unwrap();
    }
}

/// An acquire whose answer is lost fails, and what it has taken is taken back.
pub async fn what_was_not_answered_is_taken_back<S: DatabaseServer>() {
    let server = S::start();
    let (proxy, one, two) = behind(&server, "a").await;
    let kept = one.lock("kept").acquire().await.unwrap();
    for name in ["x", "x", "y"] {
        // The connection is there, so that it is held.
        one.lock(name).inspect().await.unwrap();
        let held = proxy.hold_replies();
        let tried = one.lock(name).try_acquire().await;
        assert_eq!(tried.unwrap_err().code(), Code::Unavailable);
        drop(held);
        let guard = two.lock(name).acquire_within(Duration::from_secs(10)).await.unwrap();
        guard.release().await.check().unwrap();
    }
    assert!(kept.is_held());
    kept.release().await.check().unwrap();
}

/// A request that stays on the way and arrives after it was given up grants nothing.
pub async fn a_take_that_arrives_late_grants_nothing<S: DatabaseServer>() {
    let server = S::start();
    let (proxy, one, two) = behind(&server, "a").await;
    one.lock("x").acquire().await.unwrap().release().await.check().unwrap();
    let held = proxy.hold_requests();
    let tried = one.lock("x").try_acquire().await;
    assert_eq!(tried.unwrap_err().code(), Code::Unavailable);
    // It is taken back over another connection first.
    let began = Instant::now();
    while !server.sql("SELECT rest FROM a.fencelock WHERE name = 'x'").contains("tombstones") {
        assert!(began.elapsed() < PATIENCE, "it is taken back");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(held);
    let guard = two.lock("x").acquire_within(Duration::from_secs(5)).await.unwrap();
    assert!(guard.is_held());
    guard.release().await.check().unwrap();
}

/// A row that somebody keeps locked holds up neither other locks nor their renewals.
pub async fn a_locked_row_holds_up_no_other_lock<S: DatabaseServer>() {
    let server = S::start();
    let url = server.place("a");
    let client = connect(&format!("{url}&timeout=2s&ttl=1500ms")).await;
    client.lock("x").acquire().await.unwrap().release().await.check().unwrap();
    let kept = client.lock("kept").acquire().await.unwrap();
    let stranger = server.keep_row("a", "x").await;
    let stuck = tokio::spawn(client.lock("x").try_acquire());
    let began = Instant::now();
    for _ in 0..20 {
        let guard = client.lock("y").acquire().await.unwrap();
        guard.release().await.check().unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(began.elapsed() < Duration::from_secs(8), "others go on: {:?}", began.elapsed());
    assert!(kept.is_held(), "it was renewed beside");
    let error = stuck.await.unwrap().unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    S::let_go(stranger).await;
    let guard = client.lock("x").acquire_within(PATIENCE).await.unwrap();
    guard.release().await.check().unwrap();
}

/// B87: clients whose sessions have different isolation levels share one lock, in order.
pub async fn isolation_levels_exclude_each_other<S: DatabaseServer>() {
    let server = S::start();
    let url = server.place("a");
    let mut tasks = Vec::new();
    let held = Arc::new(AtomicUsize::new(0));
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        server.set_isolation("a", level);
        let client = connect(&url).await;
        let held = held.clone();
        tasks.push(tokio::spawn(async move {
            for _ in 0..50 {
                let guard = client.lock("x").acquire_within(PATIENCE).await.unwrap();
                assert_eq!(held.fetch_add(1, Ordering::SeqCst), 0);
                tokio::task::yield_now().await;
                held.fetch_sub(1, Ordering::SeqCst);
                guard.release().await.check().unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

/// Calls that are cancelled after any time leave neither a hold nor a place, and no transaction open.
pub async fn cancelled_calls_leave_nothing<S: DatabaseServer>() {
    let server = S::start();
    let url = server.place("a");
    let (one, two) = (connect(&url).await, connect(&url).await);
    for micros in (0..3000).step_by(if in_full() { 10 } else { 100 }) {
        let guard = (micros % 200 == 0).then(|| two.lock("x").acquire());
        let guard = match guard {
            Some(pending) => Some(pending.await.unwrap()),
            None => None,
        };
        let patience = Duration::from_micros(micros);
        let _ = tokio::time::timeout(patience, one.lock("x").acquire()).await;
        if let Some(guard) = guard {
            guard.release().await.check().unwrap();
        }
    }
    let guard = two.lock("x").acquire_within(PATIENCE).await.expect("nobody has it any more");
    waiting(&two, "x", 0).await;
    guard.release().await.check().unwrap();
    let began = Instant::now();
    while server.open_transactions("a") != 0 {
        assert!(began.elapsed() < PATIENCE, "no transaction stays open");
    }
    drop((one, two));
    while server.connections("a") != 0 {
        assert!(began.elapsed() < PATIENCE, "no connection stays open");
    }
}

/// B83: a client that knows of a row which somebody has deleted since gets the lock all the same.
pub async fn a_row_that_is_gone_is_made_again<S: DatabaseServer>() {
    let server = S::start();
    let client = connect(&server.place("a")).await;
    let mut last = None;
    for _ in 0..3 {
        let guard = client.lock("x").try_acquire().await.unwrap().expect("nobody has it");
        assert!(Some(guard.token()) > last, "tokens rise by the clock");
        last = Some(guard.token());
        guard.release().await.check().unwrap();
        server.sql("DELETE FROM a.fencelock");
    }
}

/// A waiter gets a notice of a release before its next look, also if the client that released is gone at once.
pub async fn a_release_wakes_the_next<S: DatabaseServer>() {
    let server = S::start();
    let url = server.place("a");
    let (observer, two) = (connect(&url).await, connect(&url).await);
    let mut quick = 0;
    for _ in 0..10 {
        let one = connect(&url).await;
        let guard = one.lock("x").acquire_within(PATIENCE).await.unwrap();
        let waits = tokio::spawn(two.lock("x").acquire_within(PATIENCE));
        waiting(&observer, "x", 1).await;
        let began = Instant::now();
        guard.release().await.check().unwrap();
        drop(one);
        let next = waits.await.unwrap().unwrap();
        quick += usize::from(began.elapsed() < Duration::from_millis(300));
        next.release().await.check().unwrap();
    }
    assert!(quick >= 5, "{quick} of 10 were told");
}

/// U12: a burst leaves two connections of a client at most.
pub async fn a_burst_leaves_few_connections<S: DatabaseServer>() {
    let server = S::start();
    let url = server.place("burst");
    let clients = [connect(&url).await, connect(&url).await];
    let burst = (0..64).map(|number| {
        let lock = clients[number % 2].lock(&format!("x{}", number / 2 % 8));
        tokio::spawn(async move {
            let guard = lock.acquire_within(PATIENCE).await.unwrap();
            guard.release().await.check().unwrap();
        })
    });
    for task in burst.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let (began, most) = (Instant::now(), server.connections("burst"));
    while server.connections("burst") > 2 * clients.len() {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", server.connections("burst"));
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    println!("of {most} connections the idle ones were closed after {:?}", began.elapsed());
}

/// U12: more clients than the server has connections all get their turn at one lock within their `wait`. All stay there; a minute later none of
/// them has a connection, which others may need.
pub async fn more_clients_than_connections_get_their_turns<S: DatabaseServer>(
    server: S,
    clients: usize,
) {
    const WAIT: Duration = Duration::from_secs(180);
    let url = format!("{}&connect_timeout=180s", server.place("a"));
    let began = Instant::now();
    let turns = (0..clients).map(|_| {
        let url = url.clone();
        tokio::spawn(async move {
            let client = connect(&url).await;
            let guard = client.lock("x").acquire_within(WAIT).await.unwrap();
            guard.release().await.check().unwrap();
            (client, began.elapsed())
        })
    });
    let mut resting = Vec::new();
    for turn in turns.collect::<Vec<_>>() {
        resting.push(turn.await.unwrap());
    }
    let ends: Vec<_> = resting.iter().map(|(_, end)| *end).collect();
    println!("half had their turn after {:?}, all after {:?}", median(ends), began.elapsed());
    let ended = Instant::now();
    while server.connections("a") > 0 {
        assert!(ended.elapsed() < Duration::from_secs(60), "{}", server.connections("a"));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    println!("all connections were closed {:?} later", ended.elapsed());
}
