//! A scope: whoever holds a lock in it may enter again.

use std::fmt;
use std::sync::Arc;

use crate::client::Client;
use crate::engine::Counts;
use crate::lock::Lock;

/// Where reentrancy ends: a lock held in a scope is entered again by anybody who has the scope, without a round trip, with
/// the same token and deadline, past everybody who waits. It is free when every guard of it was given back.
///
/// A scope is handed over on purpose: clone it into the tasks that shall enter too. It is not bound to a thread or a task.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let client = fencelock::connect("memory:scope").await?;
/// let scope = client.scope();
/// let outer = scope.lock("orders:42").acquire().await?;
/// let inner = scope.lock("orders:42").acquire().await?;
/// assert_eq!(outer.token(), inner.token());
/// inner.release().await.check()?;
/// assert!(client.lock("orders:42").try_acquire().await?.is_none());
/// outer.release().await.check()?;
/// assert!(client.lock("orders:42").try_acquire().await?.is_some());
/// # Ok::<(), fencelock::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Scope {
    client: Client,
    counts: Arc<Counts>,
}

impl Client {
    /// A new scope: whoever holds a lock in it may enter again.
    pub fn scope(&self) -> Scope {
        Scope { client: self.clone(), counts: Arc::default() }
    }

    /// A mutex that may be entered again through this value and its clones: a lock in a [scope](Client::scope) of its own.
    pub fn reentrant(&self, name: &str) -> Lock {
        self.scope().lock(name)
    }
}

impl Scope {
    /// A mutex by name that this scope may enter again. On the store it is the ordinary mutex of that name.
    pub fn lock(&self, name: &str) -> Lock {
        self.client.lock(name).within(self.counts.clone())
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("client", &self.client).finish_non_exhaustive()
    }
}
