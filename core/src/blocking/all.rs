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
    fn map(self, set: impl FnOnce(crate::All) -> crate::All) -> Self {
        Self { inner: set(self.inner), runtime: self.runtime }
    }

    /// Length of each lease; 30 s by default.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.map(|all| all.ttl(ttl))
    }

    /// Whether the leases are renewed while the guard lives (the default), or fixed.
    pub fn renew(self, renew: bool) -> Self {
        self.map(|all| all.renew(renew))
    }

    /// Sets any option of every lock by its name in the [table](crate::options::TABLE).
    pub fn option(self, name: &str, value: impl Into<OptionValue>) -> Self {
        self.map(|all| all.option(name, value))
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
