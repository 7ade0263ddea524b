//! Waiting for the file while another connection writes: first awake, within SQLite, then asleep.

use std::time::Duration;

use super::fault::{Fault, FaultKind};
use crate::port::{Instant, RuntimeHandle};

/// How often SQLite tries at once: for some 100 µs, many times as long as a step holds the file.
const TRIES: i32 = 16;
const SHORTEST_NAP: Duration = Duration::from_millis(1);
const LONGEST_NAP: Duration = Duration::from_millis(64);

/// SQLite's busy handler: whether it is to try again.
pub(super) fn try_again(tried: i32) -> bool {
    // Whoever has the file may be waiting for this processor.
    std::thread::yield_now();
    tried < TRIES
}

/// Tries until the file is not busy, or until `timeout` after the first time it was. `until` keeps that end from one part of an
/// operation to the next.
pub(super) async fn keep_trying<T>(
    runtime: &RuntimeHandle,
    timeout: Duration,
    until: &mut Option<Instant>,
    attempt: impl Fn() -> Result<T, Fault>,
) -> Result<T, Fault> {
    let mut nap = SHORTEST_NAP;
    loop {
        let error = match attempt() {
            Err(Fault { kind: FaultKind::Busy, error }) => error,
            other => return other,
        };
        let now = runtime.now();
        let until = *until.get_or_insert(now + timeout);
        if now >= until {
            return Err(error.into());
        }
        // Those who collided are not to meet again.
        let mut byte = [0];
        runtime.random(&mut byte);
        let shorter = nap * (512 - u32::from(byte[0])) / 512;
        runtime.sleep_until(until.min(now + shorter)).await;
        nap = LONGEST_NAP.min(nap * 2);
    }
}
