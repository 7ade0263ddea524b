//! Notices at a lock are kept in its row, so that a client reads them after it was woken.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::driver::datagram;
use crate::driver::record::Record;
use crate::driver::sql::fault::bad_column;
use crate::error::Result;
use crate::port::{Notice, OwnerId};

/// A notice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Told {
    /// The version of the row that came with it.
    at: u64,
    /// For whom it is: where its client listens.
    to: Arc<str>,
    /// As in a datagram.
    say: String,
}

impl Told {
    pub(super) fn new(at: u64, to: Arc<str>, notice: &Notice) -> Self {
        Self { at, to, say: datagram::text(notice) }
    }

    /// The notices in it for this client, unless the client has read the row since.
    pub(super) fn after(&self, seen: u64, channel: &str) -> impl Iterator<Item = Notice> {
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
pub(super) fn read(text: Option<&str>) -> Result<Vec<Told>> {
    text.map_or(Ok(Vec::new()), |text| serde_json::from_str(text).map_err(|_| bad_column("told")))
}

/// The notices to write into a row: the former ones that are neither out of date nor read by now, and the new ones.
pub(super) fn written(
    before: &[Told],
    new: impl Iterator<Item = Told>,
    record: &Record,
    own: &str,
) -> Option<String> {
    let still = before.iter().filter(|told| *told.to != *own && told.counts(record)).cloned();
    let told: Vec<_> = still.chain(new).collect();
    let packed = || serde_json::to_string(&told).expect("it is plain text");
    (!told.is_empty()).then(packed)
}

/// Whether a notice is about this record.
pub(super) fn concerns(notice: &Notice, record: &Record) -> bool {
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
        let told = Told::new(3, "me".into(), &notice);
        let text = written(&[], [told].into_iter(), &Record::default(), "you").unwrap();
        let read = read(Some(&text)).unwrap();
        assert_eq!(read[0].after(2, "me").collect::<Vec<_>>(), [notice]);
        assert_eq!(read[0].after(3, "me").count() + read[0].after(2, "you").count(), 0);
        // The grant it tells of has ended.
        assert_eq!(written(&read, [].into_iter(), &Record::default(), "you"), None);
        assert!(super::read(Some("{}")).is_err());
    }
}
