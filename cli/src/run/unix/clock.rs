//! The clock of deadlines: the one fencelock counts leases on, which runs through suspend.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: ClockId = ClockId::Boottime;
/// On macOS the monotonic clock is the continuous one.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: ClockId = ClockId::Monotonic;

/// Now, since some moment in the past that is the same for every process.
pub(crate) fn now() -> Duration {
    let now = clock_gettime(CLOCK);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}
