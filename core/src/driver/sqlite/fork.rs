//! Forks. SQLite's notes of its file locks go to the child, the locks themselves do not: a file opened there beside an
//! inherited connection is locked by nobody. So a child opens no file while one is open that it inherited, and whoever forks
//! on purpose closes them all before ([`still`]); each store opens its own again at its next step.

use std::process::id;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
    Weak,
};

use super::database::Opened;
use super::fault::{Fault, FaultKind};
use crate::error::{Code, Error};

/// A thread inside SQLite holds the read lock, a fork the write lock.
static FORK: RwLock<()> = RwLock::new(());
/// The stores of the process with this number.
static STORES: Mutex<(u32, Vec<Weak<Opened>>)> = Mutex::new((0, Vec::new()));
/// The process that opened files, and how many are open: in one word, which a child can read without a lock.
static OPEN: AtomicU64 = AtomicU64::new(0);

/// A file that is open in this process, until this is dropped.
pub(super) struct OpenMark(());

/// Marks a file as open. Called by whoever has [`no_fork`].
pub(super) fn mark_open() -> OpenMark {
    let _ = OPEN.fetch_update(SeqCst, SeqCst, |open| {
        let before = if process_of(open) == id() { open } else { u64::from(id()) << 32 };
        Some(before + 1)
    });
    OpenMark(())
}

impl Drop for OpenMark {
    fn drop(&mut self) {
        let _ =
            OPEN.fetch_update(SeqCst, SeqCst, |open| (process_of(open) == id()).then(|| open - 1));
    }
}

fn process_of(open: u64) -> u32 {
    (open >> 32) as u32
}

/// The stores of this process. Those that a child inherits are its parent's, whose threads may have been in the midst of them.
fn stores() -> MutexGuard<'static, (u32, Vec<Weak<Opened>>)> {
    let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
    if stores.0 != id() {
        *stores = (id(), Vec::new());
    }
    stores
}

/// Nothing of ours is open in this process through SQLite, and nothing gets opened, for as long as this lives.
#[derive(Debug)]
#[expect(dead_code, reason = "they are held")]
pub struct Stillness(MutexGuard<'static, (u32, Vec<Weak<Opened>>)>, RwLockWriteGuard<'static, ()>);

/// Lets the transactions under way in this process end, closes every store's file, and keeps other threads from opening
/// them again. For whoever forks a process that goes on without an `exec`: call it right before, in the thread that forks,
/// and drop the answer in both processes. Without it a child of a process that has a file open is refused every file. What is held
/// stays held; steps wait for the fork as they wait for a busy file.
///
/// ```
/// let stillness = fencelock::driver::sqlite::still();
/// // fork() here
/// drop(stillness);
/// ```
pub fn still() -> Stillness {
    let fork = FORK.write().unwrap_or_else(PoisonError::into_inner);
    let stores = stores();
    for store in &stores.1 {
        if let Some(store) = store.upgrade()
            && let Some(open) = &mut *store.lock()
        {
            open.database = None;
        }
    }
    Stillness(stores, fork)
}

/// From now on, forks close this store's file.
pub(super) fn register(store: &Arc<Opened>) {
    let mut stores = stores();
    stores.1.retain(|store| store.strong_count() > 0);
    stores.1.push(Arc::downgrade(store));
}

/// Keeps forks away until the answer is dropped. Nobody blocks for one that is under way: the file is busy then.
pub(super) fn no_fork() -> Result<RwLockReadGuard<'static, ()>, Fault> {
    const FORKS: &str = "this process is being forked, and no SQLite file is opened until that is done; a fork hook must not use these locks";
    match FORK.try_read() {
        Ok(fork) => Ok(fork),
        Err(TryLockError::Poisoned(fork)) => Ok(fork.into_inner()),
        Err(TryLockError::WouldBlock) => {
            Err(Fault { kind: FaultKind::Busy, error: Error::new(Code::Unavailable, FORKS) })
        }
    }
}

/// Refuses in a process that was forked while a file was open.
pub(super) fn check_inherited() -> Result<(), Error> {
    const INHERITED: &str = "this process was forked while a SQLite file was open; call `sqlite::still` around the fork, or connect only after it";
    let open = OPEN.load(SeqCst);
    let inherited = process_of(open) != id() && open as u32 > 0;
    if inherited { Err(Error::new(Code::Unsupported, INHERITED)) } else { Ok(()) }
}
