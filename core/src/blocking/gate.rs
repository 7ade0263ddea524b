//! The gate for resources on Redis, for threads.

use std::sync::Arc;

use crate::error::Result;
use crate::fence::Token;
use crate::runtime::InlineRuntime;

/// Writes keys on a Redis server, each only with a token that is not older than the newest one that has written it; see
/// [`driver::redis::RedisGate`](crate::driver::redis::RedisGate).
#[derive(Debug)]
pub struct RedisGate {
    inner: crate::driver::redis::RedisGate,
    runtime: Arc<InlineRuntime>,
}

impl RedisGate {
    /// Connects to the Redis server a URL names.
    pub fn connect(url: &str) -> Result<Self> {
        let runtime = Arc::new(InlineRuntime::new()?);
        let inner = runtime.run(crate::connect_gate(url))??;
        Ok(Self { inner, runtime })
    }

    pub(super) fn of(inner: crate::driver::redis::RedisGate, runtime: Arc<InlineRuntime>) -> Self {
        Self { inner, runtime }
    }

    /// Sets a key to a text.
    pub fn set(&self, resource: &str, token: Token, value: &str) -> Result<()> {
        self.runtime.run(self.inner.set(resource, token, value))?
    }

    /// Deletes a key; whether it was there.
    pub fn delete(&self, resource: &str, token: Token) -> Result<bool> {
        self.runtime.run(self.inner.delete(resource, token))?
    }

    /// Adds to a whole number; answers the sum.
    pub fn increment(&self, resource: &str, token: Token, by: i64) -> Result<i64> {
        self.runtime.run(self.inner.increment(resource, token, by))?
    }

    /// The newest token that has written a key.
    pub fn newest(&self, resource: &str) -> Result<Option<Token>> {
        self.runtime.run(self.inner.newest(resource))?
    }
}
