//! A client's knowledge of its session and its entries. Every change is made in one piece; what follows from it is an effect.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::order::{Want, to_watch};
use crate::engine::deadline;
use crate::fence::Token;
use crate::port::failure::Failures;
use crate::port::left_owners::LeftOwners;
use crate::port::{
    Instant, Joined, LockKey, Notice, NoticeSink, Outcome, OwnerId, Rank, SessionId, Standing,
};

#[derive(Default)]
pub(super) struct QueueState {
    pub(super) sink: Option<NoticeSink>,
    pub(super) phase: Phase,
    /// Attempts to open a session.
    pub(super) failures: Failures,
    entries: BTreeMap<OwnerId, Own>,
    by_lock: BTreeMap<LockKey, BTreeSet<OwnerId>>,
    /// The newest that were taken back while nothing was known of them, also when there was no session to ask in.
    pub(super) left: LeftOwners,
    /// Entries that are being removed in the background.
    pub(super) orphans: BTreeSet<(OwnerId, Option<Rank>)>,
}

#[derive(Default)]
pub(super) enum Phase {
    /// There is no session. The next Take opens one.
    #[default]
    None,
    Opening,
    Open(Session),
    Closed,
}

pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) ttl: Duration,
    /// When the newest heartbeat that was answered was sent.
    pub(super) sent: Instant,
    /// Until when this client relies on the session.
    pub(super) deadline: Instant,
    /// When the next heartbeat is due.
    pub(super) next_beat: Instant,
    /// When its task looks next.
    pub(super) looks: Instant,
}

/// An entry that is not wanted any more.
pub(super) struct Orphan {
    pub(super) session: SessionId,
    pub(super) lock: LockKey,
    pub(super) owner: OwnerId,
    /// `None`: it is not known whether there is an entry.
    pub(super) rank: Option<Rank>,
}

/// The notices and the work that follow from a change.
#[derive(Default)]
pub(super) struct Effects {
    pub(super) notices: Vec<Notice>,
    /// Entries whose predecessors are to be watched.
    pub(super) watch: Vec<OwnerId>,
    pub(super) remove: Vec<Orphan>,
    /// The session to end.
    pub(super) end: Option<SessionId>,
    /// Whether the session's task is to look earlier.
    pub(super) earlier: bool,
}

impl Session {
    pub(super) fn new(id: SessionId, ttl: Duration, sent: Instant) -> Self {
        let (next_beat, looks) = (sent + ttl / 4, Instant::FAR);
        Self { id, ttl, sent, deadline: deadline(sent, ttl), next_beat, looks }
    }

    /// A heartbeat that was sent at `sent` was answered.
    pub(super) fn beaten(&mut self, ttl: Duration, sent: Instant) {
        self.sent = self.sent.max(sent);
        self.deadline = self.deadline.max(deadline(sent, ttl));
    }

    /// Whether nothing was heard for so long that renewals are not answered.
    pub(super) fn is_in_doubt(&self, now: Instant) -> bool {
        now >= self.sent + self.ttl / 2
    }
}

impl QueueState {
    pub(super) fn session(&mut self) -> Option<&mut Session> {
        match &mut self.phase {
            Phase::Open(session) => Some(session),
            Phase::None | Phase::Opening | Phase::Closed => None,
        }
    }

    /// The session, unless its deadline has passed: then it is lost, whatever the store says.
    pub(super) fn live(&mut self, now: Instant, effects: &mut Effects) -> Option<&mut Session> {
        let over = |session: &mut Session| now >= session.deadline;
        if self.session().is_some_and(over) {
            self.lose(effects);
        }
        self.session()
    }

    /// Whether this session is the present one.
    pub(super) fn is_present(&self, id: SessionId) -> bool {
        matches!(&self.phase, Phase::Open(session) if session.id == id)
    }

    /// The session is over, and all entries with it.
    pub(super) fn lose(&mut self, effects: &mut Effects) {
        let Some(session) = self.session() else { return };
        effects.end = Some(session.id);
        self.phase = Phase::None;
        self.by_lock.clear();
        for (owner, own) in std::mem::take(&mut self.entries) {
            Self::tell_gone(owner, &own, effects);
        }
    }

    /// An entry is gone, and its client did not ask for that: a hold is lost at once, and whoever waits asks anew.
    fn tell_gone(owner: OwnerId, own: &Own, effects: &mut Effects) {
        if matches!(own.stage, Stage::Waiting | Stage::Holding) {
            effects.notices.push(Notice::Gone { owner });
        }
    }

