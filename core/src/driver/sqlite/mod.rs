//! Locks between the processes of one machine, in one SQLite file.
//!
//! The file may be a database of the user's own: fencelock keeps to its tables `fencelock_lock`, `fencelock_cell` and `fencelock_meta`. It
//! is switched to the write-ahead log, which needs a local disk. A batch of steps is one short transaction that loads
//! each lock's row into the model's [`Record`](super::record::Record), applies the steps and writes back what changed;
//! it runs where it is awaited, for some 10 µs. A file that is busy is waited for by turns and naps, never by SQLite's
//! own blocking, and what waits for the disk is done beside the tasks.
//!
//! The file's locks are kept against whatever else this process does with it, see `description.rs`.
//!
//! The store's clock is the machine's. `kill -9` at any moment leaves the file sound: SQLite's log is read again by
//! whoever comes next. A power failure may undo the newest grants, whose processes ended with it; tokens go on by the
//! clock. Waiters are woken through a Unix datagram socket that each listening client binds beside the file. Where there are no such
//! sockets, on Windows, waiters ask again by themselves.

mod address;
mod busy;
mod cell;
mod database;
mod description;
mod fault;
mod fence;
mod fork;
mod guarantees;
mod identity;
mod log;
mod log_files;
mod open_file;
mod own_table;
mod published;
mod receiver;
mod row;
mod rows;
mod sender;
#[cfg(unix)]
mod socket;
#[cfg(not(unix))]
#[path = "no_socket.rs"]
mod socket;
#[cfg(all(test, unix))]
mod tests;
mod writer_queue;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use self::address::Addresses;
use self::busy::{Patience, let_others_run};
use self::database::{Done, Found, Surroundings};
use self::fault::Fault;
pub use self::fence::gate_trigger;
pub use self::fork::{Stillness, still};
use self::identity::Identity;
use self::open_file::OpenFile;
use self::receiver::Receiver;
use self::sender::Sender;
use self::writer_queue::Manners;
use crate::error::{Code, Error, Result};
use crate::options::Options;
use crate::port::{
    Action, Answer, Capabilities, CellKey, CellStore, Cells, Change, Failure, Fence, LeaseStore,
    LockKey, Look, NoticeSink, RuntimeHandle, Step, Swap,
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
    sender: Arc<Sender>,
    nowhere: Arc<str>,
    path: String,
    timeout: Duration,
    runtime: RuntimeHandle,
    process: u32,
}

/// The file that a store has open; `None` once the store is closed.
type Opened = Mutex<Option<Open>>;

struct Open {
    /// `None` since the process has forked, until the next step.
    file: Option<OpenFile>,
    /// Where it lies, without links, and which one it was at first.
    place: PathBuf,
    identity: Identity,
    /// Where this client hears, once it listens.
    receiver: Option<Arc<Receiver>>,
}

impl Open {
    fn file(&mut self) -> Result<&mut OpenFile, Fault> {
        if self.file.is_none() {
            let file = OpenFile::of(&self.place, Found::Before)?;
            file.check_is(self.identity)?;
            self.file = Some(file);
        }
        self.file.as_mut().ok_or_else(|| Fault::Failed(Error::closed()))
    }
}

impl SqliteStore {
    /// Opens the file at `path`, and makes it if there is none; its directory has to exist. While other programs keep the
    /// file busy it is tried again, for `connect_timeout`; a step later on for `timeout`.
    pub async fn open(path: &Path, options: &Options, runtime: RuntimeHandle) -> Result<Self> {
        let shown = path.display().to_string();
        let open = Arc::new(Mutex::new(None));
        // Before it is open: a fork may come right after.
        fork::register(&open);
        let place = Patience::of(options.connect_timeout)
            .keep(&runtime, |_| {
                let _here = fork::no_fork()?;
                fork::check_inherited(path)?;
                let file = OpenFile::of(path, Found::OrMade)?;
                let (place, identity) = (file.path().to_owned(), file.identity());
                let opened =
                    Open { file: Some(file), place: place.clone(), identity, receiver: None };
                *open.lock() = Some(opened);
                Ok(place)
            })
            .await
            .map_err(|fault| fault.with("path", &shown).into_error())?;
        let addresses = Addresses::of(&place, runtime.clone());
        Ok(Self {
            open,
            sender: Arc::new(Sender::new(addresses, runtime.clone())),
            nowhere: "".into(),
            path: shown,
            timeout: options.timeout,
            runtime,
            process: std::process::id(),
        })
    }

    /// Refuses in a forked child: SQLite's locks are not inherited, its connection would write without them.
    fn check_process(&self, here: u32) -> Result<(), Fault> {
        if self.process == here {
            return Ok(());
        }
        Err(Fault::Failed(Error::new(
            Code::Closed,
            "this client belongs to the process that forked this one; connect again in the child",
        )))
    }

    /// Does something with what this client has open, but not with the file.
    fn beside<T>(
        &self,
        process: u32,
        act: impl FnOnce(&mut Open) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        // Before the lock, which a thread that does not exist here may have held when the process forked.
        self.check_process(process)?;
        let mut open = self.open.lock();
        act(open.as_mut().ok_or_else(|| Fault::Failed(Error::closed()))?)
    }

