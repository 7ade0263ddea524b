//! The work of the blocking twin between and after its calls.
#![allow(missing_docs, clippy::disallowed_methods)] // A user of the core may use clocks as it likes.

use std::time::{Duration, Instant};

use fencelock::blocking::connect;

const MS: Duration = Duration::from_millis(1);

/// The guard's end is still told to the store when the last handle of its client goes in the same moment.
#[test]
fn what_the_last_handle_gave_up_is_freed() {
    for round in 0..20 {
        let url = "memory:parting?ttl=30s";
        let client = connect(url).unwrap();
        let guard = client.lock("x").acquire().unwrap();
        drop(client);
        drop(guard);
        let other = connect(url).unwrap();
        let next = other.lock("x").acquire_within(3000 * MS);
        assert!(next.is_ok(), "round {round}: {next:?}");
        let _ = next.unwrap().release();
    }
}

/// A thread that calls without a pause, and never has to wait, does not keep the others' leases from being renewed.
#[test]
fn a_busy_thread_starves_no_renewal() {
    let client = connect("memory:busy").unwrap();
    let leader = client.lock("leader").ttl(3000 * MS).acquire().unwrap();
    let end = Instant::now() + 4000 * MS;
    while Instant::now() < end {
        let guard = client.lock("short").acquire().unwrap();
        assert!(leader.is_held(), "the leader's lease was not renewed");
        guard.release().check().unwrap();
    }
    assert_eq!(leader.release(), fencelock::Released::Released);
}
