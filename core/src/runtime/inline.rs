//! A tokio runtime that is driven by whoever waits on it.
//!
//! A blocking call on a runtime with threads of its own costs two hops between threads for every round trip. Here the
//! calling thread itself drives the I/O. A background thread takes over once nobody has called for a moment, so that
//! leases are renewed and notices heard between calls, and gives the tasks a turn where calls never wait long enough to.

#![allow(clippy::disallowed_methods)] // This is the module that those methods are banned to.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

use crate::error::{Code, Error, Result};

/// The background thread takes over when there was no call for one to two of these.
const QUIET: Duration = Duration::from_millis(2);
/// How often it looks while somebody else drives.
const LOOK: Duration = Duration::from_millis(20);
/// Polls of one turn: a timer wakes the renewer, which sends a batch, whose answer is then taken in.
const TURN: u32 = 4;
/// How long what was given up last may take to settle, and how often it is looked whether it has.
const PARTING: Duration = Duration::from_secs(2);
const PARTING_LOOK: Duration = Duration::from_millis(1);

/// A tokio runtime that the calling thread drives, or a background thread between calls.
#[derive(Debug)]
pub(crate) struct InlineRuntime {
    shared: Arc<Shared>,
    /// The process that made it. In the child of a fork nobody drives.
    process: u32,
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
    /// Whether somebody came to wait for I/O and timers since it was last asked: then the tasks had their turn.
    driven: Arc<AtomicBool>,
    /// Sends the background thread away from the renewer.
    yield_now: Notify,
    closed: AtomicBool,
}

impl InlineRuntime {
    pub(crate) fn new() -> Result<Self> {
        let unavailable = |error| {
            Error::new(Code::Unavailable, "the operating system gave no threads or timers")
                .with_source(error)
        };
        let driven = Arc::new(AtomicBool::new(false));
        let parks = driven.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .on_thread_park(move || parks.store(true, Ordering::Relaxed))
            .build()
            .map_err(unavailable)?;
        let shared = Arc::new(Shared {
            runtime,
            callers: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            background: AtomicBool::new(false),
            driven,
            yield_now: Notify::new(),
            closed: AtomicBool::new(false),
        });
        let background = shared.clone();
        let thread = std::thread::Builder::new().name("fencelock".to_owned());
        thread.spawn(move || background.stand_in()).map_err(unavailable)?;
        Ok(Self { shared, process: std::process::id() })
    }

    pub(crate) fn handle(&self) -> tokio::runtime::Handle {
        self.shared.runtime.handle().clone()
    }

    /// Runs `future` to its end on this thread. Inside an async runtime that would stall it, so it is refused; so it is in the
    /// child of a fork, whose parent's connections it would use.
    pub(crate) fn run<F: Future>(&self, future: F) -> Result<F::Output> {
        if self.process != std::process::id() {
            return Err(Error::forked());
        }
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
        if self.process != std::process::id() {
            // The thread that would take it apart is not here.
            return std::mem::forget(self.shared.clone());
        }
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
                if !self.driven.swap(false, Ordering::Relaxed) {
                    self.turn();
                }
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
        self.part();
    }

    /// Gives the tasks and timers a turn. A call that never waits (memory, SQLite) gives them none, however many come.
    fn turn(&self) {
        // It ends only once the tasks were driven, whoever did it.
        let turn = self.runtime.spawn(async {
            for _ in 0..TURN {
                yield_now().await;
            }
        });
        // It cannot panic, and nobody aborts it.
        let _ = self.runtime.block_on(turn);
    }

    /// The last user is gone: what was given up last is still freed. Every task ends with that, unless somebody kept a part
    /// of the client.
    fn part(&self) {
        self.runtime.block_on(async {
            let end = Instant::now() + PARTING;
            while self.runtime.metrics().num_alive_tasks() > 0 && Instant::now() < end {
                sleep(PARTING_LOOK).await;
            }
        });
    }
}
