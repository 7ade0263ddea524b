//! The meaning of each call of a queue store, as a pure state machine.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fencelock::port::{
    Entry, EntryView, Failure, Instant, Joined, LockKey, OwnerId, QueueNotice, Rank, SessionId,
    Standing,
};
use fencelock::{Code, Error};

/// All sessions and entries of a store. Times are those of the *store's* clock.
#[derive(Clone, Debug, Default)]
pub struct QueueModel {
    /// The newest rank, which is the fence too.
    last: u64,
    /// The newest session.
    opened: u64,
    sessions: BTreeMap<SessionId, Session>,
    queues: BTreeMap<LockKey, Vec<Stored>>,
    /// The notices still to be sent, each with the session that gets it.
    told: Vec<(SessionId, QueueNotice)>,
}

#[derive(Clone, Debug)]
struct Session {
    ttl: Duration,
    ends: Instant,
    watches: BTreeSet<(LockKey, Rank)>,
    /// Owner ids whose join makes no entry.
    refused: BTreeSet<OwnerId>,
}

#[derive(Clone, Debug)]
struct Stored {
    rank: Rank,
    session: SessionId,
    entry: Entry,
    since: Instant,
}

impl Stored {
    fn standing(&self) -> Standing {
        Standing { rank: self.rank.clone(), mode: self.entry.mode }
    }
}

impl QueueModel {
    /// An empty store whose ranks are greater than `last`.
    pub fn above(last: u64) -> Self {
        Self { last, ..Self::default() }
    }

    /// The notices to send since the last call, each with the session that gets it.
    pub fn told(&mut self) -> Vec<(SessionId, QueueNotice)> {
        std::mem::take(&mut self.told)
    }

    /// When a session ends; `None` if it has ended.
    pub fn ends(&self, of: SessionId) -> Option<Instant> {
        self.sessions.get(&of).map(|session| session.ends)
    }

    /// Ends the sessions whose time is over.
    pub fn expire(&mut self, now: Instant) {
        let over = |(_, session): &(_, &Session)| session.ends <= now;
        let over: Vec<_> = self.sessions.iter().filter(over).map(|(id, _)| *id).collect();
        for id in over {
            self.end(id);
            self.told.push((id, QueueNotice::Ended { session: id }));
        }
    }

    /// Opens a session.
    pub fn open(&mut self, ttl: Duration, now: Instant) -> SessionId {
        self.opened += 1;
        let id = SessionId::new(self.opened);
        let (watches, refused) = Default::default();
        self.sessions.insert(id, Session { ttl, ends: now + ttl, watches, refused });
        id
    }

    /// Keeps a session alive.
    pub fn beat(&mut self, of: SessionId, now: Instant) -> Result<Duration, Failure> {
        let session = self.session(of)?;
        session.ends = now + session.ttl;
        Ok(session.ttl)
    }

    /// Makes an entry.
    pub fn join(
        &mut self,
        of: SessionId,
        lock: &LockKey,
        entry: &Entry,
        now: Instant,
    ) -> Result<Option<Joined>, Failure> {
        if self.session(of)?.refused.contains(&entry.owner) {
            return Ok(None);
        }
        self.last += 1;
        let rank = Rank::new(self.last, "");
        let queue = self.queues.entry(lock.clone()).or_default();
        let before = queue.iter().map(Stored::standing).collect();
        let (entry, since) = (entry.clone(), now);
        queue.push(Stored { rank: rank.clone(), session: of, entry, since });
        Ok(Some(Joined { rank, fence: self.last, before }))
    }

    /// Watches entries; answers those that are gone.
    pub fn watch(
        &mut self,
        of: SessionId,
        lock: &LockKey,
        known: &[Standing],
    ) -> Result<Vec<Rank>, Failure> {
        self.session(of)?;
        let queue = self.queues.get(lock).map_or(&[][..], Vec::as_slice);
        let mut gone = Vec::new();
        for Standing { rank, .. } in known {
            if queue.iter().all(|stored| stored.rank != *rank) {
                gone.push(rank.clone());
            } else if let Some(session) = self.sessions.get_mut(&of) {
                session.watches.insert((lock.clone(), rank.clone()));
            }
        }
        Ok(gone)
    }

    /// Removes an entry.
    pub fn leave(
        &mut self,
        of: SessionId,
        lock: &LockKey,
        owner: OwnerId,
        at: Option<&Rank>,
    ) -> Result<bool, Failure> {
        self.session(of)?;
        let mine = |stored: &&Stored| match at {
            Some(rank) => stored.rank == *rank,
            None => stored.entry.owner == owner,
        };
        let queue = self.queues.get(lock).map_or(&[][..], Vec::as_slice);
        let found = queue.iter().find(mine).map(|stored| stored.rank.clone());
        match &found {
            Some(rank) => self.remove(lock, |stored| stored.rank == *rank),
            None if at.is_none() => {
                self.session(of)?.refused.insert(owner);
            }
            None => {}
        }
        Ok(found.is_some())
    }

    /// All entries of a lock.
    pub fn list(&self, lock: &LockKey, now: Instant) -> Vec<EntryView> {
        let view = |stored: &Stored| EntryView {
            standing: stored.standing(),
            owner: Some(stored.entry.owner),
            fence: Some(stored.rank.place()),
            limit: stored.entry.limit,
            age: now.since(stored.since),
            left: self.ends(stored.session).map(|ends| ends.since(now)),
            info: stored.entry.info.clone(),
        };
        self.queues.get(lock).map(|queue| queue.iter().map(view).collect()).unwrap_or_default()
    }

    /// Ends a session.
    pub fn end(&mut self, of: SessionId) {
        if self.sessions.remove(&of).is_none() {
            return;
        }
        let locks: Vec<_> = self.queues.keys().cloned().collect();
        for lock in locks {
            self.remove(&lock, |stored| stored.session == of);
        }
    }

    /// The locks that have entries.
    pub fn names(&self, prefix: &str) -> Vec<LockKey> {
        let keys = self.queues.keys().filter(|key| key.as_str().starts_with(prefix));
        keys.cloned().collect()
    }

    fn session(&mut self, of: SessionId) -> Result<&mut Session, Failure> {
        let ended = || Failure::refused(Error::new(Code::Lost, "the session has ended"));
        self.sessions.get_mut(&of).ok_or_else(ended)
    }

    fn remove(&mut self, lock: &LockKey, goes: impl Fn(&Stored) -> bool) {
        let Some(queue) = self.queues.get_mut(lock) else { return };
        let gone: Vec<_> = queue.extract_if(.., |stored| goes(stored)).collect();
        if queue.is_empty() {
            self.queues.remove(lock);
        }
        for Stored { rank, .. } in gone {
            self.tell(lock, &rank);
        }
    }

    /// Tells those who watch this entry, once.
    fn tell(&mut self, lock: &LockKey, rank: &Rank) {
        let watched = (lock.clone(), rank.clone());
        for (id, session) in &mut self.sessions {
            if session.watches.remove(&watched) {
                let notice = QueueNotice::Gone { lock: lock.clone(), rank: rank.clone() };
                self.told.push((*id, notice));
            }
        }
    }
}
