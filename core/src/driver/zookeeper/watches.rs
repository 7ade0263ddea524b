//! The watches of a session. The server tells a watch once; the client library makes it anew on another connection.

use std::sync::{Arc, Weak};

use futures_util::future::join_all;
use zookeeper_client::{Error as Fault, EventType, OneshotWatcher};

use super::layout::Layout;
use super::places::Stored;
use super::session::Sessions;
use super::steps::Steps;
use crate::port::{Failure, LockKey, Moved, QueueNotice, Rank, SessionId, Standing};

/// What a look at an entry has led to.
enum Seen {
    /// It is as it was known. What becomes of it is told.
    Same(OneshotWatcher),
    Moved(Moved),
}

impl Steps {
    /// Watches entries; answers those that are not as they are known.
    pub(super) async fn watch(
        self: Arc<Self>,
        lock: &LockKey,
        known: &[Standing],
    ) -> Result<Vec<Moved>, Failure> {
        let all = join_all(known.iter().map(|standing| self.watch_one(lock, standing))).await;
        all.into_iter().filter_map(Result::transpose).collect()
    }

    async fn watch_one(
        self: &Arc<Self>,
        lock: &LockKey,
        known: &Standing,
    ) -> Result<Option<Moved>, Failure> {
        let rank = &known.rank;
        if !self.session.watched.lock().insert(rank.clone()) {
            return self.look(known).await;
        }
        let mut placing = Placing { steps: self, rank, placed: false };
        match self.see(known).await? {
            Seen::Same(watcher) => {
                placing.placed = true;
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
            Seen::Moved(moved) => Ok(Some(moved)),
        }
    }

    /// Looks at an entry and watches it.
    async fn see(&self, known: &Standing) -> Result<Seen, Failure> {
        let mut stored = Stored::of(known);
        loop {
            // A look that finds nothing leaves no watch, which would wait for an entry that never comes.
            match self.session.client.get_and_watch_data(&stored.path()).await {
                Ok((_, _, watcher)) => return Ok(Seen::Same(watcher)),
                Err(Fault::NoNode) => {}
                Err(fault) => return Err(self.failed(&fault)),
            }
            match self.instead(known).await? {
                Ok(present) => stored = present,
                Err(moved) => return Ok(Seen::Moved(moved)),
            }
        }
    }

    /// Looks at an entry that is watched.
    async fn look(&self, known: &Standing) -> Result<Option<Moved>, Failure> {
        let mut stored = Stored::of(known);
        loop {
            match self.session.client.get_data(&stored.path()).await {
                Ok(_) => return Ok(None),
                Err(Fault::NoNode) => {}
                Err(fault) => return Err(self.failed(&fault)),
            }
            match self.instead(known).await? {
                Ok(present) => stored = present,
                Err(moved) => return Ok(Some(moved)),
            }
        }
    }

    /// There is no node by the name that an entry is known by: where it lies, or what became of it.
    async fn instead(&self, known: &Standing) -> Result<Result<Stored, Moved>, Failure> {
        let rank = known.rank.clone();
        let weakens = Stored::of(known).weakens();
        let present = if weakens { self.find(&rank).await? } else { None };
        Ok(match present {
            Some(present) if present.mode == known.mode => Ok(present),
            present => Err(Moved { rank, mode: present.map(|stored| stored.mode) }),
        })
    }
}

/// A watch that is being placed.
struct Placing<'a> {
    steps: &'a Steps,
    rank: &'a Rank,
    placed: bool,
}

impl Drop for Placing<'_> {
    fn drop(&mut self) {
        // Who else relied on it finds out with its next look.
        if !self.placed {
            self.steps.session.watched.lock().remove(self.rank);
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
    /// Waits until the entry is not as it is known any more, and tells that.
    async fn follow(self, mut watcher: OneshotWatcher) {
        loop {
            let event = watcher.changed().await.event_type;
            let Some(sessions) = self.sessions.upgrade() else { return };
            let Some(session) = sessions.get(self.session) else { return };
            let Self { layout, lock, known, .. } = &self;
            let deleted = event == EventType::NodeDeleted && !Stored::of(known).weakens();
            let seen = if deleted {
                Ok(Seen::Moved(Moved { rank: known.rank.clone(), mode: None }))
            } else {
                let (layout, known) = (layout.clone(), known.clone());
                let steps = |sessions, session| async move {
                    Steps { sessions, session, layout }.see(&known).await
                };
                sessions.call(self.session, steps).await
            };
            let notice = match seen {
                Ok(Seen::Same(next)) => {
                    watcher = next;
                    continue;
                }
                Ok(Seen::Moved(moved)) => {
                    if moved.mode.is_none() {
                        sessions.left(&session, &moved.rank);
                    }
                    QueueNotice::Moved { lock: lock.clone(), moved }
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
