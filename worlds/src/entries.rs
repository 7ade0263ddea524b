//! The entries of a simulated store with sessions, and what they come to as records of locks.

use std::collections::BTreeMap;
use std::sync::Arc;

use fencelock::driver::queue::QueueModel;
use fencelock::driver::record::{Holder, Record, Ticket};
use fencelock::port::{
    Entry, EntryView, Failure, Instant, Joined, LockKey, Mode, OwnerId, QueueNotice, QueueSink,
    Rank, SessionId,
};

/// How many tokens lie between two fences.
const TOKENS: u64 = 32;
/// No entry has an end of its own.
const FAR: u64 = u64::MAX / 4;

/// See the module.
#[derive(Default)]
pub(super) struct Entries {
    pub(super) model: QueueModel,
    owners: BTreeMap<Rank, OwnerId>,
    clients: BTreeMap<OwnerId, Arc<str>>,
    /// Whom each upgrade is to make the writer.
    readers: BTreeMap<OwnerId, OwnerId>,
    sessions: BTreeMap<SessionId, (Arc<str>, QueueSink)>,
}

impl std::fmt::Debug for Entries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.model.fmt(f)
    }
}

impl Entries {
    /// Notes where the notices of a session go.
    pub(super) fn opened(&mut self, id: SessionId, channel: Arc<str>, sink: QueueSink) {
        self.sessions.insert(id, (channel, sink));
    }

    /// The client of a session, and where it hears of it.
    pub(super) fn listener(&self, id: SessionId) -> Option<(Arc<str>, QueueSink)> {
        self.sessions.get(&id).cloned()
    }

    /// The client that made an entry.
    pub(super) fn client_of(&self, owner: OwnerId) -> Option<&Arc<str>> {
        self.clients.get(&owner)
    }

    /// Makes an entry.
    pub(super) fn join(
        &mut self,
        of: SessionId,
        lock: &LockKey,
        entry: &Entry,
        now: Instant,
    ) -> Result<Option<Joined>, Failure> {
        let all = self.model.list(lock, now);
        let joined = self.model.join(of, lock, entry, now)?;
        let rank = joined.as_ref().map(|joined| (joined.rank.clone(), entry.owner));
        self.owners.extend(rank);
        let channel = self.sessions.get(&of).map(|(channel, _)| (entry.owner, channel.clone()));
        self.clients.extend(channel);
        if entry.upgrades {
            let upgradeable = |view: &&EntryView| view.standing.mode == Mode::Upgradeable;
            let reader = all.iter().find(upgradeable).map(|view| self.owners[&view.standing.rank]);
            self.readers.extend(reader.map(|reader| (entry.owner, reader)));
        }
        Ok(joined)
    }

    /// What is to be told, and to whom.
    pub(super) fn told(&mut self) -> Vec<(SessionId, QueueNotice)> {
        self.model.told()
    }

    /// Who holds each lock and who waits for it, where they did so before as these records say.
    pub(super) fn records(
        &self,
        before: &BTreeMap<LockKey, Record>,
        now: Instant,
    ) -> BTreeMap<LockKey, Record> {
        let record = |lock: LockKey| {
            let held = before.get(&lock).map_or(&[][..], |record| &record.holders);
            let record = self.record(&self.model.list(&lock, now), held);
            (lock, record)
        };
        self.model.names("").into_iter().map(record).collect()
    }

    fn record(&self, all: &[EntryView], held: &[Holder]) -> Record {
        // A reader that had a writer before it looks for an upgrade when that is gone, and lets it go first.
        let upgraded = all.iter().any(|view| view.standing.upgrades);
        let kind = all.first().map(|first| first.standing.mode.kind()).unwrap_or_default();
        let mut record = Record { kind, ..Record::default() };
        let mut left_behind = Vec::new();
        for (at, view) in all.iter().enumerate() {
            let (mode, token) = (view.standing.mode, view.fence.unwrap_or_default() * TOKENS);
            let owner = self.owners[&view.standing.rank];
            let holder = || {
                let (turn, since, upgrading, info) = (0, 0, None, view.info.clone());
                Holder { owner, mode, upgrading, turn, token, since, ends: FAR, info }
            };
            if view.standing.upgrades {
                let of = self.readers.get(&owner);
                let reader = |one: &&mut Holder| Some(&one.owner) == of;
                let alone = record.holders.iter().all(|one| one.mode == Mode::Upgradeable);
                match record.holders.iter_mut().find(reader) {
                    Some(reader) if alone => (reader.mode, reader.token) = (Mode::Write, token),
                    Some(_) => {}
                    None => left_behind.push(holder()),
                }
            } else if holds(view, &all[..at])
                && (!upgraded
                    || mode != Mode::Read
                    || held.iter().any(|holder| holder.owner == owner))
            {
                record.holders.push(holder());
            } else {
                record.tickets.push_back(Ticket {
                    owner,
                    mode,
                    limit: view.limit,
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
        // Nobody claims an upgrade whose reader is gone. Until it is removed, it keeps out whoever waits behind it.
        if record.holders.is_empty() {
            record.holders = left_behind;
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
        Mode::Exclusive | Mode::Write => before.is_empty(),
        Mode::Read => all(&[Mode::Read, Mode::Upgradeable]),
        Mode::Upgradeable => all(&[Mode::Read]),
        Mode::Permit => all(&[Mode::Permit]) && before.len() < view.limit as usize,
    }
}
