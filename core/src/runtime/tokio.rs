//! The runtime over tokio and the operating system's clock.

#![allow(clippy::disallowed_methods)] // This is the room those methods are banned to.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::port::{BoxFuture, Instant, Runtime};

/// Runs a client on a tokio runtime.
///
/// ```
/// let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
/// let runtime = fencelock::runtime::TokioRuntime::of(tokio.handle().clone());
/// # drop(runtime);
/// ```
#[derive(Clone, Debug)]
pub struct TokioRuntime(tokio::runtime::Handle);

impl TokioRuntime {
    /// On this tokio runtime; its timers (and for Redis and SQLite its I/O) have to be enabled.
    pub fn of(handle: tokio::runtime::Handle) -> Self {
        Self(handle)
    }

    /// On the tokio runtime this is called in, if it is.
    pub fn current() -> Option<Self> {
        tokio::runtime::Handle::try_current().ok().map(Self)
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
/// On macOS the monotonic clock is the continuous one, which runs through sleep.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

impl Runtime for TokioRuntime {
    fn now(&self) -> Instant {
        let time = rustix::time::clock_gettime(CLOCK);
        Instant::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }

    fn wall(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        let left = at.since(self.now());
        let _entered = self.0.enter();
        // tokio refuses moments beyond its own clock's range; nobody waits 30 years for a lock.
        Box::pin(tokio::time::sleep(left.min(Duration::from_secs(1 << 30))))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.0.spawn(task);
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        self.0.spawn_blocking(work);
    }

    fn random(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system's source of randomness answers");
    }
}
