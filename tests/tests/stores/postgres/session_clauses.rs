//! Locks that live with a session stand on these clauses, on a real PostgreSQL server.

use std::time::{Duration, Instant};

use fencelock_tests::database_sessions::clauses::{self, SOON, stands};
use fencelock_tests::database_sessions::{DatabaseSessions, Way};
use fencelock_tests::postgres::{Pooler, PostgresSessions};
use fencelock_tests::session_store::PATIENCE;
use futures_util::future::join_all;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{sleep, timeout};

#[tokio::test]
async fn the_end_of_a_connection_is_told_at_once() {
    clauses::the_end_of_a_connection_is_told_at_once::<PostgresSessions>().await;
}

#[tokio::test]
async fn a_lock_is_given_back_where_it_was_taken() {
    clauses::a_lock_is_given_back_where_it_was_taken::<PostgresSessions>().await;
}

#[tokio::test]
async fn heartbeats_keep_a_session() {
    clauses::heartbeats_keep_a_session::<PostgresSessions>().await;
}

#[tokio::test]
async fn tokens_rise_after_a_restore() {
    clauses::tokens_rise_after_a_restore::<PostgresSessions>().await;
}

#[tokio::test]
async fn many_waits_that_are_given_up_leave_room_for_others() {
    clauses::many_waits_that_are_given_up_leave_room_for_others::<PostgresSessions>().await;
}

/// B88: what is interrupted too early is interrupted again. Which of both a process that goes on hears of first is open, so there are many.
#[tokio::test]
async fn b88_a_wait_ends_that_begins_behind_its_interrupt() {
    const MANY: usize = 16;
    stands::<PostgresSessions>(Way::Names, async |server| {
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
async fn b91_a_pooler_is_found() {
    for way in Way::ALL {
        stands::<PostgresSessions>(way, async |server| {
            let pooler = Pooler::before(server.server.port(), &["locks"], "transaction");
            fencelock::connect(&server.at(pooler.port(), "")).await.is_err()
        })
        .await;
    }
}

/// A session that asked for what it has would be given it past a writer that waits.
#[tokio::test]
async fn a_session_has_a_lock_once() {
    stands::<PostgresSessions>(Way::Names, async |server| {
        let (one, two) = (server.client("").await, server.client("").await);
        let first = one.read_lock("x").acquire().await.unwrap();
        let writes = tokio::spawn(two.write_lock("x").acquire_within(PATIENCE));
        server.comes_to("1|1").await;
        let second = one.read_lock("x").try_acquire().await.unwrap();
        let refused = second.is_none();
        drop((first, second));
        writes.await.unwrap().unwrap().release().await.check().unwrap();
        refused
    })
    .await;
}