    pub(super) fn add(&mut self, owner: OwnerId, own: Own) {
        self.by_lock.entry(own.lock.clone()).or_default().insert(owner);
        self.entries.insert(owner, own);
    }

    pub(super) fn get(&mut self, owner: OwnerId) -> Option<&mut Own> {
        self.entries.get_mut(&owner)
    }

    pub(super) fn remove(&mut self, owner: OwnerId) -> Option<Own> {
        let own = self.entries.remove(&owner)?;
        if let Some(owners) = self.by_lock.get_mut(&own.lock) {
            owners.remove(&owner);
            if owners.is_empty() {
                self.by_lock.remove(&own.lock);
            }
        }
        Some(own)
    }

    /// Watches may have been lost. Those who wait are answered; who holds watches again with its next renewal.
    pub(super) fn watch_again(&mut self) -> Vec<OwnerId> {
        self.entries.values_mut().for_each(|own| own.is_watched = false);
        let waits = |(_, own): &(&OwnerId, &Own)| own.stage == Stage::Waiting;
        self.entries.iter().filter(waits).map(|(owner, _)| *owner).collect()
    }

    /// An entry of a lock is gone.
    pub(super) fn gone(
        &mut self,
        lock: &LockKey,
        gone: &Rank,
        now: Instant,
        effects: &mut Effects,
    ) {
        let owners = self.by_lock.get(lock).cloned().unwrap_or_default();
        for owner in owners {
            let Some(own) = self.entries.get_mut(&owner) else { continue };
            if own.is_gone_by(gone) {
                // Nobody here has removed it, unless it is leaving.
                if own.stage != Stage::Leaving
                    && let Some(own) = self.remove(owner)
                {
                    Self::tell_gone(owner, &own, effects);
                }
                continue;
            }
            match own.other_gone(gone) {
                Consequence::Same => {}
                Consequence::Watch => effects.watch.push(owner),
                Consequence::Hold => self.hold(owner, now, effects),
            }
        }
    }

    /// An entry is not wanted any more.
    pub(super) fn abandon(&mut self, owner: OwnerId, effects: &mut Effects) -> Option<Own> {
        let session = self.session()?.id;
        let own = self.remove(owner)?;
        let (lock, rank) = (own.lock.clone(), own.rank.clone());
        effects.remove.push(Orphan { session, lock, owner, rank });
        Some(own)
    }

    /// An entry has nobody in its way any more. Whoever waits for it is told.
    pub(super) fn hold(&mut self, owner: OwnerId, now: Instant, effects: &mut Effects) {
        let Some(session) = self.live(now, effects) else { return };
        let deadline = session.deadline;
        let Some(own) = self.entries.get_mut(&owner).filter(|own| own.stage == Stage::Waiting)
        else {
            return;
        };
        own.stage = Stage::Holding;
        let (token, drawn) = (own.token, own.drawn);
        // What the client counts from its own request must end before the session does.
        let ttl = deadline.since(own.base).min(own.ttl);
        effects.notices.push(Notice::Granted { owner, token, ttl, drawn });
        self.last_until(owner, now, effects);
    }

    /// A hold is wanted for its lease from now on, never for less than before.
    pub(super) fn last_until(&mut self, owner: OwnerId, now: Instant, effects: &mut Effects) {
        let Some(own) = self.entries.get_mut(&owner) else { return };
        let before = if own.ends == Instant::FAR { Instant::default() } else { own.ends };
        own.ends = before.max(now + own.ttl);
        let ends = own.ends;
        effects.earlier |= self.session().is_some_and(|session| ends < session.looks);
    }

    /// How a step of this owner is answered if it holds.
    pub(super) fn granted(&mut self, owner: OwnerId, now: Instant) -> Option<Outcome> {
        let deadline = self.session()?.deadline;
        let own = self.get(owner).filter(|own| own.stage == Stage::Holding)?;
        let (token, drawn) = (own.token, own.drawn);
        let lease = own.ends.since(now);
        let left = lease.min(deadline.since(now));
        Some(Outcome::Granted { token, left, drawn })
    }

