//! The delays between two tries, for who was refused by a store that is not there: cut short when it is there again.

use std::sync::Arc;
use std::time::Duration;

use event_listener::Event;
use futures_util::future::select;

use crate::port::{BoxFuture, RuntimeHandle};

/// However often the store comes back, nobody tries more often than this.
const LEAST: Duration = Duration::from_millis(40);

/// Where all delays of a client are taken. Cheap to clone.
#[derive(Clone)]
pub(crate) struct RetryDelays {
    runtime: RuntimeHandle,
    back: Arc<Event>,
}

impl RetryDelays {
    pub(crate) fn new(runtime: RuntimeHandle) -> Self {
        Self { runtime, back: Arc::default() }
    }

    /// The store is there again, as far as anybody can tell.
    pub(crate) fn end(&self) {
        self.back.notify(usize::MAX);
    }

    /// Completes after this time, or soon after the store has come back.
    pub(crate) fn rest(&self, time: Duration) -> BoxFuture<'static, ()> {
        let now = self.runtime.now();
        let whole = self.runtime.sleep_until(now + time);
        if time <= LEAST {
            return whole;
        }
        let (runtime, back) = (self.runtime.clone(), self.back.listen());
        Box::pin(async move {
            let early = Box::pin(async move {
                back.await;
                runtime.sleep_until(now + LEAST).await;
            });
            select(whole, early).await;
        })
    }
}
