//! How entries are named: as Apache Curator names them, `_c_<owner id>-<marker><sequence>`.

use uuid::Uuid;

use crate::port::{Mode, OwnerId};

/// What stands before the sequence, and how whoever is named so wants to hold the lock.
const MARKERS: &[(&str, Mode)] = &[
    ("lock-", Mode::Exclusive),
    ("__READ__", Mode::Read),
    ("__WRIT__", Mode::Write),
    ("lease-", Mode::Permit),
];
/// Before the marker of a reader who may become the writer. To Curator it is a reader.
const UPGRADEABLE: &str = "upgradeable-";
/// Before the marker of the entry that makes such a reader the writer.
const UPGRADE: &str = "upgrade-";

/// The markers of others who queue under a path by rules of their own.
const FOREIGN: &[(&str, &str)] = &[
    ("__lock__", "kazoo"),
    ("__rlock__", "kazoo"),
    ("latch-", "Curator's LeaderLatch"),
    ("read-", "another lock library"),
    ("write-", "another lock library"),
];

/// The name of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// What stands before the marker and its words. The same for as long as the entry is there.
    pub(super) stem: String,
    pub(super) mode: Mode,
    pub(super) upgrades: bool,
    /// The server's number. It begins anew at `i32::MIN` after `i32::MAX`.
    pub(super) sequence: i32,
}

/// What a child of a lock's node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Child {
    Entry(Node),
    /// An entry of somebody who does not queue as we do.
    Foreign(&'static str),
    /// No entry: a lock whose name goes on, for instance.
    Other,
}

/// The stem of the entries of an owner id.
pub(super) fn stem(owner: OwnerId) -> String {
    // An owner id is as long as a UUID, in which form Curator looks for it.
    let id = Uuid::parse_str(&owner.to_string()).unwrap_or_default();
    format!("_c_{}-", id.hyphenated())
}

/// What follows the stem, up to the sequence.
pub(super) fn marker(mode: Mode, upgrades: bool) -> String {
    let (word, plain) = match mode {
        Mode::Upgradeable => (UPGRADEABLE, Mode::Read),
        mode => ("", mode),
    };
    let marker = MARKERS.iter().find(|(_, known)| *known == plain).map_or("", |row| row.0);
    format!("{}{word}{marker}", if upgrades { UPGRADE } else { "" })
}

/// A sequence as the server writes it.
pub(super) fn digits(sequence: i32) -> String {
    format!("{sequence:010}")
}

impl Child {
    pub(super) fn read(name: &str) -> Self {
        let split = |marker: &str| {
            let (before, after) = name.rsplit_once(marker)?;
            let sequence = after.parse().ok().filter(|sequence| digits(*sequence) == after)?;
            Some((before, sequence))
        };
        for (marker, mode) in MARKERS {
            let Some((before, sequence)) = split(marker) else { continue };
            let (before, mode) = match before.strip_suffix(UPGRADEABLE) {
                Some(before) if *mode == Mode::Read => (before, Mode::Upgradeable),
                _ => (before, *mode),
            };
            let (stem, upgrades) = match before.strip_suffix(UPGRADE) {
                Some(stem) => (stem, true),
                None => (before, false),
            };
            return Self::Entry(Node { stem: stem.to_owned(), mode, upgrades, sequence });
        }
        let foreign = FOREIGN.iter().find(|(marker, _)| split(marker).is_some());
        foreign.map_or(Self::Other, |(_, who)| Self::Foreign(who))
    }

    /// Whose entry it is that does not queue as we do.
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

    const CURATOR: &str = "_c_0f3c2a1e-5b7d-4e8f-9a0b-1c2d3e4f5a6b-";

    #[test]
    fn a_name_is_read_as_it_was_written() {
        let modes = [Mode::Exclusive, Mode::Read, Mode::Write, Mode::Upgradeable, Mode::Permit];
        for mode in modes {
            for (upgrades, sequence) in
                [(false, 0), (true, i32::MAX), (false, i32::MIN), (true, -5)]
            {
                let name = format!("{CURATOR}{}{}", marker(mode, upgrades), digits(sequence));
                let node = Node { stem: CURATOR.to_owned(), mode, upgrades, sequence };
                assert_eq!(Child::read(&name), Child::Entry(node), "{name}");
            }
        }
    }

    #[test]
    fn the_names_of_others_are_known() {
        let stem = |name: &str| Child::read(name).entry().map(|node| (node.stem, node.mode));
        assert_eq!(stem("lock-0000000012"), Some((String::new(), Mode::Exclusive)));
        let reader = format!("{CURATOR}__READ__-2147483648");
        assert_eq!(stem(&reader), Some((CURATOR.to_owned(), Mode::Read)));
        let kazoo = "0123456789abcdef0123456789abcdef__lock__0000000007";
        assert_eq!(Child::read(kazoo), Child::Foreign("kazoo"));
        for other in ["leases", "lock-12", "orders", "1234567890", "lock-+000000001", "lock-"] {
            assert_eq!(Child::read(other), Child::Other, "{other}");
        }
    }
}
