//! How many runs are in progress, and their end when the client closes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use event_listener::Event;
use futures_util::future::{Either, Ready, ready};

/// The runs of one client.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<Inner>);

#[derive(Default)]
struct Inner {
    count: AtomicUsize,
    closing: AtomicBool,
    over: AtomicBool,
    /// The client closes.
    closes: Event,
    /// One run less.
    settled: Event,
}

/// One run, from before its start until its end is marked.
pub(crate) struct InProgress(Arc<Inner>);

impl Runs {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.count.load(Ordering::SeqCst)
    }

    /// One more, before it is asked for. `None` once the client closes: either the one who begins sees that, or the one who
    /// closes sees it.
    pub(crate) fn begin(&self) -> Option<InProgress> {
        self.0.count.fetch_add(1, Ordering::SeqCst);
        let in_progress = InProgress(self.0.clone());
        (!self.0.closing.load(Ordering::SeqCst)).then_some(in_progress)
    }

    /// Completes when the client closes.
    pub(crate) fn closing(&self) -> Either<Ready<()>, event_listener::EventListener> {
        let listener = self.0.closes.listen();
        if self.0.closing.load(Ordering::Acquire) {
            Either::Left(ready(()))
        } else {
            Either::Right(listener)
        }
    }

    /// Has every run end, and waits until they have.
    pub(crate) async fn close(&self) {
        self.0.closing.store(true, Ordering::SeqCst);
        self.0.closes.notify(usize::MAX);
        loop {
            let settled = self.0.settled.listen();
            if self.count() == 0 {
                return;
            }
            settled.await;
        }
    }

    /// From now on the store answers nothing any more.
    pub(crate) fn give_up(&self) {
        self.0.over.store(true, Ordering::Release);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.over.load(Ordering::Acquire)
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::AcqRel);
        self.0.settled.notify(usize::MAX);
    }
}
