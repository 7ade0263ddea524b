//! How entries lie on the store: their keys and values.

use std::sync::Arc;

use super::message::{KeyValue, Range};
use crate::port::{
    CellKey, Entry, EntryView, Family, LockKey, Mode, OwnerId, Rank, SessionId, Standing,
};

/// The names of keys behind one prefix.
#[derive(Clone, Debug)]
pub(super) struct Layout(Arc<str>);

/// The length of an owner id in a key. etcd's own clients write the number of their lease, which is shorter.
const OWNER: usize = 32;

impl Layout {
    pub(super) fn new(prefix: &str) -> Self {
        Self(prefix.into())
    }

    /// What the entries of a lock begin with.
    fn folder(&self, lock: &LockKey) -> String {
        format!("{}{}/", self.0, lock.as_str())
    }

    pub(super) fn entry(&self, lock: &LockKey, owner: OwnerId) -> String {
        format!("{}{owner}", self.folder(lock))
    }

    /// The key that is there for as long as a session.
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

    /// What of this lies there as entries of a lock, in the order they were made.
    pub(super) fn entries(&self, lock: &LockKey, found: Vec<KeyValue>) -> Vec<Stored> {
        let folder = self.folder(lock);
        let stored = |kv: KeyValue| {
            let key = String::from_utf8(kv.key).ok()?;
            let last = key.strip_prefix(&folder)?;
            let line = is_entry(last).then(|| Line::read(last, &kv.value))?;
            let rank = Rank::new(kv.create_revision.unsigned_abs(), key);
            let KeyValue { version, mod_revision: modified, lease, .. } = kv;
            Some(Stored { rank, line, version, modified, lease })
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
    pub(super) line: Line,
    /// How often it was written.
    pub(super) version: i64,
    /// The revision that wrote it last.
    pub(super) modified: i64,
    /// The lease that it ends with.
    pub(super) lease: i64,
}

impl Stored {
    pub(super) fn standing(&self) -> Standing {
        let Line { mode, upgrades, .. } = self.line;
        Standing { rank: self.rank.clone(), mode, upgrades }
    }

    /// The newest fence that was drawn for it. Each draw writes the entry; a change of its mode does too, and notes the fence.
    pub(super) fn fence(&self) -> u64 {
        match self.line.fence {
            Some((fence, version)) if version == self.version => fence,
            _ => self.modified.unsigned_abs(),
        }
    }

    pub(super) fn view(self) -> EntryView {
        let (standing, fence) = (self.standing(), Some(self.fence()));
        let Line { limit, info, .. } = self.line;
        EntryView { standing, fence, limit, age: <_>::default(), left: None, info }
    }
}

/// The value of an entry: `<mode> <limit>[ upgrades][ fence=<fence>@<version>]`, and who asks on a line of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) mode: Mode,
    pub(super) limit: u32,
    pub(super) upgrades: bool,
    /// The newest fence, if the entry had been written so often when its mode was changed.
    pub(super) fence: Option<(u64, i64)>,
    pub(super) info: Arc<str>,
}

const MODES: &[(Mode, &str)] = &[
    (Mode::Exclusive, "exclusive"),
    (Mode::Read, "read"),
    (Mode::Write, "write"),
    (Mode::Upgradeable, "upgradeable"),
    (Mode::Permit, "permit"),
];

impl Line {
    pub(super) fn of(entry: &Entry) -> Self {
        let Entry { mode, limit, upgrades, ref info, .. } = *entry;
        Self { mode, limit, upgrades, fence: None, info: info.clone() }
    }

    pub(super) fn written(&self) -> Vec<u8> {
        let Self { mode, limit, upgrades, fence, info } = self;
        let word = MODES.iter().find(|(known, _)| known == mode).map_or("exclusive", |row| row.1);
        let upgrades = if *upgrades { " upgrades" } else { "" };
        let fence = fence.map_or(String::new(), |(fence, at)| format!(" fence={fence}@{at}"));
        format!("{word} {limit}{upgrades}{fence}\n{info}").into_bytes()
    }

    /// An entry of another program excludes everybody.
    fn read(last: &str, value: &[u8]) -> Self {
        let foreign = || Self {
            mode: Mode::Exclusive,
            limit: 1,
            upgrades: false,
            fence: None,
            info: "".into(),
        };
        let own = (last.len() == OWNER).then(|| Self::parse(value)).flatten();
        own.unwrap_or_else(foreign)
    }

    /// The value of an entry of ours.
    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        let (words, info) = std::str::from_utf8(value).ok()?.split_once('\n')?;
        let mut words = words.split(' ');
        let word = words.next()?;
        let mode = MODES.iter().find(|(_, known)| *known == word)?.0;
        let limit = words.next()?.parse().ok()?;
        let mut line = Self { mode, limit, upgrades: false, fence: None, info: info.into() };
        for word in words {
            match word.split_once('=') {
                None => line.upgrades |= word == "upgrades",
                Some(("fence", text)) => {
                    let (fence, version) = text.split_once('@')?;
                    line.fence = Some((fence.parse().ok()?, version.parse().ok()?));
                }
                Some(_) => {}
            }
        }
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(mode: Mode, upgrades: bool, fence: Option<(u64, i64)>) -> Line {
        Line { mode, limit: 7, upgrades, fence, info: r#"{"host":"a\nb"}"#.into() }
    }

    #[test]
    fn a_value_is_read_as_it_was_written() {
        for (mode, word) in MODES {
            let (plain, full) = (line(*mode, false, None), line(*mode, true, Some((12, 3))));
            assert!(plain.written().starts_with(word.as_bytes()));
            assert_eq!(Line::parse(&plain.written()), Some(plain));
            assert_eq!(Line::parse(&full.written()), Some(full));
        }
        assert_eq!(Line::parse(b"who knows 1\n"), None);
    }

    fn key(key: &str, made: i64) -> KeyValue {
        KeyValue { key: key.into(), create_revision: made, lease: 1, ..KeyValue::default() }
    }

    #[test]
    fn a_lock_has_its_own_entries_in_the_order_they_were_made() {
        let (layout, owner) = (Layout::new("p/"), "0123456789abcdef0123456789abcdef");
        let mut ours = key(&format!("p/a/{owner}"), 9);
        ours.value = line(Mode::Read, false, None).written();
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

    #[test]
    fn a_weaker_mode_keeps_the_fence_until_another_is_drawn() {
        let stored = |version, modified| Stored {
            rank: Rank::new(5, ""),
            line: line(Mode::Read, false, Some((5, 2))),
            version,
            modified,
            lease: 1,
        };
        assert_eq!(stored(2, 8).fence(), 5);
        assert_eq!(stored(3, 11).fence(), 11);
    }
}
