//! Of several servers the one that takes writes.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::fault::absent;
use super::host::Host;
use crate::driver::within::within;
use crate::error::{Error, Result};
use crate::port::RuntimeHandle;

/// Tries the hosts in turn until `open` succeeds at one, and begins with the one that was `used` last. Each has an equal share of the time
/// that is left of `limit`, so one that is silent does not keep the others from being asked. Fails with the first error that does not go by
/// itself, otherwise with the last.
pub(in crate::driver) async fn first_host<T, F: Future<Output = Result<T>>>(
    hosts: &[Host],
    used: &AtomicUsize,
    runtime: &RuntimeHandle,
    limit: Duration,
    mut open: impl FnMut(Host) -> F,
) -> Result<(T, Host)> {
    let (end, first) = (runtime.now() + limit, used.load(Ordering::Relaxed));
    let mut refusal: Option<Error> = None;
    for tried in 0..hosts.len() {
        let at = (first + tried) % hosts.len();
        let host = &hosts[at];
        let left = end.since(runtime.now());
        let share = left / u32::try_from(hosts.len() - tried).unwrap_or(u32::MAX);
        let opened = within(runtime, share, open(host.clone())).await;
        match opened.unwrap_or_else(|| Err(absent(host, "it took too long"))) {
            Ok(opened) => {
                used.store(at, Ordering::Relaxed);
                return Ok((opened, host.clone()));
            }
            Err(error) if refusal.as_ref().is_none_or(Error::retryable) => refusal = Some(error),
            Err(_) => {}
        }
    }
    Err(refusal.unwrap_or_else(Error::closed))
}
