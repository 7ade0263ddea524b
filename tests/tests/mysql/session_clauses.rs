//! What locks that live with a session stand on, clause by clause, on a real MariaDB server.

use fencelock_tests::database_sessions::clauses;
use fencelock_tests::mysql::MysqlSessions;

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
