//! The clock that deadlines are told by: it runs on while the machine is suspended.

#![allow(clippy::disallowed_methods)] // This is the module that those methods are banned to.

#[cfg(unix)]
use rustix::time::{ClockId, clock_gettime};

use crate::port::Instant;

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: ClockId = ClockId::Boottime;
/// On macOS the monotonic clock is the continuous one, which runs through sleep.
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
const CLOCK: ClockId = ClockId::Monotonic;

/// Now, since some moment in the past.
#[cfg(unix)]
pub(super) fn now() -> Instant {
    let time = clock_gettime(CLOCK);
    Instant::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Now, since the first call. On Windows the standard library reads the performance counter, which also counts standby and
/// hibernation.
#[cfg(windows)]
pub(super) fn now() -> Instant {
    use std::sync::LazyLock;
    use std::time::Instant as Counter;
    static FIRST: LazyLock<Counter> = LazyLock::new(Counter::now);
    Instant::from_nanos(FIRST.elapsed().as_nanos() as u64)
}
