//! Forks. What SQLite knows of its locks on a file belongs to the whole process, and a child inherits it without the locks
//! themselves: a file that it opened beside an inherited connection would be locked by nobody, or be busy for ever. So no
//! file is open while the process forks; each store opens its own anew at its next step.
//!
//! A child waits for no lock that the fork may have copied while another thread held it: it finds a [`Process`] of its own, and of its
//! parent's it reads only what can be read without a lock.

use std::path::Path;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError, Weak};

use super::Opened;
use super::fault::Fault;
use super::identity::{Identity, identity};
use super::published::Published;
use crate::error::{Code, Error};
use crate::runtime::sync::Mutex;

/// The process that asked last: this one, or the one that forked it.
static NEWEST: Published<Process> = Published::none();

/// The stores and files that are open in one process.
struct Process {
    id: u32,
    parent: Option<&'static Process>,
    /// Forked without a word while a thread that is not here was inside SQLite, whose own locks may be held for ever.
    torn: bool,
    /// A thread inside SQLite holds the read lock; a fork takes the write lock.
    fork: RwLock<()>,
    /// A [`Stillness`] lives.
    still: AtomicBool,
    stores: Mutex<Vec<Weak<Opened>>>,
    marks: Published<OpenFileMark>,
}

impl Process {
    fn here() -> &'static Self {
        let id = std::process::id();
        loop {
            let known = NEWEST.get();
            if let Some(known) = known.filter(|known| known.id == id) {
                return known;
            }
            if let Some(here) = NEWEST.replace(known, Self::new(id, known)) {
                return here;
            }
        }
    }

    fn new(id: u32, parent: Option<&'static Self>) -> Self {
        let torn = |parent: &Self| {
            let inside = || matches!(parent.fork.try_write(), Err(TryLockError::WouldBlock));
            parent.torn || !parent.still.load(Acquire) && inside()
        };
        Self {
            id,
            parent,
            torn: parent.is_some_and(torn),
            fork: RwLock::default(),
            still: AtomicBool::default(),
            stores: Mutex::default(),
            marks: Published::none(),
        }
    }
}

/// A place to mark which file is open, used again and again.
struct OpenFileMark {
    next: Option<&'static OpenFileMark>,
    open: AtomicBool,
    device: AtomicU64,
    number: AtomicU64,
}

impl OpenFileMark {
    /// Marks a file here, if nothing is marked.
    fn take(&self, (device, number): Identity) -> bool {
        let taken = self.open.compare_exchange(false, true, AcqRel, Relaxed).is_ok();
        if taken {
            self.device.store(device, Relaxed);
            self.number.store(number, Release);
        }
        taken
    }

    fn marks(&self, file: Identity) -> bool {
        self.open.load(Acquire) && (self.device.load(Acquire), self.number.load(Acquire)) == file
    }
}

fn entries(process: &Process) -> impl Iterator<Item = &'static OpenFileMark> {
    std::iter::successors(process.marks.get(), |entry| entry.next)
}

/// A file that is open in this process, until this is dropped.
pub(super) struct Mark(&'static OpenFileMark);

/// Marks a file as open. Called by whoever has [`no_fork`].
pub(super) fn mark(file: Identity) -> Mark {
    let here = Process::here();
    loop {
        if let Some(entry) = entries(here).find(|entry| entry.take(file)) {
            return Mark(entry);
        }
        let next = here.marks.get();
        let (open, device, number) = (AtomicBool::new(true), file.0.into(), file.1.into());
        if let Some(entry) = here.marks.replace(next, OpenFileMark { next, open, device, number }) {
            return Mark(entry);
        }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.0.open.store(false, Release);
    }
}

/// Nothing of ours is open in this process through SQLite, and nothing gets opened, for as long as this lives.
#[derive(Debug)]
pub struct Stillness {
    _fork: RwLockWriteGuard<'static, ()>,
    still: &'static AtomicBool,
}

impl Drop for Stillness {
    fn drop(&mut self) {
        self.still.store(false, Release);
    }
}

/// Lets the transactions under way in this process end, closes every store's file, and keeps other threads from opening
/// them again. For whoever forks a process that goes on without an `exec`: call it right before, in the thread that forks,
/// and drop what it answers in both processes. Without it a child is refused a file that its parent had open, and
/// every file if another thread was in the midst of a step; and if the parent is killed in the midst of one, its lock on the file
/// lasts as long as the child. What is held stays held; steps wait for the fork as they wait
/// for a busy file.
///
/// ```
/// let stillness = fencelock::driver::sqlite::still();
/// // fork() here
/// drop(stillness);
/// ```
pub fn still() -> Stillness {
    let here = Process::here();
    let fork = here.fork.write().unwrap_or_else(PoisonError::into_inner);
    here.stores.lock().retain(|store| {
        let Some(store) = store.upgrade() else { return false };
        if let Some(open) = &mut *store.lock() {
            open.file = None;
        }
        true
    });
    here.still.store(true, Release);
    Stillness { _fork: fork, still: &here.still }
}

/// From now on, forks close this store's file.
pub(super) fn register(store: &Arc<Opened>) {
    let mut stores = Process::here().stores.lock();
    stores.retain(|store| store.strong_count() > 0);
    stores.push(Arc::downgrade(store));
}

/// No fork, until this is dropped.
pub(super) struct NoFork {
    /// The process that this is.
    pub(super) process: u32,
    _fork: RwLockReadGuard<'static, ()>,
}

/// No fork from now on. Nobody blocks for one that is under way: the file is busy then.
pub(super) fn no_fork() -> Result<NoFork, Fault> {
    const FORKS: &str = "this process is being forked, and no SQLite file is opened until that is done; a fork hook must not use these locks";
    const TORN: &str = "this process was forked while another thread was using a SQLite file, so it can open none; call `sqlite::still` around the fork";
    let here = Process::here();
    if here.torn {
        return Err(Fault::Failed(Error::new(Code::Unsupported, TORN)));
    }
    let fork = match here.fork.try_read() {
        Ok(fork) => fork,
        Err(TryLockError::Poisoned(fork)) => fork.into_inner(),
        Err(TryLockError::WouldBlock) => {
            return Err(Fault::Busy(Error::new(Code::Unavailable, FORKS)));
        }
    };
    Ok(NoFork { process: here.id, _fork: fork })
}

/// Makes sure that this process did not inherit the file open, from one that forked without a word.
pub(super) fn check_inherited(path: &Path) -> Result<(), Fault> {
    const INHERITED: &str = "this process was forked while the file was open; call `sqlite::still` around the fork, or connect only after it";
    let Ok(file) = identity(path) else { return Ok(()) };
    let mut ancestors = std::iter::successors(Process::here().parent, |process| process.parent);
    if ancestors.any(|process| entries(process).any(|entry| entry.marks(file))) {
        return Err(Fault::Failed(Error::new(Code::Unsupported, INHERITED)));
    }
    Ok(())
}
