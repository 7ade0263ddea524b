//! Elections, for threads.

use std::sync::Arc;
use std::time::Duration;

use super::lock::Guard;
use crate::elect::Leader;
use crate::error::Result;
use crate::options::OptionValue;
use crate::runtime::InlineRuntime;

/// An election, for threads; see [`fencelock::Election`](crate::Election).
///
/// ```
/// let client = fencelock::blocking::connect("memory:")?;
/// let election = client.election("scheduler");
/// let guard = election.campaign()?;
/// assert_eq!(election.leader()?.expect("somebody leads").token, Some(guard.token()));
/// guard.release().check()?;
/// # Ok::<(), fencelock::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Election {
    pub(super) inner: crate::Election,
    pub(super) runtime: Arc<InlineRuntime>,
}

impl Election {
    setters! {
        /// How long after a leader's death the next one leads; 30 s by default.
        ttl(ttl: Duration);
        /// A short text, or texts by name as JSON, for people who look at who leads.
        info(info: impl Into<String>);
        /// Sets an option of an election by its name in the [table](crate::options::TABLE): `ttl`, `info`, `wait`, `dialect` or
        /// `observe`.
        option(name: &str, value: impl Into<OptionValue>);
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// Waits until this candidate leads, for ever or as long as the option `wait` says. To release the guard is to resign.
    pub fn campaign(&self) -> Result<Guard> {
        Guard::won(&self.runtime, self.inner.campaign())
    }

    /// Leads if nobody else does or stands for it.
    pub fn try_campaign(&self) -> Result<Option<Guard>> {
        Guard::tried(&self.runtime, self.inner.try_campaign())
    }

    /// Leads if that can be had within this time.
    pub fn try_campaign_within(&self, wait: Duration) -> Result<Option<Guard>> {
        Guard::tried(&self.runtime, self.inner.try_campaign_within(wait))
    }

    /// The present leader; `None` if nobody leads.
    pub fn leader(&self) -> Result<Option<Leader>> {
        self.runtime.run(self.inner.leader())?
    }

    /// Follows who leads.
    pub fn observe(&self) -> Observer {
        Observer { inner: self.inner.observe(), runtime: self.runtime.clone() }
    }
}

/// Follows who leads, for threads: an iterator that waits for the next change.
#[derive(Debug)]
pub struct Observer {
    inner: crate::Observer,
    runtime: Arc<InlineRuntime>,
}

impl Iterator for Observer {
    type Item = Result<Option<Leader>>;

    /// The leader: at once at first, then after each change.
    fn next(&mut self) -> Option<Self::Item> {
        Some(self.runtime.run(self.inner.changed()).and_then(|leader| leader))
    }
}
