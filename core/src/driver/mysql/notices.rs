//! These servers wake nobody. Notices at a lock are kept in its row. A client that waits reads them there, at first often, then less often: that takes no connection
//! of its own, and a server that is full, another user or a proxy changes nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::dialect::Mysql;
use crate::driver::datagram;
use crate::driver::record::Record;
use crate::driver::sql::fault::bad_column;
use crate::driver::sql::foreign::lock_of_row;
use crate::driver::sql::link::Link;
use crate::driver::sql::model::Outbox;
use crate::driver::sql::records::{names, of_lock};
use crate::driver::sql::row::BESIDE;
use crate::driver::sql::statement::{Row, Statement, Value, column};
use crate::error::Result;
use crate::port::backoff::Backoff;
use crate::port::limits::TICKET_LIFE;
use crate::port::{Instant, LockKey, Notice, OwnerId};

/// The pause between two looks of the one who is next: an eighth of the time for which its queue has not moved, within these bounds. So a
/// hand-over takes an eighth longer than the hold, and a lock that is held for long costs few looks.
const OF_NEXT: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(50));
const PART_OF_WAIT: u32 = 8;
/// The longest pause of any.
const LONGEST: Duration = Duration::from_secs(1);
/// A waiter is seen when its ticket is refreshed. One that was not seen for so long has gone, or has the lock.
const GONE: Duration = TICKET_LIFE;
/// Of so many names it is remembered what was read; of more, only where one of ours waits.
const MOST: usize = 4096;

/// The state that a client has read from the rows it waits at.
#[derive(Default)]
pub(super) struct Waits {
    rows: BTreeMap<LockKey, Waited>,
    /// Whether a task looks for notices.
    polls: bool,
    /// When one of ours began to wait, came nearer to its turn or had it.
    moved: Instant,
}

struct Waited {
    /// The newest version that was read.
    seen: u64,
    /// How many wait there before the first of ours; `None` if none of ours waits.
    ahead: Option<usize>,
    /// When that was seen.
    at: Instant,
}

impl Waits {
    pub(super) fn clear(&mut self) {
        self.rows.clear();
    }

    /// Where any of ours waits, and how many are before the one that is nearest to its turn.
    fn waits_at(&self, now: Instant) -> (Vec<LockKey>, usize) {
        let waits = self.rows.iter();
        let waits = waits.filter(|(_, row)| row.ahead.is_some() && now.since(row.at) < GONE);
        let nearest = waits.clone().filter_map(|(_, row)| row.ahead).min();
        (waits.map(|(lock, _)| lock.clone()).collect(), nearest.unwrap_or(usize::MAX))
    }

    /// So many are before the first of ours that waits there. Answers whether that is new.
    fn moves(&mut self, lock: &LockKey, ahead: usize) -> bool {
        let waits = self.rows.get_mut(lock).and_then(|row| row.ahead.as_mut());
        waits.is_some_and(|known| std::mem::replace(known, ahead) != ahead)
    }

    /// So many wait before the first of ours at a row that was read in this version, or none of ours waits. Answers whether ours has begun to
    /// wait.
    fn expect(&mut self, lock: &LockKey, version: u64, ahead: Option<usize>, at: Instant) -> bool {
        let new = Waited { seen: version, ahead, at };
        if let Some(row) = self.rows.get_mut(lock) {
            let former = std::mem::replace(row, new).ahead;
            return ahead.is_some() && former.is_none();
        }
        if ahead.is_none() {
            return false;
        }
        if self.rows.len() >= MOST {
            self.rows.retain(|_, row| row.ahead.is_some());
        }
        self.rows.insert(lock.clone(), new);
        true
    }

    /// The notices in the row for this client that it has not read yet.
    fn read(
        &mut self,
        lock: &LockKey,
        version: u64,
        stored: &[StoredNotice],
        channel: &str,
    ) -> Vec<Notice> {
        let Some(row) = self.rows.get_mut(lock) else { return Vec::new() };
        let new = stored.iter().flat_map(|notice| notice.after(row.seen, channel)).collect();
        row.seen = version.max(row.seen);
        new
    }
}

/// A notice in a row, for a client that reads it there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredNotice {
    /// The version of the row that came with it.
    at: u64,
    /// For whom it is: where its client listens.
    to: Arc<str>,
    /// As in a datagram.
    say: String,
}

