//! The process that may use the client library: all its sockets are waited for by one thread, which no child of a fork has.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Code, Error, Result};

/// The process that asked first, also in its children.
static FIRST: AtomicU32 = AtomicU32::new(0);

/// Refuses in the child of a process that has used the library.
pub(super) fn check(process: u32) -> Result<()> {
    match FIRST.compare_exchange(0, process, Ordering::Relaxed, Ordering::Relaxed) {
        Err(first) if first != process => Err(inherited()),
        _ => Ok(()),
    }
}

fn inherited() -> Error {
    let message = "this process was forked by one that had connected to ZooKeeper, so it cannot reach ZooKeeper; start it anew (`spawn`), or connect only after the fork";
    Error::new(Code::Unsupported, message)
}
