//! Faults on a real PostgreSQL server: killed servers and backends, answers that are lost or late, rows somebody keeps locked,
//! transactions that the server undoes, cancelled calls.

use fencelock_tests::database::connect;
use fencelock_tests::database_faults::{self, take_turns};
use fencelock_tests::postgres::PostgresServer;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_keeps_the_locks() {
    database_faults::a_restart_keeps_the_locks::<PostgresServer>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b90_b93_ended_backends_cost_no_lock() {
    database_faults::ended_connections_cost_no_lock::<PostgresServer>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_not_answered_is_taken_back() {
    database_faults::what_was_not_answered_is_taken_back::<PostgresServer>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_take_that_arrives_late_grants_nothing() {
    database_faults::a_take_that_arrives_late_grants_nothing::<PostgresServer>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_row_holds_up_no_other_lock() {
    database_faults::a_locked_row_holds_up_no_other_lock::<PostgresServer>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b87_isolation_levels_exclude_each_other() {
    database_faults::isolation_levels_exclude_each_other::<PostgresServer>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_calls_leave_nothing() {
    database_faults::cancelled_calls_leave_nothing::<PostgresServer>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b83_a_row_that_is_gone_is_made_again() {
    database_faults::a_row_that_is_gone_is_made_again::<PostgresServer>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_wakes_the_next_by_a_notice() {
    database_faults::a_release_wakes_the_next::<PostgresServer>().await;
}

/// B86: the server undoes every third statement that writes, as a deadlock or a serialization failure; no lock is lost by it or given
/// back twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b86_undone_statements_are_repeated() {
    let server = PostgresServer::start();
    for (user, state) in [("a", "40001"), ("b", "40P01")] {
        let url = server.place(user);
        let clients = [connect(&url).await, connect(&url).await, connect(&url).await];
        server.sql(&format!(
            "SET search_path = {user}; CREATE SEQUENCE fuse; GRANT USAGE ON fuse TO {user};
             CREATE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 IF nextval('{user}.fuse') % 3 = 0 THEN RAISE 'undone' USING ERRCODE = '{state}'; END IF;
                 RETURN NEW; END $$;
             CREATE TRIGGER undo BEFORE INSERT OR UPDATE ON fencelock FOR EACH ROW EXECUTE FUNCTION undo()"
        ));
        take_turns(&clients).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u12_a_burst_leaves_few_connections() {
    database_faults::a_burst_leaves_few_connections::<PostgresServer>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u12_more_clients_than_connections_get_their_turns() {
    let (clients, most) = if fencelock_tests::in_full() { (200, 100) } else { (40, 30) };
    let server = PostgresServer::start_with(&[&format!("max_connections={most}")]);
    database_faults::more_clients_than_connections_get_their_turns(server, clients).await;
}
