//! Faults of locks that live with a session, on a real PostgreSQL server, in both ways.

use fencelock_peers::Program;
use fencelock_tests::database_sessions::faults;
use fencelock_tests::in_both_ways;
use fencelock_tests::postgres::PostgresSessions;

fn actor() -> Program {
    Program::new(env!("CARGO_BIN_EXE_actor"))
}

in_both_ways! {
    PostgresSessions, faults(&actor()):
    the_lock_of_a_killed_process_is_free_at_once,
    killed_holders,
    a_frozen_holder_knows_at_its_first_look,
    b90_b93_an_ended_connection_is_a_loss_that_is_told,
    those_behind_an_ended_connection_may_ask_again,
    a_restart_ends_the_locks_and_not_the_tokens,
    a_silent_network_ends_the_session_on_both_sides,
    what_was_not_answered_is_taken_back,
    a_server_that_hangs_keeps_no_guard_alive,
}
