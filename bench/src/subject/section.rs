//! The work under the lock: a rest of an exact length. tokio's own timers round up to the next millisecond, which would
//! double a section of one.

use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// See the module.
pub(crate) struct Section {
    timer: AsyncFd<OwnedFd>,
    length: Duration,
}

impl Section {
    pub(crate) fn new(length: Duration) -> Self {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).expect("a timer");
        let timer = AsyncFd::with_interest(timer, Interest::READABLE).expect("a runtime with I/O");
        Self { timer, length }
    }

    pub(crate) async fn pass(&self) {
        let once = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: self.length.try_into().expect("a short time"),
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once).expect("a valid time");
        let mut fired = self.timer.readable().await.expect("the runtime runs");
        let _ = rustix::io::read(&self.timer, &mut [0; 8]);
        fired.clear_ready();
    }
}
