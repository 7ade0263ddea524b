//! Where locks lie: the path of each name, and back; and how their entries are named: as Apache Curator names them,
//! `_c_<owner id>-<marker><sequence>`, or as kazoo does.

use std::fmt::Write;

use percent_encoding::percent_decode_str;
use uuid::Uuid;

use crate::port::{self, CellKey, LockKey, Mode, OwnerId};

/// The child of the root under which cells lie. No part of a lock's path is written so.
pub(super) const CELLS: &str = "%cells";
/// The number of folders in which cells lie, so that no list is too long.
const FOLDERS: u64 = 64;

/// The child of a lock's node in which its permits lie.
pub(super) const LEASES: &str = "leases";

/// The paths behind one chroot.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Empty, or a path.
    root: String,
}

impl Layout {
    pub(super) fn new(root: &str) -> Self {
        Self { root: root.to_owned() }
    }

    /// Where all locks lie.
    pub(super) fn root(&self) -> &str {
        if self.root.is_empty() { "/" } else { &self.root }
    }

    /// The node of a lock: its entries but for permits are children of it.
    pub(super) fn folder(&self, lock: &LockKey) -> String {
        let mut path = self.root.clone();
        for (place, part) in lock.as_str().split('/').enumerate() {
            path.push('/');
            path.push_str(&written(part, place == 0 && self.root.is_empty()));
        }
        path
    }

    /// The node whose children are the permits of a lock.
    pub(super) fn leases(&self, lock: &LockKey) -> String {
        format!("{}/{LEASES}", self.folder(lock))
    }

    /// The node whose children are the entries of this mode.
    pub(super) fn folder_of(&self, lock: &LockKey, mode: Mode) -> String {
        if mode == Mode::Permit { self.leases(lock) } else { self.folder(lock) }
    }

    /// The node under which cells lie.
    pub(super) fn cells(&self) -> String {
        format!("{}/{CELLS}", self.root)
    }

    /// The folder of a cell, and its node there.
    pub(super) fn cell(&self, key: &CellKey) -> (String, String) {
        let CellKey { family, name, .. } = key;
        let text = escaped(name, &['%', '/']);
        let folder = format!("{}/{:02}", self.cells(), remainder(&text));
        let path = format!("{folder}/{}:{text}", family.word());
        (folder, path)
    }

    /// The lock that lies at a path, if one can.
    pub(super) fn lock_at(&self, path: &str) -> Option<LockKey> {
        let parts = path.strip_prefix(&*self.root)?.strip_prefix('/')?.split('/');
        let read: Option<Vec<_>> = parts.map(read).collect();
        let lock = LockKey::new(read?.join("/"));
        // Others may write a name in another way. That is another path.
        (self.folder(&lock) == path).then_some(lock)
    }
}

/// The remainder of a name's number (FNV-1a in 64 bits) after division by the number of folders.
fn remainder(name: &str) -> u64 {
    let more = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, more) % FOLDERS
}

/// Whether no part of a path may contain this letter. Letters beyond 16 bits are two of Java's, which are refused.
fn is_refused(letter: char) -> bool {
    matches!(letter, '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)
}

/// A part of a name as a part of a path. What the server refuses, and what would be taken for something else, is written by `%`.
fn written(part: &str, first: bool) -> String {
    let mut text = escaped(part, &['%']);
    let reserved = first && text == "zookeeper";
    if matches!(&*text, "." | "..")
        || reserved
        || Child::read(&text, Names::Curator) != Child::Other
    {
        let last = text.pop().unwrap_or_default();
        escape(&mut text, last);
    }
    if text.is_empty() { "%".to_owned() } else { text }
}

/// The text with these letters written by `%`, and those that the server refuses.
fn escaped(text: &str, letters: &[char]) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        if letters.contains(&letter) || is_refused(letter) {
            escape(&mut escaped, letter);
        } else {
            escaped.push(letter);
        }
    }
    escaped
}

fn escape(text: &mut String, letter: char) {
    for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
        let _ = write!(text, "%{byte:02X}");
    }
}

fn read(part: &str) -> Option<String> {
    if part == "%" {
        return Some(String::new());
    }
    percent_decode_str(part).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

/// Whether a path can be a chroot.
pub(super) fn is_path(path: &str) -> bool {
    let plain = |part: &str| {
        !matches!(part, "" | "." | "..")
            && !part.contains(is_refused)
            && Child::read(part, Names::Curator) == Child::Other
    };
    path.split('/').all(plain)
}

/// The library whose names the entries of a lock have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    Curator,
    Kazoo,
}

