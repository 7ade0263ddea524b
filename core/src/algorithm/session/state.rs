//! A client's knowledge of its sessions and of what it has in them. Every change is made in one piece; what follows is an effect.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::deadline;
use crate::error::Error;
use crate::fence::Token;
use crate::port::failure::Failures;
use crate::port::left_owners::LeftOwners;
use crate::port::{Instant, LockKey, Mode, Notice, NoticeSink, Outcome, OwnerId};

/// Idle sessions that are kept. More than these stay until their next heartbeat: others may be waiting for one.
const KEPT: usize = 1;
/// Locks of which is known that they were taken a moment ago.
const REMEMBERED: usize = 256;
/// So long after a refusal a lock is waited for without asking whether it is free.
const A_MOMENT: Duration = Duration::from_secs(1);

pub(super) struct State<T> {
    pub(super) sink: Option<NoticeSink>,
    pub(super) closed: bool,
    /// The session for what is free.
    pub(super) main: Option<Id>,
    /// Somebody opens it.
    pub(super) opening: bool,
    /// Attempts to open it.
    pub(super) failures: Failures,
    pub(super) sessions: BTreeMap<Id, Live<T>>,
    pub(super) idle: Vec<Id>,
    /// Sessions that are being opened beside it.
    pub(super) coming: usize,
    pub(super) drawn: Id,
    pub(super) owners: BTreeMap<OwnerId, Own>,
    /// Owners whose Take is not to be carried out any more.
    pub(super) left: LeftOwners,
    /// Locks that somebody else had a moment ago.
    pub(super) taken: BTreeMap<LockKey, Taken>,
}

/// A lock that somebody else had.
pub(super) struct Taken {
    /// Until when this counts.
    until: Instant,
    /// Why waiting for it failed.
    pub(super) trouble: Option<Error>,
}

/// The notices and the work that follow from a change.
pub(super) struct Effects<T> {
    pub(super) notices: Vec<Notice>,
    pub(super) cut: Vec<Arc<T>>,
    /// Whether whoever waits for news is to look.
    pub(super) news: bool,
    /// Whether the sessions' tasks are to look earlier.
    pub(super) earlier: bool,
}

impl<T> Default for State<T> {
    fn default() -> Self {
        Self {
            sink: None,
            closed: false,
            main: None,
            opening: false,
            failures: Failures::default(),
            sessions: BTreeMap::new(),
            idle: Vec::new(),
            coming: 0,
            drawn: 0,
            owners: BTreeMap::new(),
            left: LeftOwners::default(),
            taken: BTreeMap::new(),
        }
    }
}

impl<T> Default for Effects<T> {
    fn default() -> Self {
        Self { notices: Vec::new(), cut: Vec::new(), news: false, earlier: false }
    }
}

impl<T> State<T> {
    /// A session, unless its deadline has passed: then it is lost, whatever the server says.
    pub(super) fn live(
        &mut self,
        id: Id,
        now: Instant,
        effects: &mut Effects<T>,
    ) -> Option<&mut Live<T>> {
        if self.sessions.get(&id)?.is_late(now) {
            // What waits is asked for in the same way, and hears no heartbeats.
            let waiting = |(id, live): (&Id, &Live<T>)| live.waits.then_some(*id);
            let waiting: Vec<Id> = self.sessions.iter().filter_map(waiting).collect();
            for id in waiting {
                self.lose(id, effects);
            }
            self.lose(id, effects);
        }
        self.sessions.get_mut(&id)
    }

    /// A session that has nothing, and was heard of. One that waits hears nothing until its lock is there.
    pub(super) fn take_idle(
        &mut self,
        now: Instant,
        ttl: Duration,
        effects: &mut Effects<T>,
    ) -> Option<(Id, Arc<T>)> {
        for id in self.idle.iter().rev().copied().collect::<Vec<_>>() {
            if let Some(live) = self.live(id, now, effects)
                && !live.is_in_doubt(now, ttl)
            {
                let session = live.session.clone();
                self.idle.retain(|idle| *idle != id);
                return Some((id, session));
            }
        }
        None
    }

    /// Somebody else has a lock. Of very many, not all are remembered.
    pub(super) fn takes(&mut self, lock: &LockKey, now: Instant, trouble: Option<Error>) {
        if self.taken.len() >= REMEMBERED {
            self.taken.retain(|_, taken| now < taken.until);
        }
        if self.taken.len() < REMEMBERED || self.taken.contains_key(lock) {
            self.taken.insert(lock.clone(), Taken { until: now + A_MOMENT, trouble });
        }
    }

    /// The record of a lock that somebody else had, if it still counts.
    pub(super) fn taken(&self, lock: &LockKey, now: Instant) -> Option<&Taken> {
        self.taken.get(lock).filter(|taken| now < taken.until)
    }

    /// A session is over, and all that was in it.
    pub(super) fn lose(&mut self, id: Id, effects: &mut Effects<T>) {
        let Some(live) = self.sessions.remove(&id) else { return };
        self.main = self.main.filter(|main| *main != id);
        self.idle.retain(|idle| *idle != id);
        (effects.news, effects.earlier) = (true, true);
        effects.cut.push(live.session);
        let mut gone = Vec::new();
        for (owner, own) in &self.owners {
            let settled = matches!(own.stage, Stage::Waiting | Stage::Holding);
            if own.session == Some(id) && settled {
                gone.push(*owner);
            }
        }
        for owner in gone {
            self.owners.remove(&owner);
            effects.notices.push(Notice::Gone { owner });
        }
    }

