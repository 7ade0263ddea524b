//! A tokio runtime that is driven by whoever waits on it.
//!
//! A blocking call on a runtime with threads of its own costs two hops between threads for every round trip. Here the
//! calling thread itself drives the I/O. A background thread takes over once nobody has called for a moment, so that
//! leases are renewed and notices heard between calls.

#![allow(clippy::disallowed_methods)] // This is the room those methods are banned to.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::Notify;

use crate::error::{Code, Error, Result};

/// The background thread takes over when there was no call for one to two of these.
const QUIET: Duration = Duration::from_millis(2);
/// How often it looks while somebody else drives.
const LOOK: Duration = Duration::from_millis(20);

/// See the module.
#[derive(Debug)]
pub(crate) struct InlineRuntime {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    runtime: Runtime,
    /// Calls that are waiting right now.
    callers: AtomicU64,
    /// Calls ever made.
    calls: AtomicU64,
    /// Whether the background thread drives.
    background: AtomicBool,
    /// Sends the background thread away from the wheel.
    yield_now: Notify,
    closed: AtomicBool,
}

impl InlineRuntime {
    pub(crate) fn new() -> Result<Self> {
        let unavailable = |error| {
            Error::new(Code::Unavailable, "the operating system gave no threads or timers")
                .with_source(error)
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(unavailable)?;
        let shared = Arc::new(Shared {
            runtime,
            callers: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            background: AtomicBool::new(false),
            yield_now: Notify::new(),
            closed: AtomicBool::new(false),
        });
        let background = shared.clone();
        let thread = std::thread::Builder::new().name("fencelock".to_owned());
        thread.spawn(move || background.stand_in()).map_err(unavailable)?;
        Ok(Self { shared })
    }

    pub(crate) fn handle(&self) -> tokio::runtime::Handle {
        self.shared.runtime.handle().clone()
    }

    /// Runs `future` to its end on this thread. Inside an async runtime that would stall it, so it is refused.
    pub(crate) fn run<F: Future>(&self, future: F) -> Result<F::Output> {
        if tokio::runtime::Handle::try_current().is_ok() {
            let message =
                "a blocking call inside an async runtime would stall it; use the async API there";
            return Err(Error::new(Code::Invalid, message));
        }
        let shared = &*self.shared;
        shared.calls.fetch_add(1, Ordering::Relaxed);
        shared.callers.fetch_add(1, Ordering::SeqCst);
        let _leaving = Leaving(shared);
        if shared.background.load(Ordering::SeqCst) {
            shared.yield_now.notify_one();
        }
        Ok(shared.runtime.block_on(future))
    }
}

struct Leaving<'a>(&'a Shared);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.callers.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for InlineRuntime {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        self.shared.yield_now.notify_one();
    }
}

impl Shared {
    /// The background thread: drives while nobody else does.
    fn stand_in(&self) {
        let mut seen = 0;
        while !self.closed.load(Ordering::SeqCst) {
            let calls = self.calls.load(Ordering::Relaxed);
            let quiet = calls == seen && self.callers.load(Ordering::SeqCst) == 0;
            if !quiet {
                let waiting = calls == seen;
                seen = calls;
                std::thread::sleep(if waiting { LOOK } else { QUIET });
                continue;
            }
            self.background.store(true, Ordering::SeqCst);
            // A caller that came before it could see the flag leaves no notice: look once more.
            if self.callers.load(Ordering::SeqCst) == 0 {
                self.runtime.block_on(self.yield_now.notified());
            }
            self.background.store(false, Ordering::SeqCst);
        }
    }
}
