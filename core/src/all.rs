//! Several locks as one: all or nothing, in a global order.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::client::Client;
use crate::engine::{Engine, Member, Wait};
use crate::error::{Code, Error, Result};
use crate::guard::{Guard, Pending};
use crate::lock::Lock;
use crate::options::OptionValue;

/// Several mutexes that are acquired as one, made by [`Client::all`]. However the names are ordered, no two callers ever
/// wait for each other.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let client = fencelock::connect("memory:all").await?;
/// let guard = client.all(["account:7", "account:3"]).acquire().await?;
/// assert!(guard.is_held());
/// assert!(guard.tokens().contains_key("account:3"));
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

impl Client {
    /// Several mutexes as one: all or nothing, in a global order.
    pub fn all(&self, names: impl IntoIterator<Item = impl AsRef<str>>) -> All {
        All::new(self.clone(), names)
    }
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
    pub fn option(self, name: &str, value: impl Into<OptionValue>) -> Self {
        let value = value.into();
        self.map(|lock| lock.option(name, value.clone()))
    }

    /// Waits for all, for ever or as long as the option `wait` says.
    pub fn acquire(&self) -> Pending<Guard> {
        self.acquire_for(self.patience())
    }

    /// Waits for all at most this long; then fails with `timeout`, holding none.
    pub fn acquire_within(&self, wait: Duration) -> Pending<Guard> {
        self.acquire_for(Some(wait))
    }

    /// Asks once: `None` if one of them is held or waited for by somebody else.
    pub fn try_acquire(&self) -> Pending<Option<Guard>> {
        let all = self.clone();
        Pending::new(async move { all.attempt(Wait::Try).await })
    }

    /// Waits for all at most this long: `None` if one of them is held by somebody else all the while.
    pub fn try_acquire_within(&self, wait: Duration) -> Pending<Option<Guard>> {
        self.clone().map(|lock| lock.wait(wait)).try_in_time()
    }

    /// The same, as long as the option `wait` says.
    pub(crate) fn try_in_time(&self) -> Pending<Option<Guard>> {
        let all = self.clone();
        Pending::new(async move {
            match all.attempt(Wait::of(all.patience(), &*all.engine().runtime)).await {
                Err(error) if error.is_held() => Ok(None),
                tried => tried,
            }
        })
    }

    fn acquire_for(&self, wait: Option<Duration>) -> Pending<Guard> {
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

    async fn attempt(&self, wait: Wait) -> Result<Option<Guard>> {
        if let Some(mistake) = &self.mistake {
            return Err(mistake.clone());
        }
        let members = self.locks.iter().map(Lock::member).collect::<Result<Vec<Member>>>()?;
        let locals = self.engine().acquire_all(&members, wait).await?;
        Ok(locals.and_then(|locals| {
            let mut parts = self.locks.iter().map(Lock::shared_name).zip(locals);
            let first =
                parts.next().map(|(name, local)| Guard::new(self.engine().clone(), name, local));
            first.map(|first| parts.fold(first, |guard, (name, local)| guard.and(name, local)))
        }))
    }
}

impl fmt::Debug for All {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("All").field("locks", &self.locks).finish_non_exhaustive()
    }
}
