//! Nodes whose vote was still out when a hold was decided, and what is owed to them when it is given back meanwhile.

use super::nodes::Nodes;
use crate::port::{Answer, Applied, Outcome};

/// What the late nodes of one hold have said.
///
/// A node is told of the end right behind its vote. Who frees the hold then has voted before. Where it is gone, or that is
/// not known, either the vote was not for us, or the end has overtaken it, or did not come: then the vote decides.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Late {
    /// Whose vote is out.
    votes: Nodes,
    /// Who was told of the end, and has not answered that.
    ends: Nodes,
    /// Who granted, and who may have, while the answer to the end was out.
    granted: Nodes,
    doubtful: Nodes,
    /// Who has freed it.
    freed: Nodes,
}

/// What a node may keep of a hold that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owed {
    Nothing,
    /// It is known to have granted: nothing can come later.
    Granted,
    /// It may have granted, or may yet.
    Unknown,
}

impl Late {
    /// The votes of these are out.
    pub(super) fn new(votes: Nodes) -> Self {
        Self { votes, ..Self::default() }
    }

    /// All of them but these are told of the end.
    pub(super) fn tell(&mut self, but: Nodes) {
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

    /// The vote of a node comes back. What is owed, if the hold is over.
    pub(super) fn voted(&mut self, node: usize, answer: &Answer) -> Owed {
        self.votes.remove(node);
        let owed = match answer {
            Err(failure) if failure.applied == Applied::Unknown => Owed::Unknown,
            Ok(Outcome::Granted { .. }) => Owed::Granted,
            // Also one that never left.
            Ok(_) | Err(_) => Owed::Nothing,
        };
        if self.freed.has(node) {
            return Owed::Nothing;
        }
        if !self.ends.has(node) {
            return owed;
        }
        match owed {
            Owed::Nothing => {}
            Owed::Granted => self.granted.add(node),
            Owed::Unknown => self.doubtful.add(node),
        }
        Owed::Nothing
    }

    /// A node that was told of the end answers, or does not; `None` if it was not told behind a vote.
    pub(super) fn ended(&mut self, node: usize, answer: &Answer) -> Option<Owed> {
        if !self.ends.has(node) {
            return None;
        }
        self.ends.remove(node);
        let freed = !matches!(answer, Ok(Outcome::Gone) | Err(_));
        if freed || mutant!(QuorumForgetsOvertaken) {
            self.freed.add(node);
            Some(Owed::Nothing)
        } else if self.granted.has(node) {
            Some(Owed::Granted)
        } else if self.doubtful.has(node) {
            Some(Owed::Unknown)
        } else {
            Some(Owed::Nothing)
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

    /// Both answers of a late node that was told, the vote first or the end first: what is owed in all.
    fn both(vote: &Answer, end: &Answer) -> [Vec<Owed>; 2] {
        [true, false].map(|vote_first| {
            let mut late = Late::new([1].into_iter().collect());
            late.tell(Nodes::default());
            let mut owed = Vec::new();
            for votes in [vote_first, !vote_first] {
                assert!(!late.is_over());
                owed.push(if votes { late.voted(1, vote) } else { late.ended(1, end).unwrap() });
            }
            assert!(late.is_over());
            owed.retain(|owed| *owed != Owed::Nothing);
            owed
        })
    }

    #[test]
    fn who_freed_it_is_owed_nothing() {
        let [granted, cut] = votes();
        for vote in [granted, cut, Ok(Outcome::Held { left: None })] {
            assert_eq!(both(&vote, &Ok(Outcome::Freed)), [&[] as &[Owed]; 2], "{vote:?}");
        }
    }

    #[test]
    fn an_end_that_overtook_the_vote_is_told_again() {
        let [granted, cut] = votes();
        assert_eq!(both(&granted, &Ok(Outcome::Gone)), [&[Owed::Granted]; 2]);
        assert_eq!(both(&cut, &Ok(Outcome::Gone)), [&[Owed::Unknown]; 2]);
        assert_eq!(
            both(&Ok(Outcome::Held { left: None }), &Ok(Outcome::Gone)),
            [&[] as &[Owed]; 2]
        );
    }

    #[test]
    fn who_did_not_answer_that_it_was_told_is_owed_by_its_vote() {
        let [granted, cut] = votes();
        let refused: Answer = Err(Failure::refused(Error::internal("never sent")));
        for end in [&cut, &refused] {
            assert_eq!(both(&granted, end), [&[Owed::Granted]; 2]);
            assert_eq!(both(&cut, end), [&[Owed::Unknown]; 2]);
            assert_eq!(both(&refused, end), [&[] as &[Owed]; 2]);
        }
    }

    #[test]
    fn who_was_told_nothing_is_owed_by_its_vote() {
        let mut late = Late::new([0, 1, 2].into_iter().collect());
        let [granted, cut] = votes();
        assert_eq!(late.voted(0, &granted), Owed::Granted);
        assert_eq!(late.voted(1, &cut), Owed::Unknown);
        assert_eq!(late.voted(2, &Ok(Outcome::Held { left: None })), Owed::Nothing);
        assert!(late.is_over());
    }
}
