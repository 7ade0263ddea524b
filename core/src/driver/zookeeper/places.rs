//! The order of entries. The server numbers them by 32 bits that begin anew, so the numbers are compared with one that is near.

use std::collections::BTreeMap;

use super::layout::LEASES;
use super::node::{Child, Node, digits, marker};
use crate::port::{Mode, Rank, Standing};
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
}

/// An entry where it lies.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) rank: Rank,
    pub(super) mode: Mode,
    pub(super) upgrades: bool,
}

impl Stored {
    pub(super) fn of(standing: &Standing) -> Self {
        let Standing { rank, mode, upgrades } = standing.clone();
        Self { rank, mode, upgrades }
    }

    pub(super) fn standing(&self) -> Standing {
        let Self { rank, mode, upgrades } = self.clone();
        Standing { rank, mode, upgrades }
    }

    /// The path of its node.
    pub(super) fn path(&self) -> String {
        let marker = marker(self.mode, self.upgrades);
        format!("{}{marker}{}", self.rank.name(), digits(sequence(&self.rank)))
    }

    /// Whether it may become weaker.
    pub(super) fn weakens(&self) -> bool {
        matches!(self.mode, Mode::Write | Mode::Upgradeable)
    }
}

/// The server's number of an entry.
fn sequence(rank: &Rank) -> i32 {
    (rank.place() as u32).cast_signed()
}

/// The folder in which an entry lies.
pub(super) fn folder(rank: &Rank) -> &str {
    rank.name().rsplit_once('/').map_or("", |(folder, _)| folder)
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
    pub(super) fn enter(&self, folder: &str, node: &Node) -> Rank {
        let mut anchors = self.0.lock();
        let near = anchors.get(folder).map(|anchor| anchor.place);
        let place =
            near.map_or_else(|| first(folder, node.sequence), |near| beside(near, node.sequence));
        let anchor = anchors.entry(folder.to_owned()).or_insert(Anchor { place, entries: 0 });
        anchor.place = place;
        anchor.entries += 1;
        rank(folder, node, place)
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
    pub(super) fn stored(&self, folder: &str, children: &[String]) -> Vec<Stored> {
        let nodes: Vec<_> = children.iter().filter_map(|name| Child::read(name).entry()).collect();
        let known = self.0.lock().get(folder).map(|anchor| anchor.place);
        let near = known.or_else(|| Some(first(folder, nodes.first()?.sequence)));
        let stored = |node: Node| {
            let rank = rank(folder, &node, beside(near.unwrap_or_default(), node.sequence));
            Stored { rank, mode: node.mode, upgrades: node.upgrades }
        };
        let mut all: Vec<_> = nodes.into_iter().map(stored).collect();
        all.sort_by(|one, other| one.rank.cmp(&other.rank));
        all
    }
}

fn rank(folder: &str, node: &Node, place: u64) -> Rank {
    Rank::new(place, format!("{folder}/{}", node.stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(sequence: i32) -> Node {
        Node { stem: "_c_x-".to_owned(), mode: Mode::Exclusive, upgrades: false, sequence }
    }

    fn order(places: &Places, sequences: &[i32]) -> Vec<i32> {
        let name = |number: &i32| format!("_c_x-lock-{}", digits(*number));
        let children: Vec<_> = sequences.iter().map(name).collect();
        places.stored("/x", &children).iter().map(|stored| sequence(&stored.rank)).collect()
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
        let ours = places.enter("/x", &node(-1));
        let next = places.stored("/x", &["_c_x-lock-0000000000".to_owned()]).remove(0);
        assert!(ours < next.rank);
        let later = places.enter("/x", &node(0));
        assert_eq!(later, next.rank);
        places.leave(&ours);
        assert_eq!(places.stored("/x", &["_c_x-lock-0000000000".to_owned()])[0].rank, later);
        assert_eq!(next.path(), "/x/_c_x-lock-0000000000");
        places.leave(&later);
        assert!(places.0.lock().is_empty());
    }

    #[test]
    fn permits_stand_behind_all_others() {
        let places = Places::default();
        let (lock, permit) =
            (places.enter("/x", &node(i32::MAX)), places.enter("/x/leases", &node(0)));
        assert!(lock < permit);
        assert_eq!((folder(&lock), folder(&permit)), ("/x", "/x/leases"));
    }
}
