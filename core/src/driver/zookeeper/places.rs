//! The order of entries. The server numbers them by 32 bits that begin anew, so the numbers are compared with one that is near.

use std::collections::BTreeMap;

use super::layout::LEASES;
use super::layout::{Child, Names, Node, digits};
use crate::port::{Mode, OwnerId, Rank, Standing};
use crate::runtime::sync::Mutex;

/// Where the first number is put, so that there is room before it.
const BASE: u64 = 1 << 33;
/// Permits lie in a folder of their own, with numbers of their own: behind all others.
const PERMITS: u64 = 1 << 40;

/// The folders in which this client has entries, and where one of these has its place.
#[derive(Default)]
pub(super) struct Places(Mutex<BTreeMap<String, Anchor>>);

struct Anchor {
    place: u64,
    entries: usize,
    /// Whether the newest one is that of a mutex.
    mutex: bool,
}

/// The owner id in the name of an entry's node.
pub(super) fn owner(rank: &Rank) -> Option<OwnerId> {
    OwnerId::parse(parts(rank).2.trim_start_matches("_c_").trim_end_matches('-'))
}

/// The path of an entry's node.
pub(super) fn path(Standing { rank, mode }: &Standing) -> String {
    let (folder, names, stem) = parts(rank);
    format!("{folder}/{stem}{}{}", names.marker(*mode), digits(sequence(rank)))
}

/// The server's number of an entry.
fn sequence(rank: &Rank) -> i32 {
    (rank.place() as u32).cast_signed()
}

/// The folder in which an entry lies, whose names there are, and the entry's stem. Between folder and stem of kazoo's there are two
/// slashes in the rank's name.
fn parts(rank: &Rank) -> (&str, Names, &str) {
    let (folder, stem) = rank.name().rsplit_once('/').unwrap_or_default();
    match folder.strip_suffix('/') {
        Some(folder) => (folder, Names::Kazoo, stem),
        None => (folder, Names::Curator, stem),
    }
}

/// The folder in which an entry lies.
pub(super) fn folder(rank: &Rank) -> &str {
    parts(rank).0
}

/// The library whose names are used in the folder of this entry.
pub(super) fn names(rank: &Rank) -> Names {
    parts(rank).1
}

/// How the rank of an entry with this stem is named.
pub(super) fn named(folder: &str, names: Names, stem: &str) -> String {
    let slashes = if names == Names::Kazoo { "//" } else { "/" };
    format!("{folder}{slashes}{stem}")
}

/// The place of a number that is less than 2^31 away from that of another place.
fn beside(place: u64, sequence: i32) -> u64 {
    let away = sequence.wrapping_sub((place as u32).cast_signed());
    place.wrapping_add_signed(i64::from(away))
}

fn first(folder: &str, sequence: i32) -> u64 {
    let permits = folder.rsplit('/').next() == Some(LEASES);
    BASE + u64::from(sequence.cast_unsigned()) + if permits { PERMITS } else { 0 }
}

impl Places {
    /// This client has one more entry in a folder.
    pub(super) fn enter(&self, folder: &str, names: Names, node: &Node) -> Rank {
        let mut anchors = self.0.lock();
        let near = anchors.get(folder).map(|anchor| anchor.place);
        let place =
            near.map_or_else(|| first(folder, node.sequence), |near| beside(near, node.sequence));
        let fresh = Anchor { place, entries: 0, mutex: false };
        let anchor = anchors.entry(folder.to_owned()).or_insert(fresh);
        anchor.place = place;
        anchor.entries += 1;
        anchor.mutex = node.mode == Mode::Exclusive;
        rank(folder, names, node, place)
    }

    /// This client has one entry less in the folder of this one.
    pub(super) fn leave(&self, rank: &Rank) {
        let (mut anchors, folder) = (self.0.lock(), folder(rank));
        let Some(anchor) = anchors.get_mut(folder) else { return };
        anchor.entries -= 1;
        if anchor.entries == 0 {
            anchors.remove(folder);
        }
    }

