//! Work that is waited for no longer than so long.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};

use crate::port::RuntimeHandle;

/// The result of this work; `None` if it takes longer than the limit. Then it is dropped.
pub(in crate::driver) async fn within<T>(
    runtime: &RuntimeHandle,
    limit: Duration,
    work: impl Future<Output = T>,
) -> Option<T> {
    match select(pin!(work), runtime.sleep_until(runtime.now() + limit)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}
