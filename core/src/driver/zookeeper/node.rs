//! How entries are named: as Apache Curator names them, `_c_<owner id>-<marker><sequence>`, or as kazoo does.

use uuid::Uuid;

use crate::port::{Layout, Mode, OwnerId};

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
    pub(super) fn of(layout: Layout) -> Self {
        if layout == Layout::Kazoo { Self::Kazoo } else { Self::Curator }
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
