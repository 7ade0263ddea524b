//! Hold counts of a scope: whoever holds a lock in it enters again without asking the store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use event_listener::Event;
use scopeguard::{ScopeGuard, guard};

use super::Engine;
use super::line::Local;
use super::request::{LockId, Request, Wait};
use crate::error::{Code, Error, Result};
use crate::runtime::sync::Mutex;

/// The locks that the users of one scope hold, and how often.
#[derive(Default)]
pub(crate) struct Counts {
    entries: Mutex<BTreeMap<LockId, ScopeEntry>>,
    changed: Event,
}

enum ScopeEntry {
    /// Somebody of the scope asks.
    Asked,
    Held {
        local: Local,
        count: u64,
    },
}

/// One guard's share of a scope's hold.
pub(crate) struct Share {
    counts: Arc<Counts>,
    lock: LockId,
    left: AtomicBool,
}

impl Share {
    /// Whether it was given back.
    pub(crate) fn has_left(&self) -> bool {
        self.left.load(Ordering::Acquire)
    }

    /// Gives it back; whether it was the last one, so that the hold ends.
    pub(crate) fn leave(&self) -> bool {
        if self.left.swap(true, Ordering::AcqRel) {
            return false;
        }
        let mut entries = self.counts.entries.lock();
        let Some(ScopeEntry::Held { count, .. }) = entries.get_mut(&self.lock) else {
            return false;
        };
        *count -= 1;
        let last = *count == 0;
        if last {
            entries.remove(&self.lock);
        }
        last
    }
}

impl Engine {
    /// Gets the lock in a scope: at once if the scope holds it, else like anybody.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        counts: &Arc<Counts>,
        lock: &LockId,
        request: Request,
        wait: Wait,
    ) -> Result<Option<(Local, Share)>> {
        let share =
            || Share { counts: counts.clone(), lock: lock.clone(), left: AtomicBool::new(false) };
        loop {
            let changed = counts.changed.listen();
            let entered = counts.enter(lock)?;
            match entered {
                Reentry::Again(local) => {
                    // Unless it arrives, it gives its share back, and with it the hold if nobody else is left.
                    let entering = guard(share(), |share| {
                        if share.leave() {
                            self.abandon(&local);
                        }
                    });
                    if request.ttl > local.hold.ttl() {
                        self.extend_within(&local, request.ttl, wait).await?;
                    }
                    let share = ScopeGuard::into_inner(entering);
                    return Ok(Some((local, share)));
                }
                Reentry::First => {
                    let _asking = guard((), |()| counts.asked(lock));
                    let local = self.acquire(lock, request, wait).await?;
                    return Ok(local.map(|local| {
                        counts.won(lock, &local);
                        (local, share())
                    }));
                }
                Reentry::Wait => match wait {
                    Wait::Try => return Ok(None),
                    Wait::Forever => changed.await,
                    Wait::Until(end) => {
                        if self.runtime.until(end, changed).await.is_none() {
                            let message = "the lock was not granted within the wait; another task of this scope asks for it";
                            return Err(Error::held(message));
                        }
                    }
                },
            }
        }
    }

    /// Pushes the end of the scope's hold, as long as whoever enters is willing to wait.
    async fn extend_within(
        self: &Arc<Self>,
        local: &Local,
        ttl: Duration,
        wait: Wait,
    ) -> Result<()> {
        let extended = self.extend(local, ttl);
        let Wait::Until(end) = wait else { return extended.await };
        self.runtime.until(end, extended).await.unwrap_or_else(|| {
            let message = "the lock was not granted within the wait; the store does not answer";
            Err(Error::new(Code::Timeout, message))
        })
    }
}

/// The answer of a scope to one more user who asks for the lock.
enum Reentry {
    /// It holds the lock.
    Again(Local),
    /// Ask for it.
    First,
    /// Another one of the scope asks.
    Wait,
}

impl Counts {
    fn enter(&self, lock: &LockId) -> Result<Reentry> {
        let mut entries = self.entries.lock();
        match entries.get_mut(lock) {
            None => {
                entries.insert(lock.clone(), ScopeEntry::Asked);
                Ok(Reentry::First)
            }
            Some(ScopeEntry::Asked) => Ok(Reentry::Wait),
            Some(ScopeEntry::Held { local, count }) if local.hold.is_held() => {
                *count += 1;
                Ok(Reentry::Again(local.clone()))
            }
            Some(ScopeEntry::Held { .. }) => {
                let message =
                    "this scope lost the lock; give its guards back before it is asked for again";
                Err(Error::new(Code::Lost, message).with("name", lock.as_str()))
            }
        }
    }
    /// The first of a scope has the lock.
    fn won(&self, lock: &LockId, local: &Local) {
        let held = ScopeEntry::Held { local: local.clone(), count: 1 };
        self.entries.lock().insert(lock.clone(), held);
    }

    /// The first of a scope has asked, whatever came of it.
    fn asked(&self, lock: &LockId) {
        let mut entries = self.entries.lock();
        if let Some(ScopeEntry::Asked) = entries.get(lock) {
            entries.remove(lock);
        }
        drop(entries);
        self.changed.notify(usize::MAX);
    }
}
