//! Locks between the processes of one machine, in one SQLite file.
//!
//! The file is fencelock's own, on a local disk, with a write-ahead log. A batch of steps is one short transaction that loads
//! each lock's row into the model's [`Record`](super::record::Record), applies the steps and writes back what changed;
//! it runs where it is awaited, for some 10 µs. A busy file is waited for asleep, beside other tasks; so is the disk.
//!
//! The store's clock is the machine's. `kill -9` at any moment leaves the file sound: SQLite's log is read again by
//! whoever comes next. Waiters are woken through a Unix datagram socket that each listening client binds beside the file.
//! Where there are no such sockets, on Windows, waiters ask again by themselves.

mod cell;
mod database;
mod fault;
mod fence;
mod file;
mod fork;
mod guarantees;
mod notices;
mod row;
#[cfg(all(test, unix))]
mod tests;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use self::database::{Open, Opened, keep_trying, write_back};
use self::fault::Fault;
pub use self::fence::gate_trigger;
pub use self::fork::{Stillness, still};
use self::notices::{Addresses, Notices};
use crate::driver::record::StepContext;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::port::{
    Action, Answer, Capabilities, CellKey, CellStore, Cells, Change, Failure, Fence, Instant,
    LeaseStore, LockKey, Look, NoticeSink, RuntimeHandle, Step, Swap,
};
use crate::runtime::sync::Mutex;

/// The most steps of one transaction: a larger batch takes several, so that neither this thread's other tasks nor other
/// processes wait for long.
const PART: usize = 64;

/// One client's view of the locks in a file.
///
/// It belongs to the process that opened it: in a forked child every call answers `closed`.
pub struct SqliteStore {
    open: Arc<Opened>,
    notices: Arc<Notices>,
    path: String,
    timeout: Duration,
    runtime: RuntimeHandle,
    process: u32,
}

impl SqliteStore {
    /// Opens the file at `path`, and makes it if there is none; its directory has to exist. While other programs keep the
    /// file busy it is tried again, for `connect_timeout`; a step later on for `timeout`.
    pub async fn open(path: &Path, options: &Options, runtime: RuntimeHandle) -> Result<Self> {
        let shown = path.display().to_string();
        fork::check_inherited().map_err(|error| error.with("path", &*shown))?;
        // Before it is open: a fork may come right after.
        let open = Arc::new(Mutex::new(None));
        fork::register(&open);
        let opens = || {
            let _fork = fork::no_fork()?;
            let opened = Open::of(path)?;
            let place = opened.path.clone();
            *open.lock() = Some(opened);
            Ok(place)
        };
        let opened = keep_trying(&runtime, options.connect_timeout, &mut None, opens).await;
        let place = opened.map_err(|fault: Fault| fault.with("path", &shown).error)?;
        let addresses = Addresses::of(&place, runtime.clone());
        Ok(Self {
            open,
            notices: Arc::new(Notices::new(addresses, runtime.clone())),
            path: shown,
            timeout: options.timeout,
            process: runtime.process(),
            runtime,
        })
    }

    /// Refuses in a forked child: SQLite's locks are not inherited, its connection would write without them.
    fn check_process(&self) -> Result<()> {
        if self.process == self.runtime.process() { Ok(()) } else { Err(Error::forked()) }
    }

    /// Does something with the open file.
    fn with<T>(&self, act: impl FnOnce(&mut Open) -> Result<T, Fault>) -> Result<T, Fault> {
        // Before the locks, which a thread that does not exist here may have held when the process forked.
        self.check_process()?;
        let _fork = fork::no_fork()?;
        let mut open = self.open.lock();
        let open = open.as_mut().ok_or_else(Error::closed)?;
        let done = act(open)?;
        if let Some(database) = open.database.as_mut()
            && database.has_long_log()
        {
            let (path, log) = (open.path.clone(), database.log.clone());
            self.runtime.spawn_blocking(Box::new(move || {
                if let Err(Fault { error, .. }) = write_back(&path, &log) {
                    tracing::debug!(%error, "the log is not written back; a later step tries again");
                }
            }));
        }
        Ok(done)
    }

    /// The same, as often and as long as the file is busy.
    async fn keep<T>(
        &self,
        until: &mut Option<Instant>,
        act: impl Fn(&mut Open) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let done = keep_trying(&self.runtime, self.timeout, until, || self.with(&act)).await;
        done.map_err(|fault| fault.with("path", &self.path))
    }

    /// Carries out what goes into one transaction, and tells whoever is to be told.
    async fn part(&self, part: &[Step], all: bool, until: &mut Option<Instant>) -> Vec<Answer> {
        let channel = self.notices.channel();
        let reachable = |channel: &str| self.notices.reachable(channel);
        let context = || StepContext::new(self.runtime.wall(), &channel, &reachable);
        let carried_out = self.keep(until, |open| {
            if part.iter().all(|step| step.action.only_looks()) {
                open.current()?.apply(part, context())
            } else if all_end(part) {
                // It does no harm in a file that nobody uses any more.
                open.database()?.carry_out(part, all, context)
            } else {
                open.current()?.carry_out(part, all, context)
            }
        });
        match carried_out.await {
            Ok((answers, notices)) => {
                self.notices.deliver(notices);
                answers
            }
            Err(fault) => {
                let failure = fault.into_failure();
                part.iter().map(|_| Err(failure.clone())).collect()
            }
        }
    }
}

impl LeaseStore for SqliteStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("sqlite", Fence::ClockBounded).with_guarantees(guarantees::GUARANTEES)
    }

    async fn step(&self, batch: &[Step]) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(batch.len());
        let mut until = None;
        for part in batch.chunks(PART) {
            if !answers.is_empty() {
                tokio::task::yield_now().await;
            }
            answers.extend(self.part(part, false, &mut until).await);
        }
        answers
    }

    async fn step_all(&self, batch: &[Step]) -> Vec<Answer> {
        self.part(batch, true, &mut None).await
    }

    async fn listen(&self, sink: NoticeSink) -> Result<()> {
        self.check_process()?;
        let open = self.open.lock();
        open.as_ref().ok_or_else(Error::closed)?;
        self.notices.listen(sink);
        Ok(())
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        let names = self.keep(&mut None, |open| open.current()?.names(prefix)).await;
        names.map_err(|fault| fault.error)
    }

    fn cells(&self) -> Option<Cells<'_>> {
        Some(Cells::of(self))
    }

    async fn close(&self) {
        if self.check_process().is_ok() {
            // Within the lock: a fork waits for that, and finds the file closed.
            *self.open.lock() = None;
            self.notices.close();
        }
    }
}

impl CellStore for SqliteStore {
    async fn read(&self, key: &CellKey) -> Result<Look> {
        let look = |open: &mut Open| open.current()?.look_at(key, self.runtime.wall());
        self.keep(&mut None, look).await.map_err(|fault| fault.error)
    }

    async fn compare_and_set(&self, change: &Change) -> Result<Swap, Failure> {
        let clock = || self.runtime.wall();
        let swap = |open: &mut Open| open.current()?.swap(change, &clock);
        self.keep(&mut None, swap).await.map_err(Fault::into_failure)
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        if self.check_process().is_ok() {
            *self.open.lock() = None;
        } else {
            // What is open is its parent's, and must not even be closed here.
            std::mem::forget(self.open.clone());
        }
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Whether a batch only ends what was held or waited for.
fn all_end(batch: &[Step]) -> bool {
    let ends = |step: &Step| matches!(step.action, Action::Free { .. } | Action::Leave { .. });
    batch.iter().all(ends)
}