    /// Does something with the open file.
    fn with<T>(&self, act: impl FnOnce(&mut Open) -> Result<T, Fault>) -> Result<T, Fault> {
        let here = fork::no_fork()?;
        self.beside(here.process, |open| {
            let done = act(open);
            if done.is_err() {
                open.file = open.file.take().filter(|file| !file.is_lost());
            }
            done
        })
    }

    fn shut(&self) {
        // During a fork, or in a child that may not use SQLite, no file is open that it could close.
        let _here = fork::no_fork();
        // Within the lock: a fork waits for that, and finds the file closed.
        *self.open.lock() = None;
    }

    fn carry_out(
        &self,
        part: &[Step],
        all: bool,
        manners: Manners,
    ) -> Result<(Done, Option<Arc<Receiver>>), Fault> {
        self.with(|open| {
            let receiver = open.receiver.clone();
            let around = Surroundings {
                clock: &|| self.runtime.wall(),
                channel: receiver.as_ref().map_or(&self.nowhere, |receiver| receiver.channel()),
                reachable: &|channel| self.sender.reachable(channel),
            };
            let file = open.file()?;
            let done = if part.iter().all(|step| step.action.only_looks()) {
                file.look(|database| database.look(part, &around))?
            } else if all_end(part) {
                file.end(manners, |database| database.carry_out(part, all, &around))?
            } else {
                file.change(manners, |database| database.carry_out(part, all, &around))?
            };
            // Most batches tell nobody anything.
            let receiver = receiver.filter(|_| !done.notices.is_empty());
            Ok((done, receiver))
        })
    }
}

impl SqliteStore {
    /// Carries out what goes into one transaction, and tells whoever is to be told.
    async fn part(&self, part: &[Step], all: bool, patience: &mut Patience) -> Vec<Answer> {
        match patience.keep(&self.runtime, |manners| self.carry_out(part, all, manners)).await {
            Ok((done, receiver)) => {
                self.sender.deliver(done.notices, receiver.as_deref());
                if let Some(write_back) = done.write_back {
                    self.runtime.spawn_blocking(Box::new(|| write_back.run()));
                }
                done.answers
            }
            Err(fault) => {
                let failure = fault.with("path", &self.path).into_failure();
                part.iter().map(|_| Err(failure.clone())).collect()
            }
        }
    }
}

impl LeaseStore for SqliteStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("sqlite", Fence::ClockBounded)
            .with_own_tables()
            .with_guarantees(guarantees::GUARANTEES)
    }

    async fn step(&self, batch: &[Step]) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(batch.len());
        let mut patience = Patience::of(self.timeout);
        for part in batch.chunks(PART) {
            if !answers.is_empty() {
                let_others_run().await;
            }
            answers.extend(self.part(part, false, &mut patience).await);
        }
        answers
    }

    async fn step_all(&self, batch: &[Step]) -> Vec<Answer> {
        self.part(batch, true, &mut Patience::of(self.timeout)).await
    }

    async fn listen(&self, sink: NoticeSink) -> Result<()> {
        let listening = self.beside(std::process::id(), |open| {
            if let Some(receiver) = &open.receiver {
                receiver.redirect(sink);
            } else {
                let receiver = Receiver::open(self.sender.addresses(), sink, &self.runtime);
                open.receiver = Some(Arc::new(receiver));
            }
            Ok(())
        });
        listening.map_err(Fault::into_error)
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        Patience::of(self.timeout)
            .keep(&self.runtime, |_| {
                self.with(|open| open.file()?.look(|database| database.names(prefix)))
            })
            .await
            .map_err(|fault| fault.with("path", &self.path).into_error())
    }

    fn cells(&self) -> Option<Cells<'_>> {
        Some(Cells::of(self))
    }

    async fn close(&self) {
        if self.check_process(std::process::id()).is_ok() {
            self.shut();
        }
    }
}

impl CellStore for SqliteStore {
    async fn read(&self, key: &CellKey) -> Result<Look> {
        let now = || self.runtime.wall();
        let look = |_| self.with(|open| open.file()?.look(|database| database.look_at(key, now())));
        Patience::of(self.timeout)
            .keep(&self.runtime, look)
            .await
            .map_err(|fault| fault.with("path", &self.path).into_error())
    }

    async fn compare_and_set(&self, change: &Change) -> Result<Swap, Failure> {
        let clock = || self.runtime.wall();
        let swap = |manners| {
            self.with(|open| open.file()?.change(manners, |database| database.swap(change, &clock)))
        };
        let swapped = Patience::of(self.timeout).keep(&self.runtime, swap).await;
        let (swap, write_back) =
            swapped.map_err(|fault| fault.with("path", &self.path).into_failure())?;
        if let Some(write_back) = write_back {
            self.runtime.spawn_blocking(Box::new(|| write_back.run()));
        }
        Ok(swap)
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        if self.check_process(std::process::id()).is_err() {
            // The parent's socket is not to be removed here. (Of its file nothing is open, unless somebody forked without
            // a word, and then it must not even be closed.)
            std::mem::forget(self.open.clone());
            return;
        }
        self.shut();
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
