//! A queue store in this process: the model of [`QueueStore`], and that model made tangible.
//!
//! The drivers of stores with sessions are compared with it, outcome by outcome, and the simulator runs the entry queue on it.

mod model;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use fencelock::driver::cell::CellTable;
use fencelock::port::{
    Capabilities, CellKey, CellStore, Cells, Change, Entry, EntryView, Failure, Fence, Instant,
    Joined, LockKey, Look, OwnerId, QueueSink, QueueStore, Rank, RuntimeHandle, SessionId,
    Standing, Swap,
};
use fencelock::{Code, Error, Result};
use parking_lot::Mutex;

pub use self::model::QueueModel;

/// Queues of entries in memory. Clients made from the same value exclude each other.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use std::{sync::Arc, time::Duration};
/// use fencelock::{Client, Queue, runtime::TokioRuntime};
/// use fencelock_sim::MemoryQueue;
/// let runtime = Arc::new(TokioRuntime::current().unwrap());
/// let memory = MemoryQueue::new(runtime.clone());
/// let queue = Queue::new(memory.store(), runtime.clone(), Duration::from_secs(30));
/// let client = Client::builder().runtime(runtime).store(queue).await?;
/// client.lock("orders:42").acquire().await?.release().await.check()?;
/// # Ok::<(), fencelock::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct MemoryQueue(Arc<Shelf>);

#[derive(Debug)]
struct Shelf {
    clock: RuntimeHandle,
    state: Mutex<Contents>,
}

#[derive(Default)]
struct Contents {
    model: QueueModel,
    cells: CellTable,
    sinks: BTreeMap<SessionId, QueueSink>,
}

impl std::fmt::Debug for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.model.fmt(f)
    }
}

/// The first rank is the clock's time divided by this, so that the tokens made of ranks rise from one process to the next.
const TOKENS_OF_A_RANK: u64 = 32;

impl MemoryQueue {
    /// An empty store. Its sessions end by this clock.
    pub fn new(clock: RuntimeHandle) -> Self {
        let model = QueueModel::above(clock.wall() / TOKENS_OF_A_RANK);
        let state = Mutex::new(Contents { model, ..Contents::default() });
        Self(Arc::new(Shelf { clock, state }))
    }

    /// The store as one more client sees it.
    pub fn store(&self) -> MemoryQueueStore {
        MemoryQueueStore { shelf: self.0.clone(), closed: AtomicBool::new(false) }
    }
}

/// One client's view of a [`MemoryQueue`].
#[derive(Debug)]
pub struct MemoryQueueStore {
    shelf: Arc<Shelf>,
    closed: AtomicBool,
}

impl Shelf {
    /// Does something at this moment, and tells whoever is to be told.
    fn act<T>(&self, act: impl FnOnce(&mut QueueModel, Instant) -> T) -> T {
        let now = self.clock.now();
        let mut state = self.state.lock();
        state.model.expire(now);
        let done = act(&mut state.model, now);
        let told = state.model.told();
        let sinks: Vec<_> = told
            .into_iter()
            .filter_map(|(id, notice)| Some((state.sinks.get(&id)?.clone(), notice)))
            .collect();
        let Contents { model, sinks: all, .. } = &mut *state;
        all.retain(|id, _| model.ends(*id).is_some());
        drop(state);
        for (sink, notice) in sinks {
            sink(notice);
        }
        done
    }
}

fn closed() -> Error {
    Error::new(Code::Closed, "the store was closed")
}

/// Ends a session when its time is over.
async fn watch_the_clock(shelf: Weak<Shelf>, clock: RuntimeHandle, id: SessionId) {
    loop {
        let ends = shelf.upgrade().and_then(|shelf| shelf.act(|model, _| model.ends(id)));
        let Some(ends) = ends else { return };
        clock.sleep_until(ends).await;
    }
}

impl MemoryQueueStore {
    fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Relaxed) { Err(closed()) } else { Ok(()) }
    }

    fn act<T>(
        &self,
        act: impl FnOnce(&mut QueueModel, Instant) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.check_open().map_err(Failure::refused)?;
        self.shelf.act(act)
    }

    fn look<T>(&self, look: impl FnOnce(&mut QueueModel, Instant) -> T) -> Result<T> {
        self.act(|model, now| Ok(look(model, now))).map_err(|failure| failure.error)
    }
}

impl CellStore for MemoryQueueStore {
    async fn read(&self, key: &CellKey) -> Result<Look> {
        self.check_open()?;
        let now = self.shelf.clock.wall();
        Ok(self.shelf.state.lock().cells.look(key, now))
    }

    async fn compare_and_set(&self, change: &Change) -> Result<Swap, Failure> {
        self.check_open().map_err(Failure::refused)?;
        let now = self.shelf.clock.wall();
        self.shelf.state.lock().cells.change(change, now)
    }
}

impl QueueStore for MemoryQueueStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("memory", Fence::ClockBounded)
    }

    async fn open(&self, ttl: Duration, sink: QueueSink) -> Result<SessionId> {
        let id = self.look(|model, now| model.open(ttl, now))?;
        self.shelf.state.lock().sinks.insert(id, sink);
        let (shelf, clock) = (Arc::downgrade(&self.shelf), self.shelf.clock.clone());
        let ending = watch_the_clock(shelf, clock, id);
        self.shelf.clock.spawn(Box::pin(ending));
        Ok(id)
    }

    async fn beat(&self, of: SessionId) -> Result<Duration, Failure> {
        self.act(|model, now| model.beat(of, now))
    }

    async fn join(
        &self,
        of: SessionId,
        lock: &LockKey,
        entry: &Entry,
    ) -> Result<Option<Joined>, Failure> {
        self.act(|model, now| model.join(of, lock, entry, now))
    }

    async fn watch(
        &self,
        of: SessionId,
        lock: &LockKey,
        known: &[Standing],
    ) -> Result<Vec<Rank>, Failure> {
        self.act(|model, _| model.watch(of, lock, known))
    }

    async fn leave(
        &self,
        of: SessionId,
        lock: &LockKey,
        owner: OwnerId,
        at: Option<&Rank>,
    ) -> Result<bool, Failure> {
        self.act(|model, _| model.leave(of, lock, owner, at))
    }

    async fn list(&self, lock: &LockKey) -> Result<Vec<EntryView>> {
        self.look(|model, now| model.list(lock, now))
    }

    async fn end(&self, of: SessionId) -> Result<(), Failure> {
        self.shelf.act(|model, _| model.end(of));
        Ok(())
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        self.look(|model, _| model.names(prefix))
    }

    fn cells(&self) -> Option<Cells<'_>> {
        Some(Cells::of(self))
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}
