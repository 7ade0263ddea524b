//! Locks that live with a session stand on these clauses.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::time::{sleep, timeout};

use super::{DatabaseSessions, Way};

/// Something that happens at once has happened.
pub const SOON: Duration = Duration::from_secs(2);

/// A whole second passes in it, wherever it begins.
const LONGER_THAN_A_SECOND: Duration = Duration::from_millis(1100);

/// A clause holds on a server of its own, and leaves nothing behind.
pub async fn stands<S: DatabaseSessions>(way: Way, holds: impl AsyncFn(&S) -> bool) {
    let server = S::start_with_rights(way);
    assert!(holds(&server).await, "{way:?}");
    server.comes_to("0|0").await;
}

/// The end of a connection is told at once.
pub async fn the_end_of_a_connection_is_told_at_once<S: DatabaseSessions>() {
    for way in Way::ALL {
        stands::<S>(way, async |server| {
            let client = server.client("?ttl=20s").await;
            let guard = client.lock("x").acquire().await.unwrap();
            server.end_connections(true);
            timeout(SOON, guard.lost()).await.is_ok() && !guard.is_held()
        })
        .await;
    }
}

/// A lock is given back in the session that has it.
pub async fn a_lock_is_given_back_where_it_was_taken<S: DatabaseSessions>() {
    for way in Way::ALL {
        stands::<S>(way, async |server| {
            let (one, two) = (server.client("").await, server.client("").await);
            let first = one.lock("x").acquire().await.unwrap();
            let waits = tokio::spawn(two.lock("x").acquire_within(10 * SOON));
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

/// Heartbeats keep a session.
pub async fn heartbeats_keep_a_session<S: DatabaseSessions>() {
    for way in Way::ALL {
        stands::<S>(way, async |server| {
            let client = server.client("?ttl=2s").await;
            let guard = client.lock("x").acquire().await.unwrap();
            sleep(Duration::from_secs(5)).await;
            guard.is_held()
        })
        .await;
    }
}

/// Tokens rise, though the database is restored to an older state. Some servers count their uptime in seconds: one passes.
pub async fn tokens_rise_after_a_restore<S: DatabaseSessions>() {
    for way in Way::ALL {
        stands::<S>(way, async |server| {
            let token = async || {
                let token = server.client("").await.lock("x").acquire().await.unwrap().token();
                server.comes_to("0|0").await;
                token
            };
            let mut before = token().await;
            let began = Instant::now();
            while began.elapsed() < LONGER_THAN_A_SECOND {
                server.turn_tokens_back();
                let after = token().await;
                if after <= before {
                    return false;
                }
                before = after;
            }
            true
        })
        .await;
    }
}

/// Waits that are given up have connections for a moment longer. The next ones are not refused for that.
pub async fn many_waits_that_are_given_up_leave_room_for_others<S: DatabaseSessions>() {
    const NAMES: usize = 8;
    stands::<S>(Way::Names, async |server| {
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
