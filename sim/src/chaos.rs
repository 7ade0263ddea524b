//! Fails on purpose, so that what a lossy network does can be had in front of any store.

use std::sync::Arc;
use std::time::Duration;

use fencelock::port::{
    Answer, Capabilities, CellKey, CellStore, Cells, Change, Failure, LeaseStore, LockKey, Look,
    MaybeSend, MaybeSync, NoticeSink, RuntimeHandle, Step, Swap,
};
use fencelock::{Code, Error, Result};

use crate::OFFERED;

/// The fate of one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It goes through.
    None,
    /// It goes through, this much later.
    Late(Duration),
    /// It does not reach the store, and the caller knows.
    Refused,
    /// It does not reach the store, and the caller does not know.
    RequestLost,
    /// It is carried out, and the caller does not know.
    ReplyLost,
}

/// A store whose batches meet the faults a function chooses.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use fencelock::{driver::memory::Memory, runtime::TokioRuntime, Client, Code};
/// use fencelock_sim::{Chaos, Fault};
/// let runtime = std::sync::Arc::new(TokioRuntime::current().unwrap());
/// let store = Chaos::new(Memory::new().store(runtime.clone()), runtime.clone(), || Fault::Refused);
/// let client = Client::builder().runtime(runtime).store(store).await?;
/// assert_eq!(client.lock("orders:42").try_acquire().await.unwrap_err().code(), Code::Unavailable);
/// # Ok::<(), fencelock::Error>(()) }).unwrap();
/// ```
pub struct Chaos<S, F> {
    store: S,
    runtime: RuntimeHandle,
    choose: Arc<F>,
}

impl<S: LeaseStore, F: Fn() -> Fault + MaybeSend + MaybeSync + 'static> Chaos<S, F> {
    /// Puts faults in front of `store`; `choose` is asked once per batch.
    pub fn new(store: S, runtime: RuntimeHandle, choose: F) -> Self {
        Self { store, runtime, choose: Arc::new(choose) }
    }
}

impl<S: LeaseStore, F: Fn() -> Fault + MaybeSend + MaybeSync + 'static> Chaos<S, F> {
    /// Sends a batch of so many steps through the fault of the moment.
    async fn struck(&self, count: usize, send: impl Future<Output = Vec<Answer>>) -> Vec<Answer> {
        let all = |failure: fn(Error) -> Failure| {
            (0..count).map(|_| Err(failure(unavailable()))).collect()
        };
        match (self.choose)() {
            Fault::None => send.await,
            Fault::Late(delay) => {
                self.runtime.sleep_until(self.runtime.now() + delay).await;
                send.await
            }
            Fault::Refused => all(Failure::refused),
            Fault::RequestLost => all(Failure::unknown),
            Fault::ReplyLost => {
                send.await;
                all(Failure::unknown)
            }
        }
    }
}

fn unavailable() -> Error {
    Error::new(Code::Unavailable, "the network failed on purpose")
}

impl<S: LeaseStore, F: Fn() -> Fault + MaybeSend + MaybeSync + 'static> LeaseStore for Chaos<S, F> {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn warning(&self) -> Option<&'static str> {
        self.store.warning()
    }

    async fn step(&self, batch: &[Step]) -> Vec<Answer> {
        self.struck(batch.len(), self.store.step(batch)).await
    }

    async fn step_all(&self, batch: &[Step]) -> Vec<Answer> {
        self.struck(batch.len(), self.store.step_all(batch)).await
    }

    async fn listen(&self, sink: NoticeSink) -> Result<()> {
        self.store.listen(sink).await
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        self.store.names(prefix).await
    }

    fn cells(&self) -> Option<Cells<'_>> {
        self.store.cells().map(|_| Cells::of(self))
    }

    async fn close(&self) {
        self.store.close().await;
    }
}

impl<S: LeaseStore, F: Fn() -> Fault + MaybeSend + MaybeSync + 'static> CellStore for Chaos<S, F> {
    async fn read(&self, key: &CellKey) -> Result<Look> {
        let cells = self.store.cells().expect(OFFERED);
        match (self.choose)() {
            Fault::None => {}
            Fault::Late(delay) => self.runtime.sleep_until(self.runtime.now() + delay).await,
            Fault::Refused | Fault::RequestLost | Fault::ReplyLost => return Err(unavailable()),
        }
        cells.read(key).await
    }

    async fn compare_and_set(&self, change: &Change) -> Result<Swap, Failure> {
        let cells = self.store.cells().expect(OFFERED);
        match (self.choose)() {
            Fault::None => {}
            Fault::Late(delay) => self.runtime.sleep_until(self.runtime.now() + delay).await,
            Fault::Refused => return Err(Failure::refused(unavailable())),
            Fault::RequestLost => return Err(Failure::unknown(unavailable())),
            Fault::ReplyLost => {
                cells.compare_and_set(change).await?;
                return Err(Failure::unknown(unavailable()));
            }
        }
        cells.compare_and_set(change).await
    }
}

impl<S: std::fmt::Debug, F> std::fmt::Debug for Chaos<S, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Chaos").field(&self.store).finish()
    }
}
