//! Faults on a real MariaDB server: killed servers and connections, answers that are lost or late, rows somebody keeps locked,
//! transactions that the server undoes, cancelled calls.

use std::time::Instant;

use fencelock_tests::database::connect;
use fencelock_tests::database_faults::{self, PATIENCE, behind, take_turns};
use fencelock_tests::mysql::MysqlServer;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_keeps_the_locks() {
    database_faults::a_restart_keeps_the_locks::<MysqlServer>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b90_b93_ended_connections_cost_no_lock() {
    database_faults::ended_connections_cost_no_lock::<MysqlServer>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_not_answered_is_taken_back() {
    database_faults::what_was_not_answered_is_taken_back::<MysqlServer>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_take_that_arrives_late_grants_nothing() {
    database_faults::a_take_that_arrives_late_grants_nothing::<MysqlServer>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_row_holds_up_no_other_lock() {
    database_faults::a_locked_row_holds_up_no_other_lock::<MysqlServer>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b87_isolation_levels_exclude_each_other() {
    database_faults::isolation_levels_exclude_each_other::<MysqlServer>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_calls_leave_nothing() {
    database_faults::cancelled_calls_leave_nothing::<MysqlServer>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b83_a_row_that_is_gone_is_made_again() {
    database_faults::a_row_that_is_gone_is_made_again::<MysqlServer>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_wakes_the_next() {
    database_faults::a_release_wakes_the_next::<MysqlServer>().await;
}

/// B86: the server undoes every third write of a row, as by a deadlock or where a row stays locked; no lock is lost by it or given back
/// twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b86_undone_statements_are_repeated() {
    let server = MysqlServer::start();
    let url = server.place("a");
    let clients = [connect(&url).await, connect(&url).await, connect(&url).await];
    server.sql(
        "CREATE TABLE a.fuse (id int PRIMARY KEY, number int) ENGINE=MyISAM; INSERT INTO a.fuse VALUES (1, 0)",
    );
    let socket = Some(server.socket().display().to_string());
    let mut owner =
        Conn::new(OptsBuilder::default().user(Some("root")).socket(socket)).await.unwrap();
    for (number, state) in [(1213, "40001"), (1205, "HY000")] {
        // The command-line client would end the statement at its first semicolon.
        let undo = format!(
            "DROP TRIGGER IF EXISTS a.undo; CREATE TRIGGER a.undo BEFORE UPDATE ON a.fencelock FOR EACH ROW BEGIN
                 UPDATE a.fuse SET number = number + 1 WHERE id = 1;
                 IF (SELECT number FROM a.fuse WHERE id = 1) % 3 = 0 THEN
                     SIGNAL SQLSTATE '{state}' SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = 'undone';
                 END IF; END"
        );
        owner.query_drop(undo).await.unwrap();
        take_turns(&clients).await;
    }
}

/// A client that stands still within a transaction keeps the row for a second, and what it does after that counts for nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_stands_still_in_a_transaction_is_cut_off() {
    let server = MysqlServer::start();
    let (proxy, one, two) = behind(&server, "a").await;
    two.write_lock("x").acquire().await.unwrap().release().await.check().unwrap();
    let held = proxy.hold_replies();
    // Every step on it is a transaction. The answer to its first flight stays on the way.
    let stuck = tokio::spawn(one.write_lock("x").try_acquire());
    let began = Instant::now();
    while server.sql("SELECT COUNT(*) FROM information_schema.INNODB_TRX") == "0" {
        assert!(began.elapsed() < PATIENCE, "it has begun");
    }
    let guard = two.write_lock("x").acquire_within(PATIENCE).await.unwrap();
    drop(held);
    let tried = stuck.await.unwrap();
    assert!(!matches!(tried, Ok(Some(_))), "{tried:?}");
    assert!(guard.is_held());
    guard.release().await.check().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u12_a_burst_leaves_few_connections() {
    database_faults::a_burst_leaves_few_connections::<MysqlServer>().await;
}
