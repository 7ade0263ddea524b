//! Work with a time limit, and work that runs to its end though its caller is dropped.

use std::future::Future;
use std::time::Duration;

#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis",
    feature = "zookeeper"
))]
use crate::error::{Error, Result};
use crate::port::RuntimeHandle;

/// The result of this work; `None` if it takes longer than the limit. Then it is dropped.
// Not `async`: that would hold the work twice.
pub(in crate::driver) fn within<T>(
    runtime: &RuntimeHandle,
    limit: Duration,
    work: impl Future<Output = T>,
) -> impl Future<Output = Option<T>> {
    runtime.until(runtime.now() + limit, work)
}

/// Runs the work on a task of its own, to its end even if the caller is dropped, and returns its result.
#[cfg(any(
    feature = "etcd",
    feature = "mysql",
    feature = "postgres",
    feature = "redis",
    feature = "zookeeper"
))]
pub(in crate::driver) async fn on_task<T: Send + 'static>(
    runtime: &RuntimeHandle,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T> {
    let (sender, done) = futures_channel::oneshot::channel();
    runtime.spawn(Box::pin(async move {
        let _ = sender.send(work.await);
    }));
    done.await.map_err(|_| Error::internal("the runtime dropped a task"))
}
