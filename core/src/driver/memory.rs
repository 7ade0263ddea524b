//! The store in this process: locks between the tasks and threads of one program, and the model made tangible.

use std::collections::BTreeMap;
use std::sync::Arc;

#[cfg(all(any(feature = "tokio", feature = "host"), not(target_arch = "wasm32")))]
use once_cell::race::OnceBox;

use crate::driver::cell::CellTable;
use crate::driver::record::{Record, StepContext};
use crate::error::{Error, Result};
use crate::port::{
    Answer, Capabilities, CellKey, CellStore, Cells, Change, Failure, Fence, Guarantee, LeaseStore,
    LockKey, Look, NoticeSink, RuntimeHandle, Step, Swap,
};
use crate::runtime::sync::Mutex;

/// One set of locks in memory. Clients made from the same value exclude each other.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use fencelock::driver::memory::Memory;
/// let memory = Memory::new();
/// let runtime = std::sync::Arc::new(fencelock::runtime::TokioRuntime::current().unwrap());
/// let first = fencelock::Client::builder().store(memory.store(runtime.clone())).await?;
/// let second = fencelock::Client::builder().store(memory.store(runtime)).await?;
/// let guard = first.lock("orders:42").acquire().await?;
/// assert!(second.lock("orders:42").try_acquire().await?.is_none());
/// # guard.release().await.check()?; Ok::<(), fencelock::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<Shelf>>);

/// The sets of one process. The child of a fork begins with none: in what it inherits, whoever was at work in its parent may
/// have left a mutex locked.
#[cfg(all(any(feature = "tokio", feature = "host"), not(target_arch = "wasm32")))]
struct Named {
    process: u32,
    sets: Mutex<BTreeMap<String, Memory>>,
    /// Those of its child, in the child.
    child: OnceBox<Self>,
}

#[cfg(all(any(feature = "tokio", feature = "host"), not(target_arch = "wasm32")))]
impl Named {
    fn of(process: u32) -> Self {
        Self { process, sets: Mutex::default(), child: OnceBox::new() }
    }
}

#[derive(Debug, Default)]
struct Shelf {
    records: BTreeMap<LockKey, Record>,
    cells: CellTable,
    /// Since when it has kept its data.
    born: u64,
    sinks: BTreeMap<Arc<str>, Sink>,
    clients: u64,
    steps: u64,
}

#[derive(Clone)]
struct Sink(NoticeSink);

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sink")
    }
}

pub(super) const FORWARD: Guarantee = Guarantee::new(
    "the machine's clock jumps forward",
    "leases may end early; two clients may believe they hold the lock until the next renewal; the fence covers it",
);
pub(super) const BACK: Guarantee = Guarantee::new(
    "the machine's clock steps back",
    "no guard counts on a longer lease than it asked for; the lock of a holder that died is free one lease after the next client asks for it",
);
pub(super) const JOBS_AHEAD: Guarantee = Guarantee::new(
    "the machine's clock was ahead and is corrected: jobs",
    "a recorded run that lies ahead by more than half a period plus a minute is ignored: the run that is due starts and overwrites the record, but not beside a run in progress, which has the job's lock; a record that lies ahead by less keeps runs from starting until the clock has caught up, and a start reports that",
);

/// The guarantees of a lock in memory, in words.
const GUARANTEES: &[Guarantee] = &[
    Guarantee::new(
        "a task ends or panics without a release",
        "its guard is dropped, and the lock is free at once",
    ),
    Guarantee::new(
        "a guard is forgotten",
        "the lock is held until the process ends or `max_hold` has passed",
    ),
    Guarantee::new(
        "the process ends",
        "the locks end with it; tokens still rise, as far as the clock does not step back",
    ),
    Guarantee::new(
        "the machine sleeps",
        "leases may end meanwhile; a guard reports the loss at the first check",
    ),
    FORWARD,
    BACK,
    JOBS_AHEAD,
];

/// Forgotten records are swept out once in so many steps.
const SWEEP_EVERY: u64 = 4096;

impl Memory {
    /// An empty set of locks.
    pub fn new() -> Self {
        Self::default()
    }

    /// The set of this name in this process: all who ask for the name share it.
    #[cfg(all(any(feature = "tokio", feature = "host"), not(target_arch = "wasm32")))]
    pub(crate) fn named(name: &str, process: u32) -> Self {
        static NAMED: OnceBox<Named> = OnceBox::new();
        let mut named = NAMED.get_or_init(|| Box::new(Named::of(process)));
        while named.process != process {
            named = named.child.get_or_init(|| Box::new(Named::of(process)));
        }
        named.sets.lock().entry(name.to_owned()).or_default().clone()
    }

    /// The set of this name on this thread, of which a module has but one.
    #[cfg(all(feature = "host", target_arch = "wasm32"))]
    pub(crate) fn named(name: &str, _process: u32) -> Self {
        thread_local! {
            static NAMED: std::cell::RefCell<BTreeMap<String, Memory>> = std::cell::RefCell::default();
        }
        NAMED.with_borrow_mut(|named| named.entry(name.to_owned()).or_default().clone())
    }

