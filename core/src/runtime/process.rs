//! Which process this is. It is asked at every look at a guard, and the system's own answer costs a call of it.

#[cfg(unix)]
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// 0 where it is not known yet, as in the child of a fork.
#[cfg(unix)]
static ID: AtomicU32 = AtomicU32::new(0);
#[cfg(unix)]
static WATCHED: AtomicBool = AtomicBool::new(false);

/// This process's number: another one in the child of a fork, unless that goes past the C library (a bare `clone`).
#[cfg(unix)]
pub fn process_id() -> u32 {
    match ID.load(Ordering::Relaxed) {
        0 => ask(),
        id => id,
    }
}

/// This process's number.
#[cfg(not(unix))]
pub fn process_id() -> u32 {
    std::process::id()
}

/// Free of locks, which a fork could leave locked: who watches twice does no harm.
#[cfg(unix)]
#[cold]
fn ask() -> u32 {
    let id = std::process::id();
    if WATCHED.load(Ordering::Acquire) || watch() {
        WATCHED.store(true, Ordering::Release);
        ID.store(id, Ordering::Relaxed);
    }
    id
}

/// Whether a child of a fork forgets its parent's number from now on.
#[cfg(unix)]
#[expect(unsafe_code, reason = "the C library's interface")]
fn watch() -> bool {
    extern "C" fn forget() {
        ID.store(0, Ordering::Relaxed);
    }
    // SAFETY: what is called in the child only stores a number.
    unsafe { libc::pthread_atfork(None, None, Some(forget)) == 0 }
}
