//! These servers wake nobody. Notices at a lock are kept in its row, where a client that waits reads them.

use std::sync::Arc;

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
use crate::port::{LockKey, Notice, OwnerId};

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
            self.expect(lock, read, record);
            Some(stored.into())
        });
        written.collect()
    }

    /// Passes on the notices in a row that this client has not read yet.
    fn receive_at(&self, lock: &LockKey, version: u64, stored: &[StoredNotice]) {
        let Some(seen) = self.waits.lock().read(lock, version) else { return };
        let new = stored.iter().flat_map(|notice| notice.after(seen, &self.channel));
        let notices: Vec<_> = new.collect();
        if !notices.is_empty() {
            self.has_turn();
        }
        self.tell_self(notices);
    }

    /// Reads the notices where one of ours waits, and where the first ticket of this channel lies, as a path in JSON. A row that cannot be
    /// read now is read at the next look.
    pub(super) async fn look_for_notices(&self) {
        let locks = self.waits_at();
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
                self.are_ahead(&lock, ahead);
            }
            let stored = column(row, 2, "notices").and_then(read_stored).unwrap_or_default();
            self.receive_at(&lock, version, &stored);
        }
    }
}

/// The number in a path such as `"$.waiters[3].channel"`.
fn place(path: &str) -> Option<usize> {
    path.split_once('[')?.1.split_once(']')?.0.parse().ok()
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
