//! Locks that live with a session stand on these clauses, on a real MariaDB server.

use fencelock_tests::database::connect;
use fencelock_tests::database_sessions::clauses::{self, SOON, stands};
use fencelock_tests::database_sessions::{DatabaseSessions, Way};
use fencelock_tests::mysql::{MysqlSessions, Switch};
use tokio::time::timeout;

#[tokio::test]
async fn the_end_of_a_connection_is_told_at_once() {
    clauses::the_end_of_a_connection_is_told_at_once::<MysqlSessions>().await;
}

#[tokio::test]
async fn a_lock_is_given_back_where_it_was_taken() {
    clauses::a_lock_is_given_back_where_it_was_taken::<MysqlSessions>().await;
}

#[tokio::test]
async fn heartbeats_keep_a_session() {
    clauses::heartbeats_keep_a_session::<MysqlSessions>().await;
}

#[tokio::test]
async fn tokens_rise_after_a_restore() {
    clauses::tokens_rise_after_a_restore::<MysqlSessions>().await;
}

#[tokio::test]
async fn many_waits_that_are_given_up_leave_room_for_others() {
    clauses::many_waits_that_are_given_up_leave_room_for_others::<MysqlSessions>().await;
}

/// B91: the answers of another session are noticed, and that is a loss.
#[tokio::test]
async fn b91_another_session_is_noticed() {
    for way in Way::ALL {
        stands::<MysqlSessions>(way, async |server| {
            let proxy = Switch::before(server.port()).await;
            let client = connect(&server.at(proxy.port(), "?ttl=3s")).await;
            let guard = client.lock("x").acquire().await.unwrap();
            proxy.switch();
            let told = timeout(SOON, guard.lost()).await.is_ok();
            drop(proxy);
            told && !guard.is_held()
        })
        .await;
    }
}
