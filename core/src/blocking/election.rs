//! Elections, for threads.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::refused;
use crate::elect::Leader;
use crate::error::Result;
use crate::guard::Claim;
use crate::released::Released;
use crate::runtime::InlineRuntime;

/// An election, for threads; see [`fencelock::Election`](crate::Election).
///
/// ```
/// let client = fencelock::blocking::connect("memory:")?;
/// let election = client.election("scheduler");
/// let leadership = election.campaign()?;
/// assert_eq!(election.leader()?.expect("somebody leads").token, Some(leadership.token()));
/// leadership.resign().check()?;
/// # Ok::<(), fencelock::Error>(())
/// ```
#[derive(Clone)]
pub struct Election {
    pub(super) inner: crate::Election,
    pub(super) runtime: Arc<InlineRuntime>,
}

impl Election {
    /// Sets any option by its name in the [table](crate::options::TABLE).
    pub fn option(self, name: &str, value: impl Into<Value>) -> Self {
        Self { inner: self.inner.option(name, value), runtime: self.runtime }
    }

    /// Waits until this candidate leads, for ever or as long as the option `wait` says.
    pub fn campaign(&self) -> Result<Leadership> {
        let inner = self.runtime.run(self.inner.campaign())??;
        Ok(self.leadership(inner))
    }

    /// Leads if nobody else does or stands for it.
    pub fn try_campaign(&self) -> Result<Option<Leadership>> {
        let leads = self.runtime.run(self.inner.try_campaign())??;
        Ok(leads.map(|inner| self.leadership(inner)))
    }

    /// The present leader; `None` if nobody leads.
    pub fn leader(&self) -> Result<Option<Leader>> {
        self.runtime.run(self.inner.leader())?
    }

    /// Follows who leads.
    pub fn observe(&self) -> Observer {
        Observer { inner: self.inner.observe(), runtime: self.runtime.clone() }
    }

    fn leadership(&self, inner: crate::Leadership) -> Leadership {
        Leadership { inner, runtime: self.runtime.clone() }
    }
}

/// The guard of a leader, for threads. Dropping it gives it up in the background.
#[must_use = "dropping a leadership gives it up"]
#[derive(Debug)]
pub struct Leadership {
    inner: crate::Leadership,
    runtime: Arc<InlineRuntime>,
}

impl Leadership {
    /// Gives the leadership up; the next candidate leads.
    pub fn resign(self) -> Released {
        self.runtime.run(self.inner.resign()).unwrap_or_else(refused)
    }

    /// Calls `act` once, on the client's own thread, if the leadership is lost; not if it is given up.
    pub fn on_lost(&self, act: impl FnOnce() + Send + 'static) {
        self.inner.on_lost(act);
    }
}

impl std::ops::Deref for Leadership {
    type Target = Claim;

    fn deref(&self) -> &Claim {
        &self.inner
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

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
