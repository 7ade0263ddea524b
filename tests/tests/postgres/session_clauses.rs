//! What locks that live with a session stand on, clause by clause: each is broken on purpose, and seen. All is in one thread, as a breakage
//! is.

use std::time::{Duration, Instant};

use fencelock::mutation::{Mutant, activate};
use fencelock_tests::postgres::{Pooler, PostgresSessions, Way};
use fencelock_tests::session_store::PATIENCE;
use futures_util::future::join_all;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{sleep, timeout};

/// Something that happens at once has happened.
const SOON: Duration = Duration::from_secs(2);

/// A clause holds as it is, and does not hold when it is broken.
async fn is_seen(way: Way, mutant: Mutant, holds: impl AsyncFn(&PostgresSessions) -> bool) {
    let server = PostgresSessions::start_with_rights(way);
    assert!(holds(&server).await, "nothing is broken");
    server.comes_to("0|0").await;
    activate(Some(mutant));
    let held = holds(&server).await;
    activate(None);
    assert!(!held, "{mutant:?} is not seen");
}

#[tokio::test]
async fn the_end_of_a_connection_is_told_at_once() {
    for way in Way::ALL {
        is_seen(way, Mutant::SessionEndUnheard, async |server| {
            let client = server.client("?ttl=20s").await;
            let guard = client.lock("x").acquire().await.unwrap();
            server.end_backends(true);
            timeout(SOON, guard.lost()).await.is_ok() && !guard.is_held()
        })
        .await;
    }
}

#[tokio::test]
async fn a_lock_is_given_back_where_it_was_taken() {
    for way in Way::ALL {
        is_seen(way, Mutant::SessionUnlocksElsewhere, async |server| {
            let (one, two) = (server.client("").await, server.client("").await);
            let first = one.lock("x").acquire().await.unwrap();
            let waits = tokio::spawn(two.lock("x").acquire_within(SOON));
            server.comes_to("1|1").await;
            if first.release().await.check().is_err() {
                return false;
            }
            // It was waited for, so the common session has not got it.
            let Ok(second) = waits.await.unwrap() else { return false };
            let _ = second.release().await;
            one.lock("x").try_acquire().await.unwrap().is_some()
        })
        .await;
    }
}

#[tokio::test]
async fn heartbeats_keep_a_session() {
    for way in Way::ALL {
        is_seen(way, Mutant::SessionNotKept, async |server| {
            let client = server.client("?ttl=2s").await;
            let guard = client.lock("x").acquire().await.unwrap();
            sleep(Duration::from_secs(5)).await;
            guard.is_held()
        })
        .await;
    }
}

/// B88: what is interrupted too early is interrupted again. Which of both a process that goes on hears of first is open, so there are many.
#[tokio::test]
async fn b88_a_wait_ends_that_begins_behind_its_interrupt() {
    const MANY: usize = 16;
    is_seen(Way::Advisory, Mutant::SessionInterruptedOnce, async |server| {
        let (one, two) = (server.client("").await, server.client("").await);
        let mut guards = Vec::new();
        for number in 0..MANY {
            guards.push(one.lock(&format!("x{number}")).acquire().await.unwrap());
        }
        let all_wait = async |limit| {
            let wait = |number| timeout(limit, two.lock(&format!("x{number}")).acquire());
            join_all((0..MANY).map(wait)).await
        };
        let only_held = async || {
            let (held, began) = (format!("{MANY}|0"), Instant::now());
            while server.locks() != held && began.elapsed() < SOON {
                sleep(Duration::from_millis(50)).await;
            }
            server.locks() == held
        };
        all_wait(SOON).await;
        assert!(only_held().await);
        // From now on there are sessions to wait in. Each is to hear of the interrupt before it hears of the wait.
        let beside_common = "SELECT pid FROM pg_stat_activity WHERE usename = 'locks' ORDER BY backend_start OFFSET 2";
        let pids = server.server.sql(beside_common);
        let all = pids.lines().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
        let signal = |signal| all.clone().for_each(|pid| kill_process(pid, signal).unwrap());
        signal(Signal::STOP);
        all_wait(SOON).await;
        sleep(SOON / 2).await;
        signal(Signal::CONT);
        let gone = only_held().await;
        for guard in guards {
            guard.release().await.check().unwrap();
        }
        gone
    })
    .await;
}

#[tokio::test]
async fn tokens_rise_after_a_restore() {
    for way in Way::ALL {
        is_seen(way, Mutant::SessionTokensNotAdvanced, async |server| {
            let before = server.client("").await.lock("x").acquire().await.unwrap().token();
            server.comes_to("0|0").await;
            server.server.sql("SELECT setval('fencelock_token', 64)");
            let after = server.client("").await.lock("x").acquire().await.unwrap().token();
            server.comes_to("0|0").await;
            after > before
        })
        .await;
    }
}

#[tokio::test]
async fn b91_a_pooler_is_found() {
    for way in Way::ALL {
        is_seen(way, Mutant::PoolerNotSought, async |server| {
            let pooler = Pooler::before(server.server.port(), &["locks"], "transaction");
            fencelock::connect(&server.at(pooler.port(), "")).await.is_err()
        })
        .await;
    }
}

/// A session that asked for what it has would be given it past a writer that waits.
#[tokio::test]
async fn a_session_has_a_lock_once() {
    is_seen(Way::Advisory, Mutant::SessionAsksTwice, async |server| {
        let (one, two) = (server.client("").await, server.client("").await);
        let first = one.read("x").acquire().await.unwrap();
        let writes = tokio::spawn(two.write("x").acquire_within(PATIENCE));
        server.comes_to("1|1").await;
        let second = one.read("x").try_acquire().await.unwrap();
        let refused = second.is_none();
        drop((first, second));
        writes.await.unwrap().unwrap().release().await.check().unwrap();
        refused
    })
    .await;
}

/// Waits that are given up have connections for a moment longer. The next ones are not refused for that.
#[tokio::test]
async fn many_waits_that_are_given_up_leave_room_for_others() {
    const NAMES: usize = 8;
    is_seen(Way::Advisory, Mutant::SessionsNotAwaited, async |server| {
        let (one, two) = (server.client("").await, server.client("").await);
        let mut guards = Vec::new();
        for number in 0..NAMES {
            guards.push(one.lock(&format!("x{number}")).acquire().await.unwrap());
        }
        for _ in 0..30 {
            let wait = async |number: usize| {
                let lock = two.lock(&format!("x{number}"));
                match lock.acquire_within(Duration::from_millis(2)).await {
                    Err(error) => error.code() == fencelock::Code::Timeout,
                    Ok(_) => false,
                }
            };
            if !join_all((0..NAMES).map(wait)).await.into_iter().all(|timed_out| timed_out) {
                return false;
            }
        }
        true
    })
    .await;
}
