//! Several locks as one, for threads.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::refused;
use crate::error::Result;
use crate::fence::Token;
use crate::guard::Claim;
use crate::released::Released;
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
#[derive(Clone)]
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
    pub fn option(self, name: &str, value: impl Into<Value>) -> Self {
        self.map(|all| all.option(name, value))
    }

    /// Waits for all, for ever or as long as the option `wait` says.
    pub fn acquire(&self) -> Result<AllGuard> {
        let inner = self.runtime.run(self.inner.acquire())??;
        Ok(self.guard(inner))
    }

    /// Waits for all at most this long; then fails with `timeout`, holding none.
    pub fn acquire_within(&self, wait: Duration) -> Result<AllGuard> {
        let inner = self.runtime.run(self.inner.acquire_within(wait))??;
        Ok(self.guard(inner))
    }

    /// Asks once: `None` if one of them is held or waited for by somebody else.
    pub fn try_acquire(&self) -> Result<Option<AllGuard>> {
        let inner = self.runtime.run(self.inner.try_acquire())??;
        Ok(inner.map(|inner| self.guard(inner)))
    }

    fn guard(&self, inner: crate::AllGuard) -> AllGuard {
        AllGuard { inner, runtime: self.runtime.clone() }
    }
}

/// The local proof of several holds, for threads. Dropping it frees them all in the background.
#[must_use = "dropping a guard frees its locks"]
pub struct AllGuard {
    inner: crate::AllGuard,
    runtime: Arc<InlineRuntime>,
}

impl AllGuard {
    /// The fencing token of one of the locks: each resource is handed its own.
    pub fn token(&self, name: &str) -> Option<Token> {
        self.inner.token(name)
    }

    /// A look at one of the guards for somebody else.
    pub fn claim(&self, name: &str) -> Option<Claim> {
        self.inner.claim(name)
    }

    /// Whether all of them may be relied on at this very moment.
    pub fn is_held(&self) -> bool {
        self.inner.is_held()
    }

    /// `Ok` while all of them may be relied on, the first one's error afterwards.
    pub fn check(&self) -> Result<()> {
        self.inner.check()
    }

    /// Pushes the end of every lease to at least now + `ttl`.
    pub fn extend(&self, ttl: Duration) -> Result<()> {
        self.runtime.run(self.inner.extend(ttl))?
    }

    /// Frees all, in one go, and tells the worst of what came of it.
    pub fn release(self) -> Released {
        self.runtime.run(self.inner.release()).unwrap_or_else(refused)
    }
}

impl fmt::Debug for All {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl fmt::Debug for AllGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