/// The markers before the sequence, each with the mode its entry wants to hold in. Of the modes of one marker the first is read.
type Markers = &'static [(&'static str, Mode)];

const CURATORS: Markers = &[
    ("lock-", Mode::Exclusive),
    ("__READ__", Mode::Read),
    ("__WRIT__", Mode::Write),
    ("lease-", Mode::Permit),
];
/// kazoo's `Lock` and `WriteLock` have the same name.
const KAZOOS: Markers =
    &[("__lock__", Mode::Write), ("__lock__", Mode::Exclusive), ("__rlock__", Mode::Read)];

/// The markers of others who queue under a path by rules of their own.
const FOREIGN: &[(&str, &str)] = &[
    ("__lock__", "kazoo"),
    ("__rlock__", "kazoo"),
    ("lock-", "Curator"),
    ("__READ__", "Curator"),
    ("__WRIT__", "Curator"),
    ("lease-", "Curator"),
    ("latch-", "Curator's LeaderLatch"),
    ("read-", "another lock library"),
    ("write-", "another lock library"),
];

/// The name of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// The text before the marker.
    pub(super) stem: String,
    pub(super) mode: Mode,
    /// The server's number. It begins anew at `i32::MIN` after `i32::MAX`.
    pub(super) sequence: i32,
}

/// The kinds of a child of a lock's node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Child {
    Entry(Node),
    /// An entry of somebody who does not queue as we do.
    Foreign(&'static str),
    /// No entry: a lock whose name goes on, for instance.
    Other,
}

impl Names {
    /// Those of a lock.
    pub(super) fn of(layout: port::Layout) -> Self {
        if layout == port::Layout::Kazoo { Self::Kazoo } else { Self::Curator }
    }

    fn markers(self) -> Markers {
        match self {
            Self::Curator => CURATORS,
            Self::Kazoo => KAZOOS,
        }
    }

    /// Whether there are names for an entry of this mode.
    pub(super) fn has(self, mode: Mode) -> bool {
        self.markers().iter().any(|(_, known)| *known == mode)
    }

    /// The stem of the entries of an owner id.
    pub(super) fn stem(self, owner: OwnerId) -> String {
        let owner = owner.to_string();
        if self == Self::Kazoo {
            // In the place of kazoo's own random id.
            return owner;
        }
        // An owner id is as long as a UUID, in which form Curator looks for it.
        let id = Uuid::parse_str(&owner).unwrap_or_default();
        format!("_c_{}-", id.hyphenated())
    }

    /// The part between the stem and the sequence.
    pub(super) fn marker(self, mode: Mode) -> &'static str {
        self.markers().iter().find(|(_, known)| *known == mode).map_or("", |row| row.0)
    }
}

/// A sequence as the server writes it.
pub(super) fn digits(sequence: i32) -> String {
    format!("{sequence:010}")
}

impl Child {
    /// Reads a name as those who queue by these names do.
    pub(super) fn read(name: &str, names: Names) -> Self {
        let split = |marker: &str| {
            let (before, after) = name.rsplit_once(marker)?;
            let sequence = after.parse().ok().filter(|sequence| digits(*sequence) == after)?;
            Some((before, sequence))
        };
        for (marker, mode) in names.markers() {
            let Some((before, sequence)) = split(marker) else { continue };
            return Self::Entry(Node { stem: before.to_owned(), mode: *mode, sequence });
        }
        let foreign = FOREIGN.iter().find(|(marker, _)| split(marker).is_some());
        foreign.map_or(Self::Other, |(_, who)| Self::Foreign(who))
    }

