//! Counts what goes to a store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fencelock::Result;
use fencelock::port::{
    Answer, Capabilities, CellKey, CellStore, Cells, Change, Failure, LeaseStore, LockKey, Look,
    NoticeSink, Step, Swap,
};

use crate::OFFERED;

/// A store that counts batches (round trips, where the store needs one) and steps.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use fencelock::{driver::memory::Memory, runtime::TokioRuntime, Client};
/// use fencelock_sim::{Count, Meter};
/// let runtime = std::sync::Arc::new(TokioRuntime::current().unwrap());
/// let count = Count::default();
/// let store = Meter::new(Memory::new().store(runtime.clone()), count.clone());
/// let client = Client::builder().runtime(runtime).store(store).await?;
/// client.lock("orders:42").acquire().await?.release().await.check()?;
/// assert_eq!(count.batches(), 2);
/// # Ok::<(), fencelock::Error>(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct Meter<S> {
    store: S,
    count: Count,
}

/// The figures of a [`Meter`]; clones show the same.
#[derive(Clone, Debug, Default)]
pub struct Count(Arc<Figures>);

#[derive(Debug, Default)]
struct Figures {
    batches: AtomicU64,
    steps: AtomicU64,
    unanswered: AtomicU64,
    notices: AtomicU64,
}

impl Count {
    /// Batches sent.
    pub fn batches(&self) -> u64 {
        self.0.batches.load(Ordering::Relaxed)
    }

    /// Steps in them.
    pub fn steps(&self) -> u64 {
        self.0.steps.load(Ordering::Relaxed)
    }

    /// Steps that failed.
    pub fn unanswered(&self) -> u64 {
        self.0.unanswered.load(Ordering::Relaxed)
    }

    /// Notices received.
    pub fn notices(&self) -> u64 {
        self.0.notices.load(Ordering::Relaxed)
    }

    fn asked(&self) {
        self.0.batches.fetch_add(1, Ordering::Relaxed);
        self.0.steps.fetch_add(1, Ordering::Relaxed);
    }

    fn failed(&self) {
        self.0.unanswered.fetch_add(1, Ordering::Relaxed);
    }

    fn counted(&self, answers: Vec<Answer>) -> Vec<Answer> {
        let failed = answers.iter().filter(|answer| answer.is_err()).count();
        self.0.batches.fetch_add(1, Ordering::Relaxed);
        self.0.steps.fetch_add(answers.len() as u64, Ordering::Relaxed);
        self.0.unanswered.fetch_add(failed as u64, Ordering::Relaxed);
        answers
    }
}

impl<S: LeaseStore> Meter<S> {
    /// Counts what goes to `store` into `count`.
    pub fn new(store: S, count: Count) -> Self {
        Self { store, count }
    }
}

impl<S: LeaseStore> LeaseStore for Meter<S> {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn warning(&self) -> Option<&'static str> {
        self.store.warning()
    }

    async fn step(&self, batch: &[Step]) -> Vec<Answer> {
        self.count.counted(self.store.step(batch).await)
    }

    async fn step_all(&self, batch: &[Step]) -> Vec<Answer> {
        self.count.counted(self.store.step_all(batch).await)
    }

    async fn listen(&self, sink: NoticeSink) -> Result<()> {
        let count = self.count.clone();
        let counting = move |notice| {
            count.0.notices.fetch_add(1, Ordering::Relaxed);
            sink(notice);
        };
        self.store.listen(Arc::new(counting)).await
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

/// A look or a change counts as a batch of one step.
impl<S: LeaseStore> CellStore for Meter<S> {
    async fn read(&self, key: &CellKey) -> Result<Look> {
        let cells = self.store.cells().expect(OFFERED);
        self.count.asked();
        cells.read(key).await.inspect_err(|_| self.count.failed())
    }

    async fn compare_and_set(&self, change: &Change) -> Result<Swap, Failure> {
        let cells = self.store.cells().expect(OFFERED);
        self.count.asked();
        cells.compare_and_set(change).await.inspect_err(|_| self.count.failed())
    }
}
