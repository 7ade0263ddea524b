//! Forks. What SQLite knows of its locks on a file belongs to the whole process, and a child inherits it without the locks
//! themselves: a file that it opened beside an inherited connection would be locked by nobody, or be busy for ever. So no
//! file is open while the process forks; each store opens its own anew at its next step.

use std::path::Path;
use std::sync::{
    Arc, LazyLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError, Weak,
};

use super::Opened;
use super::database::identity;
use super::fault::Fault;
use crate::error::{Code, Error};
use crate::runtime::sync::Mutex;

/// Whoever has a file open in its hands reads this meanwhile; who forks writes it.
static FORK: RwLock<()> = RwLock::new(());
static STORES: LazyLock<Mutex<Stores>> = LazyLock::new(Mutex::default);

/// Stores, each with the process that opened it.
type Stores = Vec<(u32, Weak<Opened>)>;

/// Nothing of ours is open in this process through SQLite, and nothing gets opened, for as long as this lives.
#[derive(Debug)]
pub struct Stillness {
    _fork: RwLockWriteGuard<'static, ()>,
}

/// Lets the transactions under way in this process end, closes every store's file, and keeps other threads from opening
/// them again. For whoever forks a process that goes on without an `exec`: call it right before, in the thread that forks,
/// and drop what it answers in both processes. Without it, a file that a child opens may be busy for ever, or locked by
/// nobody. What is held stays held; steps wait for the fork as they wait for a busy file.
///
/// ```
/// let stillness = fencelock::driver::sqlite::still();
/// // fork() here
/// drop(stillness);
/// ```
pub fn still() -> Stillness {
    let fork = FORK.write().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    STORES.lock().retain(|(opener, store)| {
        let Some(store) = store.upgrade() else { return false };
        if *opener == process
            && let Some(open) = &mut *store.lock()
        {
            open.file = None;
        }
        true
    });
    Stillness { _fork: fork }
}

/// From now on, forks close this store's file.
pub(super) fn register(store: &Arc<Opened>) {
    let mut stores = STORES.lock();
    stores.retain(|(_, store)| store.strong_count() > 0);
    stores.push((std::process::id(), Arc::downgrade(store)));
}

/// No fork, until this is dropped. Nobody blocks for one that is under way: the file is busy then.
pub(super) fn no_fork() -> Result<RwLockReadGuard<'static, ()>, Fault> {
    const FORKS: &str = "this process is being forked, and no SQLite file is opened until that is done; a fork hook must not use these locks";
    match FORK.try_read() {
        Ok(here) => Ok(here),
        Err(TryLockError::Poisoned(here)) => Ok(here.into_inner()),
        Err(TryLockError::WouldBlock) => Err(Fault::Busy(Error::new(Code::Unavailable, FORKS))),
    }
}

/// Makes sure that this process did not inherit the file open, from one that forked without a word.
pub(super) fn check_inherited(path: &Path) -> Result<(), Fault> {
    const INHERITED: &str = "this process was forked while the file was open; call `sqlite::still` around the fork, or connect only after it";
    let Ok(file) = identity(path) else { return Ok(()) };
    let process = std::process::id();
    let inherited = STORES.lock().iter().any(|(opener, store)| {
        *opener != process
            && store.upgrade().is_some_and(|store| {
                let open = store.lock();
                open.as_ref().is_some_and(|open| open.file.is_some() && open.identity == file)
            })
    });
    if inherited {
        return Err(Fault::Failed(Error::new(Code::Unsupported, INHERITED)));
    }
    Ok(())
}
