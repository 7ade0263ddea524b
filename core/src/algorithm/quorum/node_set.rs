//! Some of a quorum's nodes.

/// A set of nodes, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeSet(u64);

impl NodeSet {
    /// More nodes than this no quorum has.
    pub(super) const MOST: usize = 63;

    pub(super) fn add(&mut self, node: usize) {
        self.0 |= 1 << node;
    }

    pub(super) fn remove(&mut self, node: usize) {
        self.0 &= !(1 << node);
    }

    pub(super) fn has(self, node: usize) -> bool {
        self.0 & (1 << node) != 0
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }
}

impl FromIterator<usize> for NodeSet {
    fn from_iter<I: IntoIterator<Item = usize>>(nodes: I) -> Self {
        nodes.into_iter().fold(Self::default(), |mut all, node| {
            all.add(node);
            all
        })
    }
}
