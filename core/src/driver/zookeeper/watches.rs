//! The watches of a session. The server tells a watch once; the client library makes it anew on another connection.

use std::sync::{Arc, Weak};

use futures_util::future::join_all;
use scopeguard::{ScopeGuard, guard};
use zookeeper_client::{Error as Fault, EventType, OneshotWatcher};

use super::layout::Layout;
use super::places::path;
use super::session::Sessions;
use super::steps::Steps;
use crate::port::{Failure, LockKey, QueueNotice, Rank, SessionId, Standing};

impl Steps {
    /// Watches entries; answers those that are gone.
    pub(super) async fn watch(
        self: Arc<Self>,
        lock: &LockKey,
        known: &[Standing],
    ) -> Result<Vec<Rank>, Failure> {
        let all = join_all(known.iter().map(|standing| self.watch_one(lock, standing))).await;
        all.into_iter().filter_map(Result::transpose).collect()
    }

    async fn watch_one(
        self: &Arc<Self>,
        lock: &LockKey,
        known: &Standing,
    ) -> Result<Option<Rank>, Failure> {
        let rank = &known.rank;
        if !self.session.watched.lock().insert(rank.clone()) {
            return match self.session.client.get_data(&path(known)).await {
                Ok(_) => Ok(None),
                Err(Fault::NoNode) => Ok(Some(rank.clone())),
                Err(fault) => Err(self.failed(&fault)),
            };
        }
        // Who else relied on it finds out with its next look.
        let unplaced = guard((), |()| {
            self.session.watched.lock().remove(rank);
        });
        match self.see(known).await? {
            Some(watcher) => {
                ScopeGuard::into_inner(unplaced);
                let watched = Watched {
                    sessions: Arc::downgrade(&self.sessions),
                    session: self.session.id,
                    layout: self.layout.clone(),
                    lock: lock.clone(),
                    known: known.clone(),
                };
                self.sessions.runtime.spawn(Box::pin(watched.follow(watcher)));
                Ok(None)
            }
            None => Ok(Some(rank.clone())),
        }
    }

    /// Looks at an entry and watches it. `None`: it is gone.
    async fn see(&self, known: &Standing) -> Result<Option<OneshotWatcher>, Failure> {
        // A look that finds nothing leaves no watch, which would wait for an entry that never comes.
        match self.session.client.get_and_watch_data(&path(known)).await {
            Ok((_, _, watcher)) => Ok(Some(watcher)),
            Err(Fault::NoNode) => Ok(None),
            Err(fault) => Err(self.failed(&fault)),
        }
    }
}

/// An entry that is watched for a session.
struct Watched {
    sessions: Weak<Sessions>,
    session: SessionId,
    layout: Layout,
    lock: LockKey,
    known: Standing,
}

impl Watched {
    /// Waits until the entry is gone, and tells that.
    async fn follow(self, mut watcher: OneshotWatcher) {
        loop {
            let event = watcher.changed().await.event_type;
            let Some(sessions) = self.sessions.upgrade() else { return };
            let Some(session) = sessions.get(self.session) else { return };
            let Self { layout, lock, known, .. } = &self;
            let seen = if event == EventType::NodeDeleted {
                Ok(None)
            } else {
                let (layout, known) = (layout.clone(), known.clone());
                let steps = |sessions, session| async move {
                    Steps { sessions, session, layout }.see(&known).await
                };
                sessions.call(self.session, steps).await
            };
            let notice = match seen {
                Ok(Some(next)) => {
                    watcher = next;
                    continue;
                }
                Ok(None) => {
                    sessions.left(&session, &known.rank);
                    QueueNotice::Gone { lock: lock.clone(), rank: known.rank.clone() }
                }
                Err(_) => QueueNotice::Gap,
            };
            session.watched.lock().remove(&known.rank);
            drop(session);
            sessions.tell(self.session, notice);
            return;
        }
    }
}