    /// Loses all data, as a server without persistence does in a restart: for tests of what lies above it.
    #[doc(hidden)]
    pub fn restart(&self, runtime: &RuntimeHandle) {
        let mut shared = self.0.lock();
        shared.records.clear();
        shared.born = runtime.wall();
    }

    /// The store as one more client sees it.
    pub fn store(&self, runtime: RuntimeHandle) -> MemoryStore {
        let mut shared = self.0.lock();
        shared.clients += 1;
        let channel = format!("memory:{}", shared.clients).into();
        MemoryStore { memory: self.clone(), channel, runtime }
    }
}

/// One client's view of a [`Memory`].
#[derive(Debug)]
pub struct MemoryStore {
    memory: Memory,
    channel: Arc<str>,
    runtime: RuntimeHandle,
}

impl std::fmt::Debug for dyn crate::port::Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Runtime")
    }
}

impl MemoryStore {
    fn answer(&self, batch: &[Step], all: bool) -> Vec<Answer> {
        if !self.memory.0.lock().sinks.contains_key(&self.channel) {
            return batch.iter().map(|_| Err(Failure::refused(Error::closed()))).collect();
        }
        let (answers, notices) = self.carry_out(batch, all);
        // The mutex is free by then: a client may ask as soon as it is notified.
        for (sink, notice) in notices {
            sink(notice);
        }
        answers
    }

    fn carry_out<'a>(
        &self,
        batch: &'a [Step],
        all: bool,
    ) -> (Vec<Answer>, Vec<(NoticeSink, crate::port::Notice)>) {
        let now = self.runtime.wall();
        let mut shared = self.memory.0.lock();
        let Shelf { records, sinks, born, .. } = &mut *shared;
        let reachable = |channel: &str| sinks.contains_key(channel);
        let mut context =
            StepContext { born: *born, ..StepContext::new(now, &self.channel, &reachable) };
        let answers: Vec<Answer> = if all {
            let record =
                |step: &'a Step| (step, records.get(&step.lock).cloned().unwrap_or_default());
            let mut copies: Vec<_> = batch.iter().map(record).collect();
            let (answers, granted) = Record::answer_all(&mut copies, &mut context);
            if granted {
                let changed = copies.into_iter();
                records.extend(changed.map(|(step, record)| (step.lock.clone(), record)));
            }
            answers
        } else {
            let apply = |step: &Step| match records.get_mut(&step.lock) {
                Some(record) => record.answer(step, &mut context),
                // A look leaves nothing behind.
                None if step.action.only_looks() => Record::default().answer(step, &mut context),
                None => records.entry(step.lock.clone()).or_default().answer(step, &mut context),
            };
            batch.iter().map(apply).collect()
        };
        let notices = context
            .notices
            .into_iter()
            .filter_map(|(channel, notice)| Some((sinks.get(&channel)?.0.clone(), notice)))
            .collect();
        shared.count(batch.len() as u64, now);
        (answers, notices)
    }

    /// Does something with what is there, unless this client was closed.
    fn open<T>(&self, act: impl FnOnce(&mut Shelf, u64) -> T) -> Result<T> {
        let now = self.runtime.wall();
        let mut shared = self.memory.0.lock();
        if !shared.sinks.contains_key(&self.channel) {
            return Err(Error::closed());
        }
        Ok(act(&mut shared, now))
    }
}

impl Shelf {
    /// So many steps were carried out: now and then, what nobody needs any more is swept out.
    fn count(&mut self, steps: u64, now: u64) {
        let before = self.steps;
        self.steps += steps;
        if before / SWEEP_EVERY != self.steps / SWEEP_EVERY {
            self.records.retain(|_, record| record.forget_after() > now);
            self.cells.forget(now);
        }
    }
}

impl CellStore for MemoryStore {
    async fn read(&self, key: &CellKey) -> Result<Look> {
        self.open(|shelf, now| shelf.cells.look(key, now))
    }

    async fn compare_and_set(&self, change: &Change) -> Result<Swap, Failure> {
        let swapped = self.open(|shelf, now| {
            let swap = shelf.cells.change(change, now)?;
            shelf.count(1, now);
            Ok(swap)
        });
        swapped.map_err(Failure::refused)?
    }
}

impl LeaseStore for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("memory", Fence::ClockBounded).with_guarantees(GUARANTEES)
    }

    async fn step(&self, batch: &[Step]) -> Vec<Answer> {
        self.answer(batch, false)
    }

    async fn step_all(&self, batch: &[Step]) -> Vec<Answer> {
        self.answer(batch, true)
    }

    async fn listen(&self, sink: NoticeSink) -> Result<()> {
        self.memory.0.lock().sinks.insert(self.channel.clone(), Sink(sink));
        Ok(())
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        let shared = self.memory.0.lock();
        let keys = shared.records.keys().filter(|key| key.as_str().starts_with(prefix));
        Ok(keys.cloned().collect())
    }

    fn cells(&self) -> Option<Cells<'_>> {
        Some(Cells::of(self))
    }

    async fn close(&self) {
        self.memory.0.lock().sinks.remove(&self.channel);
    }
}

impl Drop for MemoryStore {
    fn drop(&mut self) {
        self.memory.0.lock().sinks.remove(&self.channel);
    }
}
