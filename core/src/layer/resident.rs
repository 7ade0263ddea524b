//! Belongs to one process.

use crate::error::{Error, Result};
use crate::port::{
    Answer, Capabilities, CellKey, CellStore, Cells, Change, Failure, LeaseStore, LockKey, Look,
    NoticeSink, OwnerId, RuntimeHandle, Step, StoreEntry, Swap,
};

/// A store that answers `closed` in the child of a fork. What it is made of is its parent's there: two that write to one
/// connection read each other's answers.
pub(crate) struct Resident<S> {
    store: S,
    runtime: RuntimeHandle,
    process: u32,
}

impl<S> Resident<S> {
    pub(crate) fn new(store: S, runtime: RuntimeHandle) -> Self {
        let process = runtime.process();
        Self { store, runtime, process }
    }

    fn check(&self) -> Result<()> {
        if self.process == self.runtime.process() { Ok(()) } else { Err(Error::forked()) }
    }

    /// An answer to each step, if none of them may be taken.
    fn refused(&self, batch: &[Step]) -> Option<Vec<Answer>> {
        let error = self.check().err()?;
        Some(batch.iter().map(|_| Err(Failure::refused(error.clone()))).collect())
    }
}

impl<S: LeaseStore> LeaseStore for Resident<S> {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn warning(&self) -> Option<&'static str> {
        self.store.warning()
    }

    async fn step(&self, batch: &[Step]) -> Vec<Answer> {
        match self.refused(batch) {
            Some(refused) => refused,
            None => self.store.step(batch).await,
        }
    }

    async fn step_all(&self, batch: &[Step]) -> Vec<Answer> {
        match self.refused(batch) {
            Some(refused) => refused,
            None => self.store.step_all(batch).await,
        }
    }

    async fn listen(&self, sink: NoticeSink) -> Result<()> {
        self.check()?;
        self.store.listen(sink).await
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        self.check()?;
        self.store.names(prefix).await
    }

    fn entry(&self, owner: OwnerId) -> Option<StoreEntry> {
        self.store.entry(owner)
    }

    fn cells(&self) -> Option<Cells<'_>> {
        self.store.cells().map(|_| Cells::of(self))
    }

    async fn close(&self) {
        if self.check().is_ok() {
            self.store.close().await;
        }
    }
}

impl<S: LeaseStore> CellStore for Resident<S> {
    async fn read(&self, key: &CellKey) -> Result<Look> {
        self.check()?;
        self.store.cells().ok_or_else(Error::no_cells)?.read(key).await
    }

    async fn compare_and_set(&self, change: &Change) -> Result<Swap, Failure> {
        self.check().map_err(Failure::refused)?;
        let cells = self.store.cells().ok_or_else(|| Failure::refused(Error::no_cells()))?;
        cells.compare_and_set(change).await
    }
}