    /// The entries among the children of a folder, in order.
    pub(super) fn stored(&self, folder: &str, names: Names, children: &[String]) -> Vec<Standing> {
        let read = |name: &String| Child::read(name, names).entry();
        let mut nodes: Vec<_> = children.iter().filter_map(read).collect();
        let known = self.0.lock().get(folder).map(|anchor| (anchor.place, anchor.mutex));
        // kazoo's mutexes and writers have one name: which they are follows from what is asked for here, or from who is there.
        let readers = nodes.iter().any(|node| node.mode == Mode::Read);
        if names == Names::Kazoo && known.map_or(!readers, |(_, mutex)| mutex) {
            let writers = nodes.iter_mut().filter(|node| node.mode == Mode::Write);
            writers.for_each(|node| node.mode = Mode::Exclusive);
        }
        let near = known.map(|(place, _)| place);
        let near = near.or_else(|| Some(first(folder, nodes.first()?.sequence)));
        let stored = |node: Node| {
            let rank = rank(folder, names, &node, beside(near.unwrap_or_default(), node.sequence));
            Standing { rank, mode: node.mode }
        };
        let mut all: Vec<_> = nodes.into_iter().map(stored).collect();
        all.sort_by(|one, other| one.rank.cmp(&other.rank));
        all
    }
}

fn rank(folder: &str, names: Names, node: &Node, place: u64) -> Rank {
    Rank::new(place, named(folder, names, &node.stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(sequence: i32) -> Node {
        Node { stem: "_c_x-".to_owned(), mode: Mode::Exclusive, sequence }
    }

    fn order(places: &Places, sequences: &[i32]) -> Vec<i32> {
        let name = |number: &i32| format!("_c_x-lock-{}", digits(*number));
        let children: Vec<_> = sequences.iter().map(name).collect();
        places
            .stored("/x", Names::Curator, &children)
            .iter()
            .map(|stored| sequence(&stored.rank))
            .collect()
    }

    #[test]
    fn numbers_that_begin_anew_are_in_order() {
        let places = Places::default();
        assert_eq!(order(&places, &[3, 1, 2]), [1, 2, 3]);
        assert_eq!(
            order(&places, &[i32::MIN, i32::MAX, i32::MIN + 1]),
            [i32::MAX, i32::MIN, i32::MIN + 1]
        );
        assert_eq!(order(&places, &[0, -1, 1, -2]), [-2, -1, 0, 1]);
        assert_eq!(order(&places, &[]), [] as [i32; 0]);
    }

    /// An entry has the same rank whoever else is there.
    #[test]
    fn a_rank_stays_while_we_are_there() {
        let places = Places::default();
        let ours = places.enter("/x", Names::Curator, &node(-1));
        let next =
            places.stored("/x", Names::Curator, &["_c_x-lock-0000000000".to_owned()]).remove(0);
        assert!(ours < next.rank);
        let later = places.enter("/x", Names::Curator, &node(0));
        assert_eq!(later, next.rank);
        places.leave(&ours);
        assert_eq!(
            places.stored("/x", Names::Curator, &["_c_x-lock-0000000000".to_owned()])[0].rank,
            later
        );
        assert_eq!(path(&next), "/x/_c_x-lock-0000000000");
        places.leave(&later);
        assert!(places.0.lock().is_empty());
    }

    /// The meaning of one of kazoo's names follows from who asks, or else from who is there.
    #[test]
    fn a_mutex_of_kazoos_is_told_from_a_writer() {
        let (lock, reader) = ("0__lock__0000000000".to_owned(), "1__rlock__0000000001".to_owned());
        let mode = |places: &Places, children: &[String]| {
            places.stored("/x", Names::Kazoo, children).remove(0).mode
        };
        let places = Places::default();
        let alone = std::slice::from_ref(&lock);
        assert_eq!(mode(&places, alone), Mode::Exclusive);
        assert_eq!(mode(&places, &[lock.clone(), reader.clone()]), Mode::Write);
        let writer = places.enter("/x", Names::Kazoo, &Node { mode: Mode::Write, ..node(2) });
        assert_eq!(mode(&places, alone), Mode::Write);
        places.leave(&writer);
        let mutex = places.enter("/x", Names::Kazoo, &node(3));
        assert_eq!(mode(&places, &[lock.clone(), reader]), Mode::Exclusive);
        assert_eq!((folder(&mutex), names(&mutex)), ("/x", Names::Kazoo));
    }

    #[test]
    fn permits_stand_behind_all_others() {
        let places = Places::default();
        let (lock, permit) = (
            places.enter("/x", Names::Curator, &node(i32::MAX)),
            places.enter("/x/leases", Names::Curator, &node(0)),
        );
        assert!(lock < permit);
        assert_eq!((folder(&lock), folder(&permit)), ("/x", "/x/leases"));
    }
}
