//! Nodes whose vote was still out when a hold was decided, and what has to be cleaned up there when it is given back meanwhile.

use super::node_set::NodeSet;
use crate::port::{Answer, Applied, Outcome};

/// The answers of the late nodes of one hold.
///
/// A node is told of the end right behind its vote. Who frees the hold then has voted before. Where it is gone, or that is
/// not known, either the vote was not for us, or the end has overtaken it, or did not come: then the vote decides.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stragglers {
    /// Nodes whose vote is out.
    votes: NodeSet,
    /// Nodes that were sent the end, and have not answered it.
    ends: NodeSet,
    /// Nodes that granted, and nodes that may have, while the answer to the end was out.
    granted: NodeSet,
    doubtful: NodeSet,
    /// Nodes that have freed it.
    freed: NodeSet,
}

/// The part of an ended hold that a node may still keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leftover {
    Nothing,
    /// It is known to have granted: nothing can come later.
    Granted,
    /// It may have granted, or may yet.
    Unknown,
}

impl Stragglers {
    /// The votes of these are out.
    pub(super) fn new(votes: NodeSet) -> Self {
        Self { votes, ..Self::default() }
    }

    /// All of them but these are told of the end.
    pub(super) fn tell(&mut self, but: NodeSet) {
        self.ends = self.votes.without(but);
    }

    /// Whether the vote of this node is out.
    pub(super) fn awaits(&self, node: usize) -> bool {
        self.votes.has(node)
    }

    /// No answer is out any more.
    pub(super) fn is_over(&self) -> bool {
        self.votes.is_empty() && self.ends.is_empty()
    }

    /// The vote of a node comes back. Answers what it left there, if the hold is over.
    pub(super) fn voted(&mut self, node: usize, answer: &Answer) -> Leftover {
        self.votes.remove(node);
        let leftover = match answer {
            Err(failure) if failure.applied == Applied::Unknown => Leftover::Unknown,
            Ok(Outcome::Granted { .. }) => Leftover::Granted,
            // Also one that never left.
            Ok(_) | Err(_) => Leftover::Nothing,
        };
        if self.freed.has(node) {
            return Leftover::Nothing;
        }
        if !self.ends.has(node) {
            return leftover;
        }
        match leftover {
            Leftover::Nothing => {}
            Leftover::Granted => self.granted.add(node),
            Leftover::Unknown => self.doubtful.add(node),
        }
        Leftover::Nothing
    }

    /// A node that was told of the end answers, or does not; `None` if it was not told behind a vote.
    pub(super) fn ended(&mut self, node: usize, answer: &Answer) -> Option<Leftover> {
        if !self.ends.has(node) {
            return None;
        }
        self.ends.remove(node);
        let freed = !matches!(answer, Ok(Outcome::Gone) | Err(_));
        if freed {
            self.freed.add(node);
            Some(Leftover::Nothing)
        } else if self.granted.has(node) {
            Some(Leftover::Granted)
        } else if self.doubtful.has(node) {
            Some(Leftover::Unknown)
        } else {
            Some(Leftover::Nothing)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::error::Error;
    use crate::fence::Token;
    use crate::port::Failure;

    /// A vote that was granted, and one whose answer was lost.
    fn votes() -> [Answer; 2] {
        let left = Duration::from_secs(1);
        let granted = Outcome::Granted { token: Token::new(7), left, drawn: 1 };
        [Ok(granted), Err(Failure::unknown(Error::internal("cut")))]
    }

    /// Both answers of a late node that was told, the vote first or the end first: all that has to be cleaned up.
    fn both(vote: &Answer, end: &Answer) -> [Vec<Leftover>; 2] {
        [true, false].map(|vote_first| {
            let mut stragglers = Stragglers::new([1].into_iter().collect());
            stragglers.tell(NodeSet::default());
            let mut leftover = Vec::new();
            for votes in [vote_first, !vote_first] {
                assert!(!stragglers.is_over());
                leftover.push(if votes {
                    stragglers.voted(1, vote)
                } else {
                    stragglers.ended(1, end).unwrap()
                });
            }
            assert!(stragglers.is_over());
            leftover.retain(|one| *one != Leftover::Nothing);
            leftover
        })
    }

    #[test]
    fn who_freed_it_has_nothing_left() {
        let [granted, cut] = votes();
        for vote in [granted, cut, Ok(Outcome::Held { left: None })] {
            assert_eq!(both(&vote, &Ok(Outcome::Freed)), [&[] as &[Leftover]; 2], "{vote:?}");
        }
    }

    #[test]
    fn an_end_that_overtook_the_vote_is_told_again() {
        let [granted, cut] = votes();
        assert_eq!(both(&granted, &Ok(Outcome::Gone)), [&[Leftover::Granted]; 2]);
        assert_eq!(both(&cut, &Ok(Outcome::Gone)), [&[Leftover::Unknown]; 2]);
        assert_eq!(
            both(&Ok(Outcome::Held { left: None }), &Ok(Outcome::Gone)),
            [&[] as &[Leftover]; 2]
        );
    }

    #[test]
    fn who_did_not_answer_that_it_was_told_has_what_its_vote_left() {
        let [granted, cut] = votes();
        let refused: Answer = Err(Failure::refused(Error::internal("never sent")));
        for end in [&cut, &refused] {
            assert_eq!(both(&granted, end), [&[Leftover::Granted]; 2]);
            assert_eq!(both(&cut, end), [&[Leftover::Unknown]; 2]);
            assert_eq!(both(&refused, end), [&[] as &[Leftover]; 2]);
        }
    }

    #[test]
    fn who_was_told_nothing_has_what_its_vote_left() {
        let mut stragglers = Stragglers::new([0, 1, 2].into_iter().collect());
        let [granted, cut] = votes();
        assert_eq!(stragglers.voted(0, &granted), Leftover::Granted);
        assert_eq!(stragglers.voted(1, &cut), Leftover::Unknown);
        assert_eq!(stragglers.voted(2, &Ok(Outcome::Held { left: None })), Leftover::Nothing);
        assert!(stragglers.is_over());
    }
}