impl StoredNotice {
    fn new(at: u64, to: Arc<str>, notice: &Notice) -> Self {
        Self { at, to, say: datagram::text(notice) }
    }

    /// The notices in it for this client, unless the client has read the row since.
    fn after(&self, seen: u64, channel: &str) -> impl Iterator<Item = Notice> {
        let new = self.at > seen && *self.to == *channel;
        datagram::read(self.say.as_bytes()).filter(move |_| new)
    }

    /// Whether the one it is for holds what it was granted, or waits and the lock is still free.
    fn counts(&self, record: &Record) -> bool {
        datagram::read(self.say.as_bytes()).any(|notice| match notice {
            Notice::Granted { owner, .. } => record.holders.iter().any(|held| held.owner == owner),
            Notice::Open { owner } => {
                record.holders.is_empty() && record.tickets.iter().any(|waits| waits.owner == owner)
            }
            _ => false,
        })
    }
}

/// Reads the notices in a row.
fn read_stored(text: Option<&str>) -> Result<Vec<StoredNotice>> {
    text.map_or(Ok(Vec::new()), |text| {
        serde_json::from_str(text).map_err(|_| bad_column("notices"))
    })
}

/// The notices to write into a row: the former ones that are neither out of date nor read by now, and the new ones.
fn to_store(
    before: &[StoredNotice],
    new: impl Iterator<Item = StoredNotice>,
    record: &Record,
    own: &str,
) -> Option<String> {
    let still = before.iter().filter(|notice| *notice.to != *own && notice.counts(record)).cloned();
    let stored: Vec<_> = still.chain(new).collect();
    let packed = || serde_json::to_string(&stored).expect("it is plain text");
    (!stored.is_empty()).then(packed)
}

/// Whether a notice is about this record.
fn concerns(notice: &Notice, record: &Record) -> bool {
    let is = |owner: &OwnerId| {
        record.holders.iter().any(|held| held.owner == *owner)
            || record.tickets.iter().any(|ticket| ticket.owner == *owner)
    };
    match notice {
        Notice::Granted { owner, .. } | Notice::Open { owner } | Notice::Gone { owner } => {
            is(owner)
        }
        Notice::Gap | Notice::Look => false,
    }
}

/// The version of a row, and the notices in it.
fn beside(row: Option<&Row>) -> (u64, Vec<StoredNotice>) {
    let Some(row) = row else { return Default::default() };
    let stored = column(row, BESIDE + 1, "notices").and_then(read_stored);
    (column(row, BESIDE, "version").unwrap_or_default(), stored.unwrap_or_default())
}

/// How many wait in this record before the first of this client's; `None` if none of them waits.
fn ahead_of_ours(record: &Record, channel: &str) -> Option<usize> {
    record.tickets.iter().position(|ticket| *ticket.channel == *channel)
}

impl Link<Mysql> {
    /// Reads the notices in rows of these locks.
    pub(super) fn receive(&self, locks: &[LockKey], rows: &[Row]) {
        for lock in locks {
            let (version, stored) = beside(of_lock(rows.iter(), lock));
            self.receive_at(lock, version, &stored);
        }
    }

    /// The value that is written beside each record that is different.
    pub(super) fn store_notices(
        &self,
        rows: &[Row],
        different: &[(&LockKey, &Record)],
        notices: &Outbox,
    ) -> Vec<Option<Value>> {
        let mut others: Vec<_> = notices.iter().collect();
        let written = different.iter().map(|&(lock, record)| {
            let (read, before) = beside(of_lock(rows.iter(), lock));
            let of_others = std::mem::take(&mut others).into_iter();
            let (here, elsewhere) = of_others.partition(|(_, notice)| concerns(notice, record));
            others = elsewhere;
            let here: Vec<_> = here;
            let new = |(to, notice): &(_, _)| StoredNotice::new(read + 1, Arc::clone(to), notice);
            let stored = to_store(&before, here.into_iter().map(new), record, &self.channel);
            // Before it is written: a notice right after that must not be missed.
            self.expect(lock, read, ahead_of_ours(record, &self.channel));
            Some(stored.into())
        });
        written.collect()
    }

    /// A row that was read in this version is about to be written, and so many wait there before the first of ours, or none of ours waits.
    fn expect(&self, lock: &LockKey, version: u64, ahead: Option<usize>) {
        let mut waits = self.dialect.waits.lock();
        let now = self.runtime.now();
        if waits.expect(lock, version, ahead, now) {
            waits.moved = now;
        }
        if ahead.is_none() || waits.polls || self.is_closed() {
            return;
        }
        waits.polls = true;
        drop(waits);
        self.runtime.spawn(Box::pin(poll(self.weak.clone())));
    }

