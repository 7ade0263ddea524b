//! The parts that belong to one process: its runtime, and what goes on around a fork.

use std::cell::RefCell;
use std::sync::atomic::{AtomicPtr, Ordering};

use fencelock::driver::sqlite::{Stillness, still};
use fencelock::runtime::process_id;
use fencelock::{Code, Error};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::Result;

/// A process and its runtime. It is never freed: the threads of one that was inherited by a fork do not exist, and waiting
/// for them would never end.
struct Process {
    id: u32,
    runtime: Runtime,
}

static PROCESS: AtomicPtr<Process> = AtomicPtr::new(std::ptr::null_mut());

/// The runtime of this very process, made at the first call. Free of locks, which a fork could leave locked for ever.
pub(crate) fn runtime() -> fencelock::Result<Handle> {
    let id = process_id();
    let known = PROCESS.load(Ordering::Acquire);
    if let Some(process) = leaked(known).filter(|process| process.id == id) {
        return Ok(process.runtime.handle().clone());
    }
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).thread_name("fencelock").enable_all();
    let runtime = builder.build().map_err(|error| {
        let message = "the operating system gave no threads or timers";
        Error::new(Code::Unavailable, message).with_source(error)
    })?;
    let handle = runtime.handle().clone();
    let mine = Box::into_raw(Box::new(Process { id, runtime }));
    // The runtime of whoever comes second serves that call and what it makes.
    let _ = PROCESS.compare_exchange(known, mine, Ordering::AcqRel, Ordering::Acquire);
    Ok(handle)
}

#[expect(unsafe_code, reason = "what the pointer shows to is never freed and never changed")]
fn leaked(process: *mut Process) -> Option<&'static Process> {
    // SAFETY: it is null or comes from `Box::into_raw`, and nobody frees it.
    unsafe { process.as_ref() }
}

/// Does work on the runtime. If the caller drops this, the work is dropped too, together with what it has won.
pub(crate) async fn run<T: Send + 'static>(
    work: impl Future<Output = fencelock::Result<T>> + Send + 'static,
) -> Result<T> {
    let task = runtime()?.spawn(work);
    let _ending = scopeguard::guard(task.abort_handle(), |task| task.abort());
    match task.await {
        Ok(ended) => Ok(ended?),
        // uniffi tells the caller of a panic.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Does work with a clone of something on the runtime.
macro_rules! ask {
    ($of:expr, $clone:ident => $act:expr) => {{
        let $clone = $of.clone();
        $crate::process::run(async move { $act }).await
    }};
}

pub(crate) use ask;

thread_local! {
    static STILLNESS: RefCell<Option<Stillness>> = const { RefCell::new(None) };
}

/// For right before a fork, in the thread that forks: no SQLite file of ours is open in it.
#[uniffi::export]
pub fn before_fork() {
    STILLNESS.set(Some(still()));
}

/// For right after a fork, in both processes.
#[uniffi::export]
pub fn after_fork() {
    STILLNESS.take();
}

/// Wakes who waits for a future at the other end of a pipe. uniffi calls it with what was given to the future's poll: a language
/// in which a thread of another runtime cannot run code, as Ruby, waits with it.
#[cfg(unix)]
#[expect(unsafe_code, reason = "uniffi takes a C function, and the number of the pipe")]
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_wake(pipe: u64, code: i8) {
    // SAFETY: the waiter keeps the pipe open until it was woken.
    let pipe = unsafe { std::os::fd::BorrowedFd::borrow_raw(pipe as std::os::fd::RawFd) };
    // One byte for each poll: it has room.
    let _ = rustix::io::write(pipe, &[code.cast_unsigned()]);
}
