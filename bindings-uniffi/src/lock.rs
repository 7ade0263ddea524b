//! Locks by name, alone and several as one.

use std::sync::Arc;
use std::time::Duration;

use fencelock::All;

use crate::Result;
use crate::guard::Guard;
use crate::options::{Options, with};
use crate::process::{ask, run};

/// A lock by name, or several as one.
#[derive(uniffi::Object)]
pub struct Lock(Sort);

pub(crate) enum Sort {
    One(Box<fencelock::Lock>),
    All(All),
}

/// Does the same with either sort.
macro_rules! either {
    ($lock:expr, $of:ident => $act:expr) => {
        match &$lock.0 {
            Sort::One($of) => $act,
            Sort::All($of) => $act,
        }
    };
}

impl Lock {
    pub(crate) fn one(lock: fencelock::Lock, options: Options) -> Arc<Self> {
        Arc::new(Self(Sort::One(Box::new(with(lock, options, fencelock::Lock::option)))))
    }

    pub(crate) fn all(all: All, options: Options) -> Arc<Self> {
        Arc::new(Self(Sort::All(with(all, options, All::option))))
    }
}

#[uniffi::export]
impl Lock {
    /// Waits for the lock: this long, or as long as the option `wait` says, which is for ever by default. Fails with `timeout`.
    #[uniffi::method(default(wait = None))]
    pub async fn acquire(&self, wait: Option<Duration>) -> Result<Arc<Guard>> {
        either!(self, lock => {
            let guard = wait.map_or_else(|| lock.acquire(), |wait| lock.acquire_within(wait));
            Ok(Arc::new(run(guard).await?.into()))
        })
    }

    /// Asks once, or waits this long: nothing if somebody else holds the lock.
    #[uniffi::method(default(wait = None))]
    pub async fn try_acquire(&self, wait: Option<Duration>) -> Result<Option<Arc<Guard>>> {
        either!(self, lock => {
            let guard = wait.map_or_else(|| lock.try_acquire(), |wait| lock.try_acquire_within(wait));
            Ok(run(guard).await?.map(|guard| Arc::new(guard.into())))
        })
    }

    /// The holders of the lock and its waiters, as JSON. Changes nothing. Of several locks, a list.
    pub async fn inspect_lock(&self) -> Result<String> {
        let Sort::One(lock) = &self.0 else { return Ok("[]".to_owned()) };
        ask!(lock, lock => lock.inspect().await.map(|state| serde_json::json!(state).to_string()))
    }

    /// Whether anybody holds the lock now.
    pub async fn is_locked(&self) -> Result<bool> {
        let Sort::One(lock) = &self.0 else { return Ok(false) };
        ask!(lock, lock => lock.is_locked().await)
    }
}

/// A scope, in which a lock that is held may be entered again.
#[derive(uniffi::Object)]
pub struct Scope(pub(crate) fencelock::Scope);

#[uniffi::export]
impl Scope {
    /// A mutex that may be entered again in this scope.
    #[uniffi::method(default(options = None))]
    pub fn lock(&self, name: &str, options: Options) -> Arc<Lock> {
        Lock::one(self.0.lock(name), options)
    }
}
