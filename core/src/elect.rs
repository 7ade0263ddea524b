//! Leader election: one leader at a time, over the lock of the same name.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::client::Client;
use crate::error::Result;
use crate::fence::Token;
use crate::guard::{Guard, Pending};
use crate::lock::Lock;
use crate::options::{OptionScope, OptionValue, Options};
use crate::port::Instant;
use serde::{Deserialize, Serialize};

/// An election, made by [`Client::election`]. Whoever campaigns waits in order; the leader leads until it releases its guard, its
/// process ends, or it cannot renew its lease any more.
///
/// It is held over the lock of the same name: the leader is its holder, the candidates are its waiters, and who leads is
/// fenced by the lock's token.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let client = fencelock::connect("memory:elect").await?;
/// let election = client.election("scheduler").info("node-1");
/// let guard = election.campaign().await?;
/// let leader = election.leader().await?.expect("somebody leads");
/// assert_eq!(leader.token, Some(guard.token()));
/// guard.release().await.check()?;
/// assert!(election.leader().await?.is_none());
/// # Ok::<(), fencelock::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Election {
    client: Client,
    lock: Lock,
    /// How often an observer looks.
    every: Duration,
}

/// The leader of an election.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Leader {
    /// Its fencing token; `None` if it is not fencelock's.
    pub token: Option<Token>,
    /// The information it gave about itself, as JSON: `host`, `pid`, `app`, `language` and the option `info`.
    pub info: Arc<str>,
}

impl Client {
    /// An election: one leader at a time, the next one in order; see [`Election`].
    pub fn election(&self, name: &str) -> Election {
        Election::new(self.clone(), name)
    }
}

impl Election {
    pub(crate) fn new(client: Client, name: &str) -> Self {
        let Options { observe, .. } = *client.options();
        // A leader leads for as long as it can, and candidates come in order, whatever the client's locks do.
        let lock = client.lock(name).renew(true).endless().in_order().local(0).permits(1);
        Self { client, lock, every: observe }
    }

    fn map(self, set: impl FnOnce(Lock) -> Lock) -> Self {
        Self { lock: set(self.lock), ..self }
    }

    /// How soon after the leader's end the next one leads, at most; 30 s by default.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.map(|lock| lock.ttl(ttl))
    }

    /// A short text, or texts by name as JSON, for clients that observe (`{"order":"42"}`).
    pub fn info(self, info: impl Into<String>) -> Self {
        self.map(|lock| lock.info(info))
    }

    /// Sets an option of an election by its name in the [table](crate::options::TABLE): `ttl`, `info`, `wait`, `dialect` or `observe`.
    pub fn option(self, name: &str, value: impl Into<OptionValue>) -> Self {
        let mut changed =
            self.map(|lock| lock.option_of(OptionScope::Election, name, value.into()));
        changed.every = changed.lock.options().observe;
        changed
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.lock.name()
    }

    /// Waits until this candidate leads, for ever or as long as the option `wait` says. To release the guard is to resign.
    pub fn campaign(&self) -> Pending<Guard> {
        self.lock.acquire()
    }

    /// Leads if nobody else does or stands for it.
    pub fn try_campaign(&self) -> Pending<Option<Guard>> {
        self.lock.try_acquire()
    }

    /// Leads if that can be had within this time.
    pub fn try_campaign_within(&self, wait: Duration) -> Pending<Option<Guard>> {
        self.lock.try_acquire_within(wait)
    }

    /// The same, as long as the option `wait` says.
    pub(crate) fn try_in_time(&self) -> Pending<Option<Guard>> {
        self.lock.try_in_time()
    }

    /// The present leader; `None` if nobody leads.
    pub async fn leader(&self) -> Result<Option<Leader>> {
        let holders = self.lock.inspect().await?.holders;
        Ok(holders
            .into_iter()
            .next()
            .map(|holder| Leader { token: holder.token, info: holder.info }))
    }

    /// Follows who leads.
    pub fn observe(&self) -> Observer {
        self.observe_after(None)
    }

    /// The same, by somebody who has seen this before.
    pub(crate) fn observe_after(&self, seen: Seen) -> Observer {
        Observer { election: self.clone(), seen, next: Instant::default() }
    }
}

/// The newest report of an observer: none yet, that nobody leads, or the leader.
pub(crate) type Seen = Option<Option<Leader>>;

/// Follows who leads in an election, made by [`Election::observe`].
#[derive(Debug)]
pub struct Observer {
    election: Election,
    /// The newest report.
    seen: Seen,
    /// Not looked at before.
    next: Instant,
}

impl Observer {
    /// The leader, or `None` if nobody leads: at once at first, then after each change, at most one `observe` later. A leader
    /// that comes and goes in between is not reported. While the store cannot be reached, it keeps asking.
    pub async fn changed(&mut self) -> Result<Option<Leader>> {
        let runtime = self.election.client.engine().runtime.clone();
        loop {
            // It asks again and again: the store tells only those that stand in the queue.
            runtime.sleep_until(self.next).await;
            self.next = runtime.now() + self.election.every;
            match self.election.leader().await {
                Ok(leader) if self.seen.as_ref() != Some(&leader) => {
                    self.seen = Some(leader.clone());
                    return Ok(leader);
                }
                Err(error) if !error.retryable() => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// Calls `observe` with every change, for as long as it answers true.
    pub async fn each(mut self, mut observe: impl FnMut(Option<&Leader>) -> bool) -> Result<()> {
        while observe(self.changed().await?.as_ref()) {}
        Ok(())
    }

    /// Which token was reported last, without looking.
    pub fn last(&self) -> Option<&Leader> {
        self.seen.as_ref()?.as_ref()
    }
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Election").field("lock", &self.lock).finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "tokio"))]
mod tests {
    use crate::blocking::connect;
    use crate::error::Code;

    #[test]
    fn what_the_client_says_for_its_locks_is_not_for_leaders() {
        let client =
            connect("memory:leaders?permits=2&renew=false&fair=false&max_hold=1s").unwrap();
        assert_eq!(client.lock("x").try_acquire().unwrap_err().code(), Code::Invalid);
        assert!(client.election("x").try_campaign().unwrap().is_some());
        let error = client.election("x").option("permits", 1).try_campaign().unwrap_err();
        assert_eq!((error.code(), error.fields()["argument"].as_str()), (Code::Invalid, "permits"));
    }
}
