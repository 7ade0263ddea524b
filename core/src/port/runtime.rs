//! The clock, the timers, the tasks and the randomness: everything a deterministic run has to replace.

use std::future::Future;
use std::ops::{Add, Sub};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};

use super::marker::{BoxFuture, MaybeSend, MaybeSync};

/// A moment on the local clock that runs through suspend, in nanoseconds from an arbitrary start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// A moment later than any other.
    pub const FAR: Self = Self(u64::MAX);

    /// The moment `nanos` after the clock's start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, rhs: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// The services that the algorithms need of a platform.
pub trait Runtime: MaybeSend + MaybeSync + 'static {
    /// The local clock. It runs through suspend and never steps back.
    fn now(&self) -> Instant;
    /// Microseconds since 1970 on the wall clock. Only stores that live in this process read it, as *their* clock.
    fn wall(&self) -> u64;
    /// Completes when [`Runtime::now`] has reached `at`.
    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()>;
    /// Runs a task to its end, beside the caller.
    fn spawn(&self, task: BoxFuture<'static, ()>);
    /// Runs work that waits for a disk where it holds up no task. A platform without threads does it at once.
    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        work();
    }
    /// Which process this is: another one in the child of a fork. A platform without forks has one.
    fn process(&self) -> u32 {
        0
    }
    /// Fills `bytes` from a cryptographically secure source (a seeded one in the simulator).
    fn random(&self, bytes: &mut [u8]);
}

impl dyn Runtime {
    /// Completes after this time.
    pub(crate) fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        self.sleep_until(self.now() + time)
    }

    /// The result of this work; `None` if it is not there at `end`. Then the work is dropped.
    pub(crate) async fn until<T>(&self, end: Instant, work: impl Future<Output = T>) -> Option<T> {
        match select(pin!(work), self.sleep_until(end)).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(_) => None,
        }
    }
}

/// A shared runtime.
pub type RuntimeHandle = Arc<dyn Runtime>;
