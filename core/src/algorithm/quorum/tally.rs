//! The result of the nodes' answers to one step.

use std::time::Duration;

use super::holds::Kept;
use super::voters::majority_of;
use crate::error::{Code, Error};
use crate::fence::Token;
use crate::port::{Action, Answer, Failure, Kind, LockState, Outcome};

/// The answers so far, by node.
pub(super) struct Tally {
    answers: Vec<Option<Answer>>,
    pub(super) majority: usize,
}

impl Tally {
    pub(super) fn of(nodes: usize) -> Self {
        Self { answers: vec![None; nodes], majority: majority_of(nodes) }
    }

    pub(super) fn count(&mut self, node: usize, answer: Answer) {
        self.answers[node] = Some(answer);
    }

    fn outcomes(&self) -> impl Iterator<Item = (usize, &Outcome)> {
        let answers = self.answers.iter().enumerate();
        answers.filter_map(|(node, answer)| Some((node, answer.as_ref()?.as_ref().ok()?)))
    }

    fn such(&self, fits: impl Fn(&Outcome) -> bool) -> usize {
        self.outcomes().filter(|(_, outcome)| fits(outcome)).count()
    }

    /// The nodes that granted, with the token and the time left there.
    pub(super) fn granted(&self) -> impl Iterator<Item = (usize, Token, Duration)> {
        self.outcomes().filter_map(|(node, outcome)| match outcome {
            Outcome::Granted { token, left, .. } => Some((node, *token, *left)),
            _ => None,
        })
    }

    /// The nodes that know nothing of the owner.
    pub(super) fn gone(&self) -> impl Iterator<Item = usize> {
        self.outcomes().filter(|(_, outcome)| **outcome == Outcome::Gone).map(|(node, _)| node)
    }

    pub(super) fn failures(&self) -> impl Iterator<Item = (usize, &Error)> {
        let answers = self.answers.iter().enumerate();
        answers.filter_map(|(node, answer)| Some((node, &answer.as_ref()?.as_ref().err()?.error)))
    }

    /// The highest of the tokens granted.
    pub(super) fn token(&self) -> Token {
        self.granted().map(|(_, token, _)| token).max().unwrap_or_default()
    }

    /// The fewest tokens that one of the nodes drew.
    pub(super) fn drawn(&self) -> u32 {
        let drawn = self.outcomes().filter_map(|(_, outcome)| match outcome {
            Outcome::Granted { drawn, .. } => Some(*drawn),
            _ => None,
        });
        drawn.min().unwrap_or(1)
    }

    /// The time left of a lease that a majority has to keep: that of the last node of the best majority.
    pub(super) fn left(&self) -> Duration {
        let mut left: Vec<_> = self.granted().map(|(.., left)| left).collect();
        left.sort_unstable_by(|one, other| other.cmp(one));
        left.get(self.majority - 1).or(left.last()).copied().unwrap_or_default()
    }

    pub(super) fn is_granted(&self) -> bool {
        self.granted().count() >= self.majority
    }

    /// Whether so many know nothing of the owner that no majority can know it.
    pub(super) fn is_gone(&self) -> bool {
        self.is_too_many(self.gone().count())
    }

    /// Whether there is no majority without so many.
    fn is_too_many(&self, nodes: usize) -> bool {
        nodes > self.answers.len() - self.majority
    }

    /// The kind that too many nodes use the lock as.
    pub(super) fn conflict(&self) -> Option<Kind> {
        let mut kinds = self.outcomes().filter_map(|(_, outcome)| match outcome {
            Outcome::Conflict { kind } => Some(*kind),
            _ => None,
        });
        let first = kinds.next()?;
        self.is_too_many(1 + kinds.count()).then_some(first)
    }

    /// Whether a majority said who has the lock, or that it may be had.
    pub(super) fn is_known(&self) -> bool {
        let says = |outcome: &Outcome| {
            matches!(
                outcome,
                Outcome::Granted { .. } | Outcome::Held { .. } | Outcome::Conflict { .. }
            )
        };
        self.such(says) >= self.majority
    }

    /// When a majority is free, as far as others' holds are known; `None` if they have no end.
    pub(super) fn held(&self) -> Option<Duration> {
        let mut ends: Vec<_> = self
            .outcomes()
            .filter_map(|(_, outcome)| match outcome {
                Outcome::Held { left } => Some(left.unwrap_or(Duration::MAX)),
                _ => None,
            })
            .collect();
        ends.sort_unstable();
        // So many of the others' holds have to end before.
        let more = self.majority.saturating_sub(self.granted().count() + 1);
        let left = ends.get(more).or(ends.last()).copied().unwrap_or_default();
        Some(left).filter(|left| *left < Duration::MAX)
    }

