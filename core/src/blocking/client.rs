//! The client, for threads.

use std::sync::Arc;
use std::time::Duration;

use super::all::All;
use super::election::Election;
#[cfg(feature = "redis")]
use super::gate::RedisGate;
use super::job::Job;
use super::lock::{Guard, Lock};
use super::scope::Scope;
use super::version::Versioned;
use crate::client::Stats;
use crate::error::Result;
use crate::fence::Token;
use crate::job::Schedule;
use crate::port::{Capabilities, HolderView};
use crate::runtime::{InlineRuntime, TokioRuntime};

/// Connects to the store a URL names; see [`fencelock::connect`](crate::connect).
pub fn connect(url: &str) -> Result<Client> {
    Client::build(crate::Client::builder(), url)
}

/// A connection to one store, for threads. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    inner: crate::Client,
    runtime: Arc<InlineRuntime>,
}

impl Client {
    /// Connects with more than a URL to say.
    pub fn build(builder: crate::ClientBuilder, url: &str) -> Result<Self> {
        let runtime = Arc::new(InlineRuntime::new()?);
        let builder = builder.runtime(Arc::new(TokioRuntime::of(runtime.handle())));
        let inner = runtime.run(builder.connect(url))??;
        Ok(Self { inner, runtime })
    }

    /// A lock by name; see [`fencelock::Client::lock`](crate::Client::lock).
    pub fn lock(&self, name: &str) -> Lock {
        self.of(self.inner.lock(name))
    }

    fn of(&self, inner: crate::Lock) -> Lock {
        Lock { inner, runtime: self.runtime.clone() }
    }

    /// The reading side of a read-write lock; see [`fencelock::Client::read_lock`](crate::Client::read_lock).
    pub fn read_lock(&self, name: &str) -> Lock {
        self.of(self.inner.read_lock(name))
    }

    /// The writing side; see [`fencelock::Client::write_lock`](crate::Client::write_lock).
    pub fn write_lock(&self, name: &str) -> Lock {
        self.of(self.inner.write_lock(name))
    }

    /// One of so many permits; see [`fencelock::Client::semaphore`](crate::Client::semaphore).
    pub fn semaphore(&self, name: &str, limit: u32) -> Lock {
        self.of(self.inner.semaphore(name, limit))
    }

    /// Several mutexes as one; see [`fencelock::Client::all`](crate::Client::all).
    pub fn all(&self, names: impl IntoIterator<Item = impl AsRef<str>>) -> All {
        All { inner: self.inner.all(names), runtime: self.runtime.clone() }
    }

    /// Where reentrancy ends; see [`fencelock::Client::scope`](crate::Client::scope).
    pub fn scope(&self) -> Scope {
        Scope { inner: self.inner.scope(), runtime: self.runtime.clone() }
    }

    /// A mutex that may be entered again through this value and its clones.
    pub fn reentrant(&self, name: &str) -> Lock {
        self.of(self.inner.reentrant(name))
    }

    /// A value by name; see [`fencelock::Client::version`](crate::Client::version).
    pub fn version(&self, name: &str) -> Versioned {
        Versioned { inner: self.inner.version(name), runtime: self.runtime.clone() }
    }

    /// A scheduled job; see [`fencelock::Client::job`](crate::Client::job).
    pub fn job(&self, name: &str, schedule: impl Into<Schedule>) -> Job {
        Job { inner: self.inner.job(name, schedule), runtime: self.runtime.clone() }
    }

    /// An election; see [`fencelock::Client::election`](crate::Client::election).
    pub fn election(&self, name: &str) -> Election {
        Election { inner: self.inner.election(name), runtime: self.runtime.clone() }
    }

    /// The guard of a hold that another process has let go of; see [`fencelock::Client::adopt`](crate::Client::adopt).
    pub fn adopt(&self, text: &str) -> Result<Guard> {
        let inner = self.runtime.run(self.inner.adopt(text))??;
        Ok(Guard::of(inner, &self.runtime))
    }

    /// Ends every hold of a lock; see [`fencelock::Client::break_lock`](crate::Client::break_lock).
    pub fn break_lock(&self, name: &str, reason: &str) -> Result<Vec<HolderView>> {
        self.runtime.run(self.inner.break_lock(name, reason))?
    }

    /// Ends the holds with this token; see [`fencelock::Client::break_hold`](crate::Client::break_hold).
    pub fn break_hold(&self, name: &str, token: Token, reason: &str) -> Result<Vec<HolderView>> {
        self.runtime.run(self.inner.break_hold(name, token, reason))?
    }

    /// A gate on the Redis server of this client; see [`fencelock::Client::gate`](crate::Client::gate).
    #[cfg(feature = "redis")]
    pub fn gate(&self) -> Result<RedisGate> {
        let gate = self.runtime.run(self.inner.gate())??;
        Ok(RedisGate::of(gate, self.runtime.clone()))
    }

    /// The names of the locks the store knows, in order.
    pub fn names(&self, prefix: &str) -> Result<Vec<String>> {
        self.runtime.run(self.inner.names(prefix))?
    }

    /// Asks the store for nothing and answers how long that took; see [`fencelock::Client::ping`](crate::Client::ping).
    pub fn ping(&self) -> Result<Duration> {
        self.runtime.run(self.inner.ping())?
    }

    /// The abilities of this store; see [`fencelock::Client::guarantees`](crate::Client::guarantees).
    pub fn guarantees(&self) -> Capabilities {
        self.inner.guarantees()
    }

    /// The load of this client: all 0 at rest.
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }

    /// Waits until what was given up is freed on the store, and disconnects.
    pub fn close(&self) -> Result<()> {
        self.runtime.run(self.inner.close())
    }

    /// The client behind it, for what does not wait.
    pub fn as_async(&self) -> &crate::Client {
        &self.inner
    }
}
