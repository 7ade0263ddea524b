//! The runtime over tokio and the operating system's clock.

#![allow(clippy::disallowed_methods)] // This is the module that those methods are banned to.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::suspend_clock::now;
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

/// tokio's clock stands still while the machine sleeps: no longer than this after it has woken the true one is looked at.
const SLICE: Duration = Duration::from_secs(1);

/// Completes when `clock` has reached `at`. Made inside tokio; polled anywhere.
fn sleep_until(at: Instant, clock: impl Fn() -> Instant) -> impl Future<Output = ()> {
    let sleep = tokio::time::sleep(at.since(clock()).min(SLICE));
    async move {
        let mut sleep = std::pin::pin!(sleep);
        loop {
            sleep.as_mut().await;
            let left = at.since(clock());
            if left.is_zero() {
                return;
            }
            sleep.as_mut().reset(tokio::time::Instant::now() + left.min(SLICE));
        }
    }
}

impl Runtime for TokioRuntime {
    fn now(&self) -> Instant {
        now()
    }

    fn wall(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        // A timer of tokio is made inside of tokio; the caller may be any thread.
        let _entered = self.0.enter();
        Box::pin(sleep_until(at, now))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.0.spawn(task);
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        self.0.spawn_blocking(work);
    }

    fn process(&self) -> u32 {
        super::process_id()
    }

    fn random(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system's source of randomness answers");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// While the machine sleeps tokio's clock stands still and the one that deadlines are told by goes on.
    #[tokio::test]
    async fn a_sleep_ends_soon_after_the_machine_woke() {
        let (began, hour) = (now(), Duration::from_hours(1));
        let slept = AtomicBool::new(false);
        let clock = || now() + if slept.load(Ordering::Relaxed) { hour } else { Duration::ZERO };
        let mut sleep = std::pin::pin!(sleep_until(began + hour, clock));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(sleep.as_mut().poll(&mut context).is_pending());
        slept.store(true, Ordering::Relaxed);
        tokio::time::timeout(SLICE * 2, sleep).await.expect("it looks at the clock that went on");
    }
}
