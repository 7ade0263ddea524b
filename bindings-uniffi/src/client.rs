//! A client: one store and its locks.

use std::sync::Arc;
use std::time::Duration;

use fencelock::driver::redis::RedisGate;
use fencelock::facade::JobTimes;
use fencelock::runtime::TokioRuntime;
use fencelock::{ClientBuilder, Token};
use serde_json::json;

use crate::Result;
use crate::election::Election;
use crate::guard::Guard;
use crate::job::ScheduledJob;
use crate::lock::{Lock, Scope};
use crate::options::{Options, with};
use crate::process::{ask, run, runtime};
use crate::version::Versioned;

/// A connection to one store. In the child of a fork it is refused with `closed`.
#[derive(uniffi::Object)]
pub struct Client(fencelock::Client);

#[uniffi::export]
impl Client {
    /// Connects to the store that a URL names. `language` is what people who inspect a lock see.
    #[uniffi::constructor(default(options = None, language = "uniffi"))]
    pub async fn connect(url: String, options: Options, language: String) -> Result<Arc<Self>> {
        let builder = ClientBuilder::default().language(language);
        let builder = builder.runtime(Arc::new(TokioRuntime::of(runtime()?)));
        let builder = with(builder, options, ClientBuilder::option);
        Ok(Arc::new(Self(run(async move { builder.connect(&url).await }).await?)))
    }

    /// A mutex by name.
    #[uniffi::method(default(options = None))]
    pub fn lock(&self, name: &str, options: Options) -> Arc<Lock> {
        Lock::one(self.0.lock(name), options)
    }

    /// The reading side of a read-write lock.
    #[uniffi::method(default(options = None))]
    pub fn read_lock(&self, name: &str, options: Options) -> Arc<Lock> {
        Lock::one(self.0.read_lock(name), options)
    }

    /// The writing side of a read-write lock.
    #[uniffi::method(default(options = None))]
    pub fn write_lock(&self, name: &str, options: Options) -> Arc<Lock> {
        Lock::one(self.0.write_lock(name), options)
    }

    /// A semaphore: at most `limit` holders at once.
    #[uniffi::method(default(options = None))]
    pub fn semaphore(&self, name: &str, limit: u32, options: Options) -> Arc<Lock> {
        Lock::one(self.0.semaphore(name, limit), options)
    }

    /// Several mutexes as one: all or nothing.
    #[uniffi::method(default(options = None))]
    pub fn all(&self, names: Vec<String>, options: Options) -> Arc<Lock> {
        Lock::all(self.0.all(names), options)
    }

    /// A new scope: a lock that is held in it may be entered again.
    pub fn scope(&self) -> Arc<Scope> {
        Arc::new(Scope(self.0.scope()))
    }

    /// An election.
    #[uniffi::method(default(options = None))]
    pub fn election(&self, name: &str, options: Options) -> Arc<Election> {
        Arc::new(Election(with(self.0.election(name), options, fencelock::Election::option)))
    }

    /// A job that is due once in each period, or by a cron expression (in UTC, or in this time zone).
    #[uniffi::method(default(every = None, cron = None, timezone = None, options = None))]
    pub fn job(
        &self,
        name: &str,
        every: Option<Duration>,
        cron: Option<String>,
        timezone: Option<String>,
        options: Options,
    ) -> Result<Arc<ScheduledJob>> {
        let period = every.map(|every| every.as_secs_f64() * 1000.0);
        let job = self.0.job(name, JobTimes { period, cron, timezone }.schedule()?);
        Ok(Arc::new(ScheduledJob(with(job, options, fencelock::Job::option))))
    }

    /// A value by name.
    #[uniffi::method(default(options = None))]
    pub fn version(&self, name: &str, options: Options) -> Arc<Versioned> {
        Arc::new(Versioned(with(self.0.version(name), options, fencelock::Versioned::option)))
    }

    /// A gate on the Redis server of this client, over a connection of its own.
    pub async fn gate(&self) -> Result<Arc<Gate>> {
        Ok(Arc::new(Gate(Arc::new(ask!(self.0, client => client.gate().await)?))))
    }

    /// The names of the locks that the store knows.
    #[uniffi::method(default(prefix = ""))]
    pub async fn names(&self, prefix: String) -> Result<Vec<String>> {
        ask!(self.0, client => client.names(&prefix).await)
    }

    /// The guard of a hold that another process has let go of by `transfer`.
    pub async fn adopt(&self, text: String) -> Result<Arc<Guard>> {
        Ok(Arc::new(Guard::from(ask!(self.0, client => client.adopt(&text).await)?)))
    }

    /// Ends the holds of a lock, or those with this token; for holders that hang. Answers them, as JSON.
    #[uniffi::method(default(token = None))]
    pub async fn break_lock(
        &self,
        name: String,
        reason: String,
        token: Option<u64>,
    ) -> Result<String> {
        ask!(self.0, client => {
            let broken = match token {
                None => client.break_lock(&name, &reason).await,
                Some(token) => client.break_hold(&name, Token::new(token), &reason).await,
            };
            broken.map(|broken| json!(broken).to_string())
        })
    }

    /// Asks the store for nothing and answers how long that took.
    pub async fn ping(&self) -> Result<Duration> {
        ask!(self.0, client => client.ping().await)
    }

    /// The failures that this store survives, as JSON.
    pub fn guarantees(&self) -> String {
        json!(self.0.guarantees()).to_string()
    }

    /// How many attempts, tickets and holds this client carries, and of how many locks: both 0 at rest.
    pub fn stats(&self) -> Vec<u64> {
        let stats = self.0.stats();
        vec![stats.entries as u64, stats.locks as u64]
    }

    /// Refuses new acquires, frees what is held, waits at most two seconds for the store, and disconnects.
    pub async fn disconnect(&self) -> Result<()> {
        ask!(self.0, client => {
            client.close().await;
            Ok(())
        })
    }
}

/// Writes on Redis that a newer token has written are refused.
#[derive(uniffi::Object)]
pub struct Gate(Arc<RedisGate>);

#[uniffi::export]
impl Gate {
    /// Writes a text.
    pub async fn set(&self, resource: String, token: u64, value: String) -> Result<()> {
        ask!(self.0, gate => gate.set(&resource, Token::new(token), &value).await)
    }

    /// Deletes a key; whether it was there.
    pub async fn delete(&self, resource: String, token: u64) -> Result<bool> {
        ask!(self.0, gate => gate.delete(&resource, Token::new(token)).await)
    }

    /// Adds to a number and answers the sum.
    pub async fn increment(&self, resource: String, token: u64, by: i64) -> Result<i64> {
        ask!(self.0, gate => gate.increment(&resource, Token::new(token), by).await)
    }
}
