//! A store that is connected to when it can be: until then its steps are refused.

use std::sync::Arc;

use futures_channel::oneshot;

use crate::error::{Code, Error, Result};
use crate::port::backoff::Backoff;
use crate::port::{
    Answer, BoxFuture, Capabilities, Failure, Fence, LeaseHandle, LeaseStore, LockKey, Notice,
    NoticeSink, RuntimeHandle, Step,
};
use crate::runtime::sync::Mutex;

/// How a store is connected to, again and again.
pub(crate) type Connect = Box<dyn Fn() -> BoxFuture<'static, Result<LeaseHandle>> + Send + Sync>;

/// See the module.
pub(crate) struct Standby(Arc<Shared>);

struct Shared {
    runtime: RuntimeHandle,
    state: Mutex<StandbyState>,
}

struct StandbyState {
    store: Option<LeaseHandle>,
    /// Why there is none.
    error: Error,
    sink: Option<NoticeSink>,
    listening: bool,
    closed: bool,
}

impl Standby {
    /// Connects in the background. What became of the first attempt comes on the channel.
    pub(crate) fn start(
        connect: Connect,
        runtime: &RuntimeHandle,
    ) -> (Self, oneshot::Receiver<Result<()>>) {
        let error = Error::new(Code::Unavailable, "not yet connected");
        let state =
            StandbyState { store: None, error, sink: None, listening: false, closed: false };
        let shared = Arc::new(Shared { runtime: runtime.clone(), state: Mutex::new(state) });
        let (first, told) = oneshot::channel();
        runtime.spawn(Box::pin(Arc::clone(&shared).connect(connect, first)));
        (Self(shared), told)
    }
}

impl Shared {
    async fn connect(self: Arc<Self>, connect: Connect, first: oneshot::Sender<Result<()>>) {
        let mut first = Some(first);
        let mut tell = |result: Result<()>| {
            // Nobody left to hear it is fine: then nobody waits for it.
            first.take().map(|first| first.send(result))
        };
        let mut backoff = Backoff::new();
        loop {
            match connect().await {
                Ok(store) => {
                    let closed = {
                        let mut state = self.state.lock();
                        state.store = Some(store.clone());
                        state.closed
                    };
                    if closed {
                        store.close().await;
                    }
                    tell(Ok(()));
                    return self.listen().await;
                }
                Err(error) => {
                    let lasting = !error.retryable();
                    self.state.lock().error = error.clone();
                    tell(Err(error));
                    if lasting || self.state.lock().closed {
                        return;
                    }
                }
            }
            self.runtime.sleep_until(self.runtime.now() + backoff.next()).await;
        }
    }

    /// Subscribes, once both the store and somebody who listens are there.
    async fn listen(&self) {
        let mut backoff = Backoff::new();
        loop {
            let (store, sink) = {
                let mut state = self.state.lock();
                let (Some(store), Some(sink)) = (state.store.clone(), state.sink.clone()) else {
                    return;
                };
                if state.closed || std::mem::replace(&mut state.listening, true) {
                    return;
                }
                (store, sink)
            };
            match store.listen(sink.clone()).await {
                Err(error) if error.retryable() => {}
                _ => return sink(Notice::Gap),
            }
            self.state.lock().listening = false;
            self.runtime.sleep_until(self.runtime.now() + backoff.next()).await;
        }
    }

    fn store(&self) -> Result<LeaseHandle> {
        let state = self.state.lock();
        match &state.store {
            _ if state.closed => Err(Error::closed()),
            Some(store) => Ok(store.clone()),
            None => Err(state.error.clone()),
        }
    }
}

impl LeaseStore for Standby {
    fn capabilities(&self) -> Capabilities {
        let none = Capabilities::new("standby", Fence::ClockBounded);
        self.0.store().map_or(none, |store| store.capabilities())
    }

    fn warning(&self) -> Option<&'static str> {
        self.0.store().ok()?.warning()
    }

    async fn step(&self, batch: &[Step]) -> Vec<Answer> {
        match self.0.store() {
            Ok(store) => store.step(batch.to_vec()).await,
            Err(error) => batch.iter().map(|_| Err(Failure::refused(error.clone()))).collect(),
        }
    }

    async fn listen(&self, sink: NoticeSink) -> Result<()> {
        self.0.state.lock().sink = Some(sink);
        // What cannot be had now is had later, and told as a gap.
        let shared = Arc::clone(&self.0);
        let (done, wait) = oneshot::channel();
        self.0.runtime.spawn(Box::pin(async move {
            shared.listen().await;
            let _ = done.send(());
        }));
        let _ = wait.await;
        Ok(())
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        self.0.store()?.names(prefix).await
    }

    async fn close(&self) {
        let store = {
            let mut state = self.0.state.lock();
            state.closed = true;
            state.store.clone()
        };
        if let Some(store) = store {
            store.close().await;
        }
    }
}