    /// The library whose entry this is, if it does not queue as we do.
    pub(super) fn foreign(self) -> Option<&'static str> {
        match self {
            Self::Foreign(who) => Some(who),
            Self::Entry(_) | Self::Other => None,
        }
    }

    /// The entry, if it is one.
    pub(super) fn entry(self) -> Option<Node> {
        match self {
            Self::Entry(node) => Some(node),
            Self::Foreign(_) | Self::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::Family;

    #[test]
    fn each_name_has_a_path_of_its_own() {
        let layout = Layout::new("/locks");
        let names = [
            "orders/42",
            "",
            "/",
            "//",
            "a/",
            ".",
            "..",
            "...",
            "a/./b",
            "%",
            "%25",
            "%2E",
            "ü/\u{7f}",
            "zookeeper",
            "leases",
            "a/leases",
            "\0",
            "\u{e000}",
            "\u{ffff}",
            "\u{1f600}",
            "lock-0000000001",
            "lock-000000000%31",
            "x/_c_y-lease-0000000001",
            "a__lock__-2147483648",
        ];
        let mut paths = Vec::new();
        for name in names {
            let lock = LockKey::new(name);
            let path = layout.folder(&lock);
            assert_eq!(layout.lock_at(&path), Some(lock), "{path}");
            let parts = path.strip_prefix('/').expect("it is absolute");
            assert!(is_path(parts), "{path}");
            assert!(!paths.contains(&path), "{path}");
            paths.push(path);
        }
        assert_eq!(paths[0], "/locks/orders/42");
        assert_eq!(Layout::new("").folder(&LockKey::new("zookeeper")), "/zookeepe%72");
    }

    #[test]
    fn each_cell_has_a_node_of_its_own_where_no_lock_lies() {
        let layout = Layout::new("/locks");
        let mut paths = Vec::new();
        for name in ["stock", "stock/7", "stock%2F7", "", ".", "\0", "lock-0000000001"] {
            for family in Family::ALL {
                let (folder, path) = layout.cell(&CellKey::new(family, name));
                assert!(
                    path.starts_with(&folder) && folder.starts_with("/locks/%cells/"),
                    "{path}"
                );
                assert_eq!(path.matches('/').count(), 4, "{path}");
                assert_eq!(layout.lock_at(&path), None);
                assert!(!paths.contains(&path), "{path}");
                paths.push(path);
            }
        }
        assert_eq!(paths[0], "/locks/%cells/53/version:stock");
    }

    #[test]
    fn a_path_that_is_written_otherwise_is_no_lock() {
        let layout = Layout::new("/locks");
        for path in ["/locks", "/other/x", "/locks/%41", "/locks/%zz", "/locks/%FF"] {
            assert_eq!(layout.lock_at(path), None, "{path}");
        }
        for chroot in ["a//b", ".", "a/..", "a\u{1}", "lock-0000000001", ""] {
            assert!(!is_path(chroot), "{chroot:?}");
        }
    }

    const CURATOR: &str = "_c_0f3c2a1e-5b7d-4e8f-9a0b-1c2d3e4f5a6b-";
    const KAZOO: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_name_is_read_as_it_was_written() {
        let modes = [Mode::Exclusive, Mode::Read, Mode::Write, Mode::Permit];
        let all = [(Names::Curator, CURATOR), (Names::Kazoo, KAZOO)];
        for (mode, (names, stem)) in
            modes.into_iter().flat_map(|mode| all.map(|names| (mode, names)))
        {
            if !names.has(mode) {
                continue;
            }
            for sequence in [0, i32::MAX, i32::MIN, -5] {
                let name = format!("{stem}{}{}", names.marker(mode), digits(sequence));
                let Child::Entry(node) = Child::read(&name, names) else { panic!("{name}") };
                assert_eq!(node.stem, stem, "{name}");
                assert_eq!(names.marker(node.mode), names.marker(mode));
                assert_eq!(node.sequence, sequence, "{name}");
                let other = if names == Names::Kazoo { Names::Curator } else { Names::Kazoo };
                assert!(matches!(Child::read(&name, other), Child::Foreign(_)), "{name}");
            }
        }
        assert!(!Names::Kazoo.has(Mode::Permit));
        let owner = OwnerId::parse(KAZOO).unwrap();
        assert_eq!(Names::Kazoo.stem(owner), KAZOO);
    }

    #[test]
    fn the_names_of_others_are_known() {
        let read = |name: &str| Child::read(name, Names::Curator);
        let stem = |name: &str| read(name).entry().map(|node| (node.stem, node.mode));
        assert_eq!(stem("lock-0000000012"), Some((String::new(), Mode::Exclusive)));
        let reader = format!("{CURATOR}__READ__-2147483648");
        assert_eq!(stem(&reader), Some((CURATOR.to_owned(), Mode::Read)));
        assert_eq!(read(&format!("{KAZOO}__lock__0000000007")), Child::Foreign("kazoo"));
        assert_eq!(
            Child::read("lock-0000000012", Names::Kazoo),
            Child::Foreign("Curator"),
            "to kazoo"
        );
        for other in ["leases", "lock-12", "orders", "1234567890", "lock-+000000001", "lock-"] {
            assert_eq!(read(other), Child::Other, "{other}");
        }
    }
}
