//! A server that takes no more connections.

use std::future::Future;
use std::time::Duration;

use super::fault::is_full;
use crate::error::Result;
use crate::port::RuntimeHandle;
use crate::port::backoff::Backoff;

/// The longest pause before it is asked again: each refusal costs the server a thread or a process.
const PAUSE: Duration = Duration::from_secs(1);

/// The result of `open`, which is begun anew while the server is full, for as long as the limit allows. In a pause no connection is held, and one
/// of the client's own may be given back.
pub(in crate::driver) async fn when_there_is_room<T, F: Future<Output = Result<T>>>(
    runtime: &RuntimeHandle,
    limit: Duration,
    mut open: impl FnMut() -> F,
) -> Result<T> {
    let (end, mut backoff) = (runtime.now() + limit, Backoff::new());
    loop {
        let opened = open().await;
        let again = runtime.now() + Backoff::spread(backoff.next_up_to(PAUSE), runtime);
        // The reason is known before whoever waits is told that it took too long.
        if !opened.as_ref().is_err_and(is_full) || again + limit / 8 >= end {
            return opened;
        }
        runtime.sleep_until(again).await;
    }
}
