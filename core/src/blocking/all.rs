//! Several locks as one, for threads.

use std::sync::Arc;
use std::time::Duration;

use super::lock::Guard;
use crate::error::Result;
use crate::options::OptionValue;
use crate::runtime::InlineRuntime;

/// Several mutexes that are acquired as one, for threads; see [`fencelock::All`](crate::All).
///
/// ```
/// let client = fencelock::blocking::connect("memory:blocking-all")?;
/// let guard = client.all(["account:7", "account:3"]).acquire()?;
/// assert!(client.lock("account:3").try_acquire()?.is_none());
/// guard.release().check()?;
/// # Ok::<(), fencelock::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct All {
    pub(super) inner: crate::All,
    pub(super) runtime: Arc<InlineRuntime>,
}

impl All {
    setters! {
        /// Length of each lease; 30 s by default.
        ttl(ttl: Duration);
        /// Whether the leases are renewed while the guard lives (the default), or fixed.
        renew(renew: bool);
        /// Sets any option of every lock by its name in the [table](crate::options::TABLE).
        option(name: &str, value: impl Into<OptionValue>);
    }

    /// Waits for all, for ever or as long as the option `wait` says.
    pub fn acquire(&self) -> Result<Guard> {
        Guard::won(&self.runtime, self.inner.acquire())
    }

    /// Waits for all at most this long; then fails with `timeout`, holding none.
    pub fn acquire_within(&self, wait: Duration) -> Result<Guard> {
        Guard::won(&self.runtime, self.inner.acquire_within(wait))
    }

    /// Asks once: `None` if one of them is held or waited for by somebody else.
    pub fn try_acquire(&self) -> Result<Option<Guard>> {
        Guard::tried(&self.runtime, self.inner.try_acquire())
    }

    /// Waits for all at most this long: `None` if one of them is held by somebody else all the while.
    pub fn try_acquire_within(&self, wait: Duration) -> Result<Option<Guard>> {
        Guard::tried(&self.runtime, self.inner.try_acquire_within(wait))
    }
}
