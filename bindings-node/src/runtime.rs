//! The process' one runtime, which all environments share.

use std::sync::OnceLock;

use fencelock::{Code, Error, Result};
use tokio::runtime::{Builder, Handle, Runtime};

static RUNTIME: OnceLock<Result<Runtime>> = OnceLock::new();

/// The runtime, made at the first call. It is never dropped: the process ends with it.
pub(crate) fn handle() -> Result<Handle> {
    let runtime = RUNTIME.get_or_init(|| {
        let threads = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("fencelock")
            .enable_all()
            .build();
        threads.map_err(|error| {
            let message = "the operating system gave no threads or timers";
            Error::new(Code::Unavailable, message).with_source(error)
        })
    });
    runtime.as_ref().map(|runtime| runtime.handle().clone()).map_err(Clone::clone)
}