    /// Passes on the notices in a row that this client has not read yet.
    fn receive_at(&self, lock: &LockKey, version: u64, stored: &[StoredNotice]) {
        let mut waits = self.dialect.waits.lock();
        let notices = waits.read(lock, version, stored, &self.channel);
        if !notices.is_empty() {
            waits.moved = self.runtime.now();
        }
        drop(waits);
        self.tell_self(notices);
    }

    /// Reads the notices where one of ours waits, and where the first ticket of this channel lies, as a path in JSON. A row that cannot be
    /// read now is read at the next look.
    async fn look(&self) {
        let (locks, _) = self.dialect.waits.lock().waits_at(self.runtime.now());
        if locks.is_empty() {
            return;
        }
        let (table, channel) = (&self.tables.table, &self.channel);
        let text = format!(
            "SELECT name, version, notices, JSON_SEARCH(rest, 'one', '{channel}', NULL, '$.waiters[*].channel')
             FROM {table} FORCE INDEX (PRIMARY) WHERE name IN ($1)"
        );
        let asked = Statement::once(text, [names(&locks)]);
        let Ok(answer) = self.ask(vec![asked], false).await else { return };
        for row in answer.all() {
            let Ok(name) = column::<&str>(row, 0, "name") else { continue };
            let Ok(version) = column(row, 1, "version") else { continue };
            let lock = lock_of_row(name);
            let path = column::<Option<&str>>(row, 3, "place").unwrap_or_default();
            if let Some(ahead) = path.and_then(place) {
                let mut waits = self.dialect.waits.lock();
                // A queue that moves may move on soon.
                if waits.moves(&lock, ahead) {
                    waits.moved = self.runtime.now();
                }
            }
            let stored = column(row, 2, "notices").and_then(read_stored).unwrap_or_default();
            self.receive_at(&lock, version, &stored);
        }
    }

    /// How long until the next look; `None` if none of ours waits, and nobody polls from then on.
    fn next_pause(&self) -> Option<Duration> {
        let mut waits = self.dialect.waits.lock();
        let now = self.runtime.now();
        let (locks, ahead) = waits.waits_at(now);
        if locks.is_empty() || self.is_closed() {
            waits.polls = false;
            return None;
        }
        // With each one before it, its turn is further away.
        let turns = u32::try_from(ahead).unwrap_or(u32::MAX).saturating_add(1);
        let of_next = (now.since(waits.moved) / PART_OF_WAIT).clamp(OF_NEXT.0, OF_NEXT.1);
        let pause = of_next.saturating_mul(turns);
        Some(Backoff::spread(pause.min(LONGEST), &self.runtime))
    }
}

/// The number in a path such as `"$.waiters[3].channel"`.
fn place(path: &str) -> Option<usize> {
    path.split_once('[')?.1.split_once(']')?.0.parse().ok()
}

/// Looks for as long as one of ours waits.
async fn poll(weak: Weak<Link<Mysql>>) {
    while let Some(link) = weak.upgrade() {
        let Some(pause) = link.next_pause() else { return };
        let runtime = link.runtime.clone();
        // A client that nobody uses any more ends while this sleeps.
        drop(link);
        runtime.sleep_until(runtime.now() + pause).await;
        let Some(link) = weak.upgrade() else { return };
        link.look().await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fence::Token;

    #[test]
    fn a_notice_is_read_once_by_the_one_it_is_for() {
        let owner = OwnerId::parse("0123456789abcdef0123456789abcdef").unwrap();
        let ttl = Duration::from_secs(5);
        let notice = Notice::Granted { owner, token: Token::new(7), ttl, drawn: 1 };
        let stored = StoredNotice::new(3, "me".into(), &notice);
        let text = to_store(&[], [stored].into_iter(), &Record::default(), "you").unwrap();
        let read = read_stored(Some(&text)).unwrap();
        assert_eq!(read[0].after(2, "me").collect::<Vec<_>>(), [notice]);
        assert_eq!(read[0].after(3, "me").count() + read[0].after(2, "you").count(), 0);
        // Its grant has ended.
        assert_eq!(to_store(&read, [].into_iter(), &Record::default(), "you"), None);
        assert!(read_stored(Some("{}")).is_err());
    }
}
