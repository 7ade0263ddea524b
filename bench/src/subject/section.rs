//! The work under the lock: a rest of an exact length. tokio's own timers round up to the next millisecond, which would
//! double a section of one.

use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

/// See the module.
pub(crate) struct Section {
    /// A timer of the kernel's: it reads as a pipe that holds eight bytes when the time is over.
    timer: Receiver,
    length: Duration,
}

impl Section {
    pub(crate) fn new(length: Duration) -> Self {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).expect("a timer");
        let timer = Receiver::from_owned_fd_unchecked(timer).expect("a runtime with I/O");
        Self { timer, length }
    }

    pub(crate) async fn pass(&mut self) {
        let once = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: self.length.try_into().expect("a short time"),
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once).expect("a valid time");
        self.timer.read_exact(&mut [0; 8]).await.expect("the timer fires");
    }
}