    /// Ends holds whose lease is over; the others end at the answered moment.
    pub(super) fn end_leases(&mut self, now: Instant, effects: &mut Effects) -> Instant {
        let over = |(_, own): &(&OwnerId, &Own)| own.ends <= now && own.stage == Stage::Holding;
        let over: Vec<_> = self.entries.iter().filter(over).map(|(owner, _)| *owner).collect();
        for owner in over {
            if let Some(own) = self.abandon(owner, effects) {
                Self::tell_gone(owner, &own, effects);
            }
        }
        let ends = self.entries.values().map(|own| own.ends).filter(|ends| *ends > now);
        ends.min().unwrap_or(Instant::FAR)
    }
}

/// How many tokens a grant has, one for each local holder: a rank is that many tokens away from the next.
pub(super) const TOKENS: u32 = 32;

/// An entry of this client: what it is, and what is known of those before it.
pub(super) struct Own {
    pub(super) lock: LockKey,
    pub(super) want: Want,
    pub(super) stage: Stage,
    /// Its place; `None` until that is known.
    pub(super) rank: Option<Rank>,
    /// Those before it that have not gone, as far as is known.
    pub(super) before: Vec<Standing>,
    /// One of them has gone since they were read. Others may have too: only the nearest are watched.
    outdated: bool,
    /// It holds, and its own entry is watched: somebody else may remove it.
    pub(super) is_watched: bool,
    /// Moves that arrived while its join was under way.
    early: Vec<Rank>,
    /// When the newest step arrived that was answered "still waiting": a push counts from there.
    pub(super) base: Instant,
    /// The lease wanted, and until when it was wanted.
    pub(super) ttl: Duration,
    pub(super) ends: Instant,
    /// The first of its tokens, and how many.
    pub(super) token: Token,
    pub(super) drawn: u32,
}

/// Where an entry of this client is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Joining,
    Waiting,
    Holding,
    /// It is being removed.
    Leaving,
}

/// The effect of a change of another entry on one that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consequence {
    /// Nothing.
    Same,
    /// Another entry is to be watched.
    Watch,
    /// It holds.
    Hold,
}

impl Own {
    pub(super) fn joining(lock: LockKey, want: Want, ttl: Duration, block: u32) -> Self {
        let (stage, ends) = (Stage::Joining, Instant::FAR);
        let drawn = block.min(TOKENS);
        Self {
            lock,
            want,
            stage,
            rank: None,
            before: Vec::new(),
            outdated: false,
            is_watched: false,
            early: Vec::new(),
            base: Instant::default(),
            ttl,
            ends,
            token: Token::default(),
            drawn,
        }
    }

    /// It has its place.
    pub(super) fn joined(&mut self, joined: Joined) {
        self.token = Token::new(joined.fence * u64::from(TOKENS));
        self.rank = Some(joined.rank);
        self.before = joined.before;
        self.stage = Stage::Waiting;
        for gone in std::mem::take(&mut self.early) {
            self.note(&gone);
        }
    }

    /// Those in the way.
    pub(super) fn to_watch(&self) -> Vec<Standing> {
        to_watch(self.want, &self.before)
    }

    /// Whether the whole queue is to be read before another entry is watched. Else one after another would be asked for that has
    /// gone long ago.
    pub(super) fn is_outdated(&self) -> bool {
        self.outdated
    }

    /// The whole queue was read.
    pub(super) fn saw(&mut self, all: &[Standing]) {
        self.outdated = false;
        self.before.retain_mut(|known| {
            let Ok(at) = all.binary_search_by(|standing| standing.rank.cmp(&known.rank)) else {
                return false;
            };
            known.mode = all[at].mode;
            true
        });
    }

    /// Whether this is the entry itself, and it is gone.
    pub(super) fn is_gone_by(&self, gone: &Rank) -> bool {
        self.rank.as_ref() == Some(gone)
    }

    /// Another entry is gone.
    pub(super) fn other_gone(&mut self, gone: &Rank) -> Consequence {
        match self.stage {
            Stage::Joining => self.early.push(gone.clone()),
            Stage::Waiting => {
                let watched = self.to_watch();
                self.note(gone);
                let now = self.to_watch();
                return match now.is_empty() {
                    true => Consequence::Hold,
                    false if now != watched => Consequence::Watch,
                    false => Consequence::Same,
                };
            }
            Stage::Holding | Stage::Leaving => {}
        }
        Consequence::Same
    }

    fn note(&mut self, gone: &Rank) {
        if let Some(place) = self.before.iter().position(|standing| standing.rank == *gone) {
            self.before.remove(place);
            self.outdated = true;
        }
    }
}
