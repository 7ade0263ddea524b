//! Reentrancy, for threads.

use std::sync::Arc;

use super::lock::Lock;
use crate::runtime::InlineRuntime;

/// A scope: a lock that is held in it may be acquired again; see [`fencelock::Scope`](crate::Scope). It is not bound to a thread.
///
/// ```
/// let client = fencelock::blocking::connect("memory:blocking-scope")?;
/// let scope = client.scope();
/// let outer = scope.lock("orders:42").acquire()?;
/// let inner = scope.lock("orders:42").acquire()?;
/// assert_eq!(outer.token(), inner.token());
/// # Ok::<(), fencelock::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scope {
    pub(super) inner: crate::Scope,
    pub(super) runtime: Arc<InlineRuntime>,
}

impl Scope {
    /// A mutex by name that this scope may enter again.
    pub fn lock(&self, name: &str) -> Lock {
        Lock { inner: self.inner.lock(name), runtime: self.runtime.clone() }
    }
}
