//! The entries of a simulated store with sessions, and what they come to as records of locks.

use std::collections::BTreeMap;
use std::sync::Arc;

use fencelock::driver::record::{Holder, Record, Ticket};
use fencelock::port::{
    Entry, EntryView, Failure, Instant, Joined, LockKey, Mode, OwnerId, QueueNotice, QueueSink,
    Rank, SessionId,
};
use fencelock_sim::QueueModel;

/// How many tokens lie between two fences.
const TOKENS: u64 = 32;
/// No entry has an end of its own.
const FAR: u64 = u64::MAX / 4;

/// See the module.
#[derive(Default)]
pub(crate) struct Entries {
    pub(crate) model: QueueModel,
    owners: BTreeMap<Rank, OwnerId>,
    clients: BTreeMap<OwnerId, Arc<str>>,
    sessions: BTreeMap<SessionId, (Arc<str>, QueueSink)>,
}

impl std::fmt::Debug for Entries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.model.fmt(f)
    }
}

impl Entries {
    /// Notes where the notices of a session go.
    pub(crate) fn opened(&mut self, id: SessionId, channel: Arc<str>, sink: QueueSink) {
        self.sessions.insert(id, (channel, sink));
    }

    /// The client of a session, and where it hears of it.
    pub(crate) fn listener(&self, id: SessionId) -> Option<(Arc<str>, QueueSink)> {
        self.sessions.get(&id).cloned()
    }

    /// The client that made an entry.
    pub(crate) fn client_of(&self, owner: OwnerId) -> Option<&Arc<str>> {
        self.clients.get(&owner)
    }

    /// Makes an entry.
    pub(crate) fn join(
        &mut self,
        of: SessionId,
        lock: &LockKey,
        entry: &Entry,
        now: Instant,
    ) -> Result<Option<Joined>, Failure> {
        let joined = self.model.join(of, lock, entry, now)?;
        let rank = joined.as_ref().map(|joined| (joined.rank.clone(), entry.owner));
        self.owners.extend(rank);
        let channel = self.sessions.get(&of).map(|(channel, _)| (entry.owner, channel.clone()));
        self.clients.extend(channel);
        Ok(joined)
    }

    /// Takes the notices to send, each with the session it goes to.
    pub(crate) fn told(&mut self) -> Vec<(SessionId, QueueNotice)> {
        self.model.told()
    }

    /// The holders and the waiters of each lock.
    pub(crate) fn records(&self, now: Instant) -> BTreeMap<LockKey, Record> {
        let record = |lock: LockKey| {
            let record = self.record(&self.model.list(&lock, now));
            (lock, record)
        };
        self.model.names("").into_iter().map(record).collect()
    }

    fn record(&self, all: &[EntryView]) -> Record {
        let kind = all.first().map(|first| first.standing.mode.kind()).unwrap_or_default();
        let mut record = Record { kind, ..Record::default() };
        for (at, view) in all.iter().enumerate() {
            let (mode, token) = (view.standing.mode, view.fence.unwrap_or_default() * TOKENS);
            let owner = self.owners[&view.standing.rank];
            if holds(view, &all[..at]) {
                let info = view.info.clone();
                record.holders.push(Holder {
                    owner,
                    mode,
                    token,
                    since: 0,
                    ends: FAR,
                    permits: 1,
                    info,
                });
            } else {
                record.tickets.push_back(Ticket {
                    owner,
                    mode,
                    limit: view.limit,
                    permits: 1,
                    channel: "".into(),
                    ttl: 0,
                    block: 1,
                    since: 0,
                    refreshed: FAR,
                    passed: 0,
                    info: view.info.clone(),
                });
            }
        }
        record
    }
}

/// A record as a history shows it.
pub(super) fn shown(record: &Record) -> String {
    let holder = |one: &Holder| format!("{:?} {:?} {}", one.owner, one.mode, one.token);
    let holders: Vec<_> = record.holders.iter().map(holder).collect();
    let waits: Vec<_> =
        record.tickets.iter().map(|one| format!("{:?} {:?}", one.owner, one.mode)).collect();
    format!("held by {holders:?}, awaited by {waits:?}")
}

/// Whether an entry has nobody before it who keeps it out. This is said again here, so that it does not follow the adapter's
/// rule wherever that goes.
fn holds(view: &EntryView, before: &[EntryView]) -> bool {
    let all = |modes: &[Mode]| before.iter().all(|other| modes.contains(&other.standing.mode));
    match view.standing.mode {
        Mode::Read => all(&[Mode::Read]),
        Mode::Permit => all(&[Mode::Permit]) && before.len() < view.limit as usize,
        _ => before.is_empty(),
    }
}
