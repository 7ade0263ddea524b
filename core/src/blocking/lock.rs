//! Locks and guards, for threads.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Code, Error, Result};
use crate::guard::{Claim, Pending};
use crate::options::OptionValue;
use crate::port::LockState;
use crate::released::Released;
use crate::runtime::InlineRuntime;
use crate::with_error::WithError;

/// A lock by name, for threads.
#[derive(Clone, Debug)]
pub struct Lock {
    pub(super) inner: crate::Lock,
    pub(super) runtime: Arc<InlineRuntime>,
}

impl Lock {
    setters! {
        /// Length of the lease; 30 s by default.
        ttl(ttl: Duration);
        /// Whether the lease is renewed while the guard lives (the default), or fixed.
        renew(renew: bool);
        /// How long [`Lock::acquire`] waits; for ever by default.
        wait(wait: Duration);
        /// The longest the lock may be held, however often it is renewed.
        max_hold(most: Duration);
        /// Whether waiters are served in their order of arrival (the default).
        fair(fair: bool);
        /// How often the lock may pass from waiter to waiter inside this client before others are served; 16 by default.
        local(passes: u32);
        /// A short text, or texts by name as JSON, for people who inspect the lock.
        info(info: impl Into<String>);
        /// How many permits of a semaphore are taken at once; 1 by default.
        permits(permits: u32);
        /// Sets any option by its name in the [table](crate::options::TABLE).
        option(name: &str, value: impl Into<OptionValue>);
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// Waits for the lock, for ever or as long as [`Lock::wait`] says.
    pub fn acquire(&self) -> Result<Guard> {
        Guard::won(&self.runtime, self.inner.acquire())
    }

    /// Waits for the lock at most this long; then fails with `timeout`.
    pub fn acquire_within(&self, wait: Duration) -> Result<Guard> {
        Guard::won(&self.runtime, self.inner.acquire_within(wait))
    }

    /// Asks once: `None` if somebody else holds the lock or waits for it.
    pub fn try_acquire(&self) -> Result<Option<Guard>> {
        Guard::tried(&self.runtime, self.inner.try_acquire())
    }

    /// Waits for the lock at most this long: `None` if somebody else holds it all the while.
    pub fn try_acquire_within(&self, wait: Duration) -> Result<Option<Guard>> {
        Guard::tried(&self.runtime, self.inner.try_acquire_within(wait))
    }

    /// Whether anybody holds the lock now.
    pub fn is_locked(&self) -> Result<bool> {
        self.runtime.run(self.inner.is_locked())?
    }

    /// Runs `body` under the lock. If the lock was lost meanwhile, the answer is an error with code `lost`; the body can
    /// look at its claim to learn it earlier. An error of the body's own wins, and the loss is attached to it
    /// ([`WithError`]).
    pub fn with<T, E>(&self, body: impl FnOnce(&Claim) -> Result<T, E>) -> Result<T, WithError<E>> {
        let guard = self.acquire()?;
        guard.check()?;
        let ended = body(&guard);
        let held = guard.check();
        let _ = guard.release();
        WithError::judge(ended, held)
    }

    /// The holders of the lock and its waiters.
    pub fn inspect(&self) -> Result<LockState> {
        self.runtime.run(self.inner.inspect())?
    }
}

/// The local proof of a hold, for threads. Dropping it frees the lock in the background.
#[derive(Debug)]
#[must_use = "dropping a guard frees its lock"]
pub struct Guard {
    inner: crate::Guard,
    pub(super) runtime: Arc<InlineRuntime>,
}

impl Guard {
    pub(super) fn of(inner: crate::Guard, runtime: &Arc<InlineRuntime>) -> Self {
        Self { inner, runtime: runtime.clone() }
    }

    pub(super) fn won(
        runtime: &Arc<InlineRuntime>,
        acquire: Pending<crate::Guard>,
    ) -> Result<Self> {
        Ok(Self::of(runtime.run(acquire)??, runtime))
    }

    pub(super) fn tried(
        runtime: &Arc<InlineRuntime>,
        acquire: Pending<Option<crate::Guard>>,
    ) -> Result<Option<Self>> {
        Ok(runtime.run(acquire)??.map(|guard| Self::of(guard, runtime)))
    }

    /// Pushes the end of the lease to at least now + `ttl`; see [`fencelock::Guard::extend`](crate::Guard::extend).
    pub fn extend(&self, ttl: Duration) -> Result<()> {
        self.runtime.run(self.inner.extend(ttl))?
    }

    /// Lets another process go on with the hold; see [`fencelock::Guard::transfer`](crate::Guard::transfer).
    pub fn transfer(self) -> Result<String> {
        self.runtime.run(self.inner.transfer())?
    }

    /// Frees the lock and tells how that went.
    pub fn release(self) -> Released {
        self.runtime.run(self.inner.release()).unwrap_or_else(refused)
    }
}

/// A release that is refused. In the child of a fork there is nothing to give back; inside an async runtime what was to be given
/// back is dropped, which frees it in the background.
#[expect(clippy::needless_pass_by_value, reason = "it takes the place of a result")]
pub(super) fn refused(error: Error) -> Released {
    if error.code() == Code::Closed { Released::AlreadyLost } else { Released::Unconfirmed }
}

impl std::ops::Deref for Guard {
    type Target = Claim;

    fn deref(&self) -> &Claim {
        &self.inner
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::connect;

    #[test]
    fn a_method_says_what_its_option_says() {
        let client = connect("memory:methods").expect("memory is there");
        let second = Duration::from_secs(1);
        let by_method = client.lock("x").ttl(5 * second).renew(false).wait(second);
        let by_method = by_method.max_hold(9 * second).fair(false).local(3).info("night");
        let named = [("ttl", "5s"), ("renew", "false"), ("wait", "1s"), ("max_hold", "9s")];
        let more = [("fair", "false"), ("local", "3"), ("info", "night")];
        let by_option =
            named.into_iter().chain(more).fold(client.lock("x"), |lock, (name, value)| {
                let before = lock.inner.options().clone();
                let lock = lock.option(name, value);
                assert_ne!(*lock.inner.options(), before, "{name} changes nothing");
                lock
            });
        assert_eq!(by_method.inner.options(), by_option.inner.options());
    }
}