    /// The shortest time after which a node votes again that does not vote now.
    pub(super) fn recovering(&self) -> Option<Duration> {
        let left = self.outcomes().filter_map(|(_, outcome)| match outcome {
            Outcome::Recovering { left } => Some(*left),
            _ => None,
        });
        left.min()
    }

    /// The part of an attempt that each node may keep after this vote.
    pub(super) fn kept(&self) -> Vec<Kept> {
        let kept = |answer: &Option<_>| answer.as_ref().map_or(Kept::Asked, Kept::after);
        self.answers.iter().map(kept).collect()
    }

    /// Whether no further answer can change the outcome, nor what is said of it.
    pub(super) fn is_decided(&self, action: &Action) -> bool {
        let answered = self.answers.iter().flatten().count();
        let freed = || self.such(|outcome| *outcome == Outcome::Freed);
        let decided = match action {
            // That a majority does not answer is only known once those that do have answered.
            Action::Take(_) => {
                let lost = self.is_too_many(answered - self.granted().count());
                self.is_granted() || lost && (self.is_known() || self.is_gone())
            }
            Action::Renew { .. } => self.is_granted() || self.is_gone(),
            Action::Free { .. } | Action::Break => freed() >= self.majority || self.is_gone(),
            Action::Leave { .. } => freed() + self.gone().count() >= self.majority,
            Action::Refresh { .. } | Action::Read => false,
        };
        decided || answered == self.answers.len()
    }

    /// The quorum's answer to all but a Take.
    pub(super) fn outcome(&self, action: &Action) -> Answer {
        let freed = self.such(|outcome| *outcome == Outcome::Freed);
        match action {
            Action::Renew { .. } if self.is_granted() => {
                Ok(Outcome::Granted { token: self.token(), left: self.left(), drawn: 1 })
            }
            Action::Free { .. } | Action::Break if freed >= self.majority => Ok(Outcome::Freed),
            Action::Renew { .. } | Action::Free { .. } | Action::Break if self.is_gone() => {
                Ok(Outcome::Gone)
            }
            Action::Leave { .. } if freed + self.gone().count() >= self.majority => {
                Ok(if freed > 0 { Outcome::Freed } else { Outcome::Gone })
            }
            Action::Read => self.state().map(Outcome::State).ok_or_else(|| self.unknown()),
            _ => Err(self.unknown()),
        }
    }

    fn unknown(&self) -> Failure {
        Failure::unknown(no_majority(self))
    }

    /// The states of a lock on several nodes, seen as one: it is held if a majority says so.
    fn state(&self) -> Option<LockState> {
        let states = || {
            self.outcomes().filter_map(|(_, outcome)| match outcome {
                Outcome::State(state) => Some(state),
                _ => None,
            })
        };
        if states().count() < self.majority {
            return None;
        }
        let newest = |state: &LockState| state.holders.iter().map(|holder| holder.token).max();
        let mut shown = states().max_by_key(|state| (state.holders.len(), newest(state)))?.clone();
        shown.last = states().map(|state| state.last).max().unwrap_or_default();
        if states().filter(|state| !state.holders.is_empty()).count() < self.majority {
            shown.holders.clear();
        }
        Some(shown)
    }

    pub(super) fn nodes(&self) -> usize {
        self.answers.len()
    }
}

/// More than a minority is away. Where so many fail for good that there is no majority without them, and all in the same
/// way, asking again is in vain, and that is the error.
pub(super) fn no_majority(tally: &Tally) -> Error {
    let (of, needed) = (tally.nodes(), tally.majority);
    let lasting = tally.failures().find(|(_, error)| {
        let same = |(_, other): &(usize, &Error)| other.code() == error.code();
        !error.retryable() && tally.failures().filter(same).count() > of - needed
    });
    if let Some((node, error)) = lasting {
        return error.clone().with("node", format!("{} of {of}", node + 1));
    }
    let message = format!("fewer than {needed} of the quorum's {of} nodes answer");
    let error = Error::new(Code::Unavailable, message);
    match tally.failures().last() {
        Some((_, failure)) => {
            error.with("node", failure.message().to_owned()).with_source(failure.clone())
        }
        None => error,
    }
}

/// A step of a batch has no answer in the reply.
pub(super) fn unanswered() -> Failure {
    Failure::unknown(Error::internal("a step was not answered"))
}
