//! How entries lie on the store: their keys and values.

use std::sync::Arc;

use super::message::{KeyValue, Range};
pub(super) use crate::driver::entry_text::EntryText;
use crate::port::{CellKey, EntryView, Family, LockKey, Mode, OwnerId, Rank, SessionId, Standing};

/// The names of keys behind one prefix.
#[derive(Clone, Debug)]
pub(super) struct Layout(Arc<str>);

/// The length of an owner id in a key. etcd's own clients write the number of their lease, which is shorter.
const OWNER: usize = 32;

impl Layout {
    pub(super) fn new(prefix: &str) -> Self {
        Self(prefix.into())
    }

    /// The prefix of the keys of a lock's entries.
    fn folder(&self, lock: &LockKey) -> String {
        format!("{}{}/", self.0, lock.as_str())
    }

    pub(super) fn entry(&self, lock: &LockKey, owner: OwnerId) -> String {
        format!("{}{owner}", self.folder(lock))
    }

    /// The key that is there for as long as a session.
    /// It contains no name of a lock, so no other client of etcd waits for it.
    pub(super) fn session(&self, of: SessionId) -> String {
        format!("{}!session!{:x}", self.0, of.get())
    }

    /// The key that refuses a join of this owner id.
    pub(super) fn left(&self, owner: OwnerId) -> String {
        format!("{}!left!{owner}", self.0)
    }

    /// The key of a cell.
    pub(super) fn cell(&self, cell: &CellKey) -> String {
        format!("{}{}{}", self.0, folder_of_cells(cell.family), cell.name)
    }

    /// All entries of a lock.
    pub(super) fn all(&self, lock: &LockKey) -> Range {
        beginning_with(self.folder(lock), false)
    }

    /// The keys of all entries of locks whose name begins like this.
    pub(super) fn names(&self, prefix: &str) -> Range {
        beginning_with(format!("{}{prefix}", self.0), true)
    }

    /// The lock whose entry this is. The keys of other programs have no lease, or other names; those of cells begin otherwise.
    pub(super) fn lock_of(&self, kv: &KeyValue) -> Option<LockKey> {
        let key = std::str::from_utf8(&kv.key).ok()?.strip_prefix(&*self.0)?;
        let (name, last) = key.rsplit_once('/')?;
        let is_cell = Family::ALL.iter().any(|family| key.starts_with(&folder_of_cells(*family)));
        (kv.lease != 0 && is_entry(last) && !is_cell).then(|| LockKey::new(name))
    }

    /// Those of the found keys that are entries of the lock, in the order they were made.
    pub(super) fn entries(&self, lock: &LockKey, found: Vec<KeyValue>) -> Vec<Stored> {
        let folder = self.folder(lock);
        let stored = |kv: KeyValue| {
            let key = String::from_utf8(kv.key).ok()?;
            let last = key.strip_prefix(&folder)?;
            let line = is_entry(last).then(|| read(last, &kv.value))?;
            let rank = Rank::new(kv.create_revision.unsigned_abs(), key);
            Some(Stored { rank, line, lease: kv.lease })
        };
        let mut entries: Vec<_> = found.into_iter().filter_map(stored).collect();
        entries.sort_by(|one, other| one.rank.cmp(&other.rank));
        entries
    }
}

fn folder_of_cells(family: Family) -> String {
    format!("!{}!", family.word())
}

fn beginning_with(key: String, keys_only: bool) -> Range {
    let mut end = key.clone().into_bytes();
    // The first key behind all that begin with this one; none of our bytes is the last there is.
    match end.last_mut() {
        Some(last) => *last += 1,
        None => return Range { key: vec![0], end: vec![0], keys_only },
    }
    Range { key: key.into(), end, keys_only }
}

/// Whether the last word of a key is an owner id, or a lease as etcd's own clients write it.
fn is_entry(word: &str) -> bool {
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (word.len() == OWNER || (1..=16).contains(&word.len())) && word.bytes().all(hex)
}

/// An entry as it lies there.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) rank: Rank,
    pub(super) line: EntryText,
    /// The lease that it ends with.
    pub(super) lease: i64,
}

impl Stored {
    pub(super) fn standing(&self) -> Standing {
        Standing { rank: self.rank.clone(), mode: self.line.mode }
    }

    pub(super) fn view(self) -> EntryView {
        let (standing, fence) = (self.standing(), Some(self.rank.place()));
        // etcd's own clients write a shorter word there.
        let owner = self.rank.name().rsplit('/').next().and_then(OwnerId::parse);
        let EntryText { limit, info, .. } = self.line;
        EntryView { standing, owner, fence, limit, age: <_>::default(), left: None, info }
    }
}

/// Reads the value of the key that ends with `last`. An entry of another program excludes everybody.
fn read(last: &str, value: &[u8]) -> EntryText {
    let own = (last.len() == OWNER).then(|| EntryText::parse(value)).flatten();
    own.unwrap_or_else(|| EntryText::foreign(Mode::Exclusive))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(key: &str, made: i64) -> KeyValue {
        KeyValue { key: key.into(), create_revision: made, lease: 1, ..KeyValue::default() }
    }

    #[test]
    fn a_lock_has_its_own_entries_in_the_order_they_were_made() {
        let (layout, owner) = (Layout::new("p/"), "0123456789abcdef0123456789abcdef");
        let mut ours = key(&format!("p/a/{owner}"), 9);
        ours.value = EntryText::foreign(Mode::Read).written();
        let found = vec![ours, key("p/a/32698f1c", 4), key("p/a/b/1", 2), key("p/a/x", 3)];
        let entries = layout.entries(&LockKey::new("a"), found.clone());
        let mode = |stored: &Stored| (stored.rank.place(), stored.line.mode);
        let modes: Vec<_> = entries.iter().map(mode).collect();
        assert_eq!(modes, [(4, Mode::Exclusive), (9, Mode::Read)]);
        let locks: Vec<_> = found.iter().filter_map(|kv| layout.lock_of(kv)).collect();
        assert_eq!(locks, ["a", "a", "a/b"].map(LockKey::new));
        let session = layout.session(SessionId::new(255));
        assert_eq!(layout.lock_of(&key(&session, 1)), None);
        let range = layout.all(&LockKey::new("a"));
        assert_eq!((&*range.key, &*range.end), (&b"p/a/"[..], &b"p/a0"[..]));
    }
}
