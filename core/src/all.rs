//! Several locks as one: all or nothing, in a global order.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;
use serde_json::Value;

use crate::client::Client;
use crate::engine::{Engine, Member, Wait};
use crate::error::{Code, Error, Result};
use crate::fence::Token;
use crate::guard::{Claim, Guard, Pending};
use crate::lock::Lock;
use crate::released::Released;

/// Several mutexes that are acquired as one, made by [`Client::all`]. However the names are ordered, no two callers ever
/// wait for each other.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let client = fencelock::connect("memory:all").await?;
/// let guard = client.all(["account:7", "account:3"]).acquire().await?;
/// assert!(guard.is_held());
/// assert!(guard.token("account:3").is_some());
/// guard.release().await.check()?;
/// # Ok::<(), fencelock::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct All {
    client: Client,
    /// In the order of their names.
    locks: Vec<Lock>,
    mistake: Option<Error>,
}

impl All {
    pub(crate) fn new(client: Client, names: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let mut names: Vec<_> = names.into_iter().map(|name| name.as_ref().to_owned()).collect();
        // One order for all clients: no two of them wait for each other.
        names.sort();
        let double = names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone());
        let mistake = match (names.is_empty(), double) {
            (true, _) => Some(Error::invalid("names", "give at least one name")),
            (_, Some(double)) => Some(
                Error::invalid("names", "a name is given twice; give it once").with("name", double),
            ),
            _ => None,
        };
        let locks = names.iter().map(|name| client.lock(name)).collect();
        Self { client, locks, mistake }
    }

    /// The wait its options say.
    fn patience(&self) -> Option<Duration> {
        self.locks.first().and_then(Lock::patience)
    }

    fn map(mut self, set: impl Fn(Lock) -> Lock) -> Self {
        self.locks = self.locks.into_iter().map(set).collect();
        self
    }

    /// Length of each lease; 30 s by default.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.map(|lock| lock.ttl(ttl))
    }

    /// Whether the leases are renewed while the guard lives (the default), or fixed.
    pub fn renew(self, renew: bool) -> Self {
        self.map(|lock| lock.renew(renew))
    }

    /// Sets any option of every lock by its name in the [table](crate::options::TABLE).
    pub fn option(self, name: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        self.map(|lock| lock.option(name, value.clone()))
    }

    /// Waits for all, for ever or as long as the option `wait` says.
    pub fn acquire(&self) -> Pending<AllGuard> {
        self.acquire_for(self.patience())
    }

    /// Waits for all at most this long; then fails with `timeout`, holding none.
    pub fn acquire_within(&self, wait: Duration) -> Pending<AllGuard> {
        self.acquire_for(Some(wait))
    }

    /// Asks once: `None` if one of them is held or waited for by somebody else.
    pub fn try_acquire(&self) -> Pending<Option<AllGuard>> {
        let all = self.clone();
        Pending::new(async move { all.attempt(Wait::Try).await })
    }

    /// Waits for all at most this long: `None` if one of them is held by somebody else all the while.
    pub fn try_acquire_within(&self, wait: Duration) -> Pending<Option<AllGuard>> {
        self.clone().map(|lock| lock.wait(wait)).try_in_time()
    }

    /// The same, as long as the option `wait` says.
    pub(crate) fn try_in_time(&self) -> Pending<Option<AllGuard>> {
        let all = self.clone();
        Pending::new(async move {
            match all.attempt(Wait::of(all.patience(), &*all.engine().runtime)).await {
                Err(error) if error.is_held() => Ok(None),
                tried => tried,
            }
        })
    }

    fn acquire_for(&self, wait: Option<Duration>) -> Pending<AllGuard> {
        let all = self.clone();
        Pending::new(async move {
            let guard = all.attempt(Wait::of(wait, &*all.engine().runtime)).await?;
            guard.ok_or_else(|| {
                Error::new(
                    Code::Timeout,
                    "one of the locks is held by somebody else, and the wait is zero",
                )
            })
        })
    }

    fn engine(&self) -> &Arc<Engine> {
        self.client.engine()
    }

    async fn attempt(&self, wait: Wait) -> Result<Option<AllGuard>> {
        if let Some(mistake) = &self.mistake {
            return Err(mistake.clone());
        }
        let members = self.locks.iter().map(Lock::member).collect::<Result<Vec<Member>>>()?;
        let locals = self.engine().acquire_all(&members, wait).await?;
        let guard = |local| Guard::new(self.engine().clone(), local);
        Ok(locals.map(|locals| AllGuard {
            guards: self
                .locks
                .iter()
                .map(|lock| lock.name().to_owned())
                .zip(locals.into_iter().map(guard))
                .collect(),
        }))
    }
}

/// The local proof of several holds. Dropping it frees them all in the background.
#[must_use = "dropping a guard frees its locks"]
pub struct AllGuard {
    guards: Vec<(String, Guard)>,
}

impl AllGuard {
    /// The fencing token of one of the locks: each resource is handed its own.
    pub fn token(&self, name: &str) -> Option<Token> {
        self.guards.iter().find(|(known, _)| known == name).map(|(_, guard)| guard.token())
    }

    /// A look at one of the guards for somebody else: a task that writes, a signal that fires when that lock is lost.
    pub fn claim(&self, name: &str) -> Option<Claim> {
        self.guards.iter().find(|(known, _)| known == name).map(|(_, guard)| guard.claim())
    }

    pub(crate) fn claims(&self) -> impl Iterator<Item = Claim> {
        self.guards.iter().map(|(_, guard)| guard.claim())
    }

    /// The locks and their fencing tokens, in the order of the names.
    pub fn tokens(&self) -> impl Iterator<Item = (&str, Token)> {
        self.guards.iter().map(|(name, guard)| (name.as_str(), guard.token()))
    }

    /// Whether all of them may be relied on at this very moment.
    pub fn is_held(&self) -> bool {
        self.guards.iter().all(|(_, guard)| guard.is_held())
    }

    /// How long all of them may still be relied on if they were not renewed any more.
    pub fn remaining(&self) -> Duration {
        self.guards.iter().map(|(_, guard)| guard.remaining()).min().unwrap_or_default()
    }

    /// `Ok` while all of them may be relied on, the first one's error afterwards.
    pub fn check(&self) -> Result<()> {
        self.guards.iter().try_for_each(|(_, guard)| guard.check())
    }

    /// Completes when one of them is lost.
    pub fn lost(&self) -> impl Future<Output = ()> + use<> {
        let lost: Vec<_> = self.guards.iter().map(|(_, guard)| Box::pin(guard.lost())).collect();
        async move {
            select_all(lost).await;
        }
    }

    /// Pushes the end of every lease to at least now + `ttl`.
    pub async fn extend(&self, ttl: Duration) -> Result<()> {
        for (_, guard) in &self.guards {
            guard.extend(ttl).await?;
        }
        Ok(())
    }

    /// Frees all, in one go, and tells the worst of what came of it.
    pub async fn release(self) -> Released {
        let frees = self.guards.into_iter().map(|(_, guard)| guard.release());
        let outcomes = futures_util::future::join_all(frees).await;
        let worst = [Released::Unconfirmed, Released::AlreadyLost];
        worst.into_iter().find(|bad| outcomes.contains(bad)).unwrap_or(Released::Released)
    }
}

impl fmt::Debug for All {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("All").field("locks", &self.locks).finish_non_exhaustive()
    }
}

impl fmt::Debug for AllGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllGuard").field("guards", &self.guards).finish()
    }
}