    /// An attempt or a hold is over, and its session has nothing of it any more.
    pub(super) fn forget(&mut self, owner: OwnerId, effects: &mut Effects<T>) {
        effects.news = true;
        let Some(own) = self.owners.remove(&owner) else { return };
        if let Some(id) = own.session {
            self.leave_session(owner, &own.lock, id);
        }
    }

    /// A session does not have this lock for this owner any more.
    pub(super) fn leave_session(&mut self, owner: OwnerId, lock: &LockKey, id: Id) {
        let Some(live) = self.sessions.get_mut(&id) else { return };
        live.waits = false;
        if live.names.get(lock) == Some(&owner) {
            live.names.remove(lock);
        }
        if self.main == Some(id) || !live.names.is_empty() || self.idle.contains(&id) {
            return;
        }
        self.idle.push(id);
    }

    /// Whether a session is about to be given back.
    pub(super) fn gives_back(&self) -> bool {
        let lends = |own: &Own| own.session.is_some() && own.session != self.main;
        self.owners.values().any(|own| own.leaves && lends(own))
    }

    /// Whether nobody needs a session any more.
    pub(super) fn is_spare(&self, id: Id) -> bool {
        self.idle.iter().rev().skip(KEPT).any(|idle| *idle == id)
    }

    /// How a step of this owner is answered if it holds.
    pub(super) fn granted(
        &mut self,
        owner: OwnerId,
        now: Instant,
        effects: &mut Effects<T>,
    ) -> Option<Outcome> {
        let id = self.owners.get(&owner)?.session?;
        let deadline = self.live(id, now, effects)?.deadline;
        let own = self.owners.get(&owner).filter(|own| own.stage == Stage::Holding)?;
        let left = own.ends.min(deadline).since(now);
        Some(Outcome::Granted { token: own.token, left, drawn: own.drawn })
    }

    /// A hold is wanted for its lease from now on, never for less than before.
    pub(super) fn last_until(
        &mut self,
        owner: OwnerId,
        ttl: Duration,
        now: Instant,
        effects: &mut Effects<T>,
    ) {
        let Some(own) = self.owners.get_mut(&owner) else { return };
        own.ttl = ttl;
        let before = if own.ends == Instant::FAR { Instant::default() } else { own.ends };
        own.ends = before.max(now + ttl);
        let live = own.session.and_then(|id| self.sessions.get(&id));
        effects.earlier |= live.is_some_and(|live| own.ends < live.looks);
    }
}

/// An attempt or a hold of this client.
pub(super) struct Own {
    pub(super) lock: LockKey,
    pub(super) mode: Mode,
    pub(super) stage: Stage,
    /// In which session; `None` until it has one.
    pub(super) session: Option<Id>,
    /// It is not wanted any more.
    pub(super) leaves: bool,
    /// When the newest step arrived that was answered "still waiting": a push counts from there.
    pub(super) base: Instant,
    /// The lease wanted, and until when it was wanted.
    pub(super) ttl: Duration,
    pub(super) ends: Instant,
    pub(super) token: Token,
    /// How many tokens it draws.
    pub(super) drawn: u32,
}

/// Where it is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is asked for.
    Asking,
    Waiting,
    Holding,
    /// It is being given back.
    Leaving,
}

/// Names a session of one client.
pub(super) type Id = u64;

/// A session of this client that is open.
pub(super) struct Live<T> {
    pub(super) session: Arc<T>,
    /// When the newest request that was answered was sent.
    sent: Instant,
    /// Until when this client relies on it.
    pub(super) deadline: Instant,
    pub(super) next_beat: Instant,
    /// When its task looks next.
    pub(super) looks: Instant,
    /// A lock waits in it: nothing else is answered, and nothing is promised.
    pub(super) waits: bool,
    /// For whom it has, or is about to have, which lock.
    pub(super) names: BTreeMap<LockKey, OwnerId>,
}

impl<T> Live<T> {
    pub(super) fn new(session: Arc<T>, sent: Instant, ttl: Duration) -> Self {
        Self {
            session,
            sent,
            deadline: deadline(sent, ttl),
            next_beat: sent + ttl / 4,
            looks: Instant::FAR,
            waits: false,
            names: BTreeMap::new(),
        }
    }

    /// A request that was sent at `sent` was answered.
    pub(super) fn answered(&mut self, sent: Instant, ttl: Duration) {
        self.sent = self.sent.max(sent);
        self.deadline = self.deadline.max(deadline(sent, ttl));
        self.next_beat = self.next_beat.max(sent + ttl / 4);
    }

    /// Whether nothing was heard for so long that renewals are not answered.
    pub(super) fn is_in_doubt(&self, now: Instant, ttl: Duration) -> bool {
        !self.waits && now >= self.sent + ttl / 2
    }

    /// Whether its deadline has passed.
    pub(super) fn is_late(&self, now: Instant) -> bool {
        !self.waits && now >= self.deadline
    }
}
