//! Operations on locks, guards and the client.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::held::Held;
use super::{Facade, Named, Shared, Work, with_options};
use crate::error::Error;
use crate::lock::Lock;

impl Facade {
    fn lock(&self, name: &str, options: Named) -> Lock {
        with_options(self.client.lock(name), options, Lock::option)
    }

    pub(super) fn acquire(&self, name: &str, options: Named) -> Work {
        let (lock, shared) = (self.lock(name, options), Arc::downgrade(&self.shared));
        Box::pin(async move { Shared::keep(&shared, Held::Guard(lock.acquire().await?)) })
    }

    pub(super) fn try_acquire(&self, name: &str, options: Named) -> Work {
        let (lock, shared) = (self.lock(name, options), Arc::downgrade(&self.shared));
        Box::pin(async move {
            let guard = lock.try_acquire().await?.map(Held::Guard);
            guard.map_or(Ok(Value::Null), |guard| Shared::keep(&shared, guard))
        })
    }

    pub(super) fn release(&self, guard: u64) -> Work {
        let guard = self.take(guard, Held::guard);
        Box::pin(async move { Ok(json!(guard?.release().await)) })
    }

    pub(super) fn extend(&self, guard: u64, ttl: f64) -> Work {
        let claim = self.claim(guard);
        Box::pin(async move {
            let ttl = Duration::try_from_secs_f64(ttl / 1000.0).unwrap_or_default();
            claim?.extend(ttl).await?;
            Ok(Value::Null)
        })
    }

    pub(super) fn lost(&self, guard: u64) -> Work {
        let claim = self.claim(guard);
        Box::pin(async move {
            if claim?.ended().await { Ok(Value::Null) } else { Err(Error::not_held()) }
        })
    }

    pub(super) fn inspect(&self, name: &str, options: Named) -> Work {
        let lock = self.lock(name, options);
        Box::pin(async move { Ok(json!(lock.inspect().await?)) })
    }

    pub(super) fn names(&self, prefix: String) -> Work {
        let client = self.client.clone();
        Box::pin(async move { Ok(json!(client.names(&prefix).await?)) })
    }

    pub(super) fn close(&self) -> Work {
        let client = self.client.clone();
        Box::pin(async move {
            client.close().await;
            Ok(Value::Null)
        })
    }
}
