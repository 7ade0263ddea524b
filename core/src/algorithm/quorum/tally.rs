//! The result of the nodes' answers to one step.

use std::sync::Arc;
use std::time::Duration;

use super::no_majority;
use super::voters::Voters;
use crate::error::Error;
use crate::fence::Token;
use crate::port::{Action, Answer, Failure, Instant, LockState, Outcome, Step};

/// The answers so far.
#[derive(Default)]
pub(super) struct Tally {
    answers: usize,
    /// The nodes that granted, with the token and the time left there.
    granted: Vec<(usize, Token, Duration)>,
    gone: Vec<usize>,
    freed: usize,
    states: Vec<LockState>,
    failures: Vec<(usize, Error)>,
}

impl Tally {
    pub(super) fn count(&mut self, node: usize, answer: Answer) {
        self.answers += 1;
        match answer {
            Ok(Outcome::Granted { token, left, .. }) => self.granted.push((node, token, left)),
            Ok(Outcome::Gone) => self.gone.push(node),
            Ok(Outcome::Freed) => self.freed += 1,
            Ok(Outcome::State(state)) => self.states.push(state),
            Ok(_) => {}
            Err(failure) => self.failures.push((node, failure.error)),
        }
    }

    /// Whether what is still out can change nothing.
    pub(super) fn decided(&self, action: &Action, voters: &Voters) -> bool {
        let (nodes, majority) = (voters.nodes.len(), voters.majority());
        let out = nodes - self.answers;
        match action {
            Action::Renew { .. } => {
                self.granted.len() >= majority || self.gone.len() > nodes - majority || out == 0
            }
            Action::Free { .. } | Action::Break => {
                self.freed >= majority || self.gone.len() > nodes - majority || out == 0
            }
            Action::Leave { .. } => self.freed + self.gone.len() >= majority || out == 0,
            _ => out == 0,
        }
    }

    /// The quorum's answer.
    pub(super) fn outcome(self, voters: &Arc<Voters>, step: &Step, sent: Instant) -> Answer {
        let (nodes, majority) = (voters.nodes.len(), voters.majority());
        let unknown = |failures: &[_]| Err(Failure::unknown(no_majority(voters, failures)));
        match step.action {
            Action::Renew { .. } => {
                if self.granted.len() >= majority {
                    let token = self.granted.iter().map(|(_, token, _)| *token).max();
                    let left =
                        kept(self.granted.iter().map(|(.., left)| *left).collect(), majority);
                    voters.kept(step.owner, sent, left);
                    self.gone.iter().for_each(|node| voters.heal(*node, step));
                    let token = token.unwrap_or_default();
                    return Ok(Outcome::Granted { token, left, drawn: 1 });
                }
                if self.gone.len() > nodes - majority {
                    return Ok(Outcome::Gone);
                }
                self.gone.iter().for_each(|node| voters.heal(*node, step));
                unknown(&self.failures)
            }
            Action::Free { .. } | Action::Break if self.freed >= majority => Ok(Outcome::Freed),
            Action::Free { .. } | Action::Break if self.gone.len() > nodes - majority => {
                Ok(Outcome::Gone)
            }
            Action::Leave { .. } if self.freed + self.gone.len() >= majority => {
                Ok(if self.freed > 0 { Outcome::Freed } else { Outcome::Gone })
            }
            Action::Read | Action::Peek if self.states.len() >= majority => {
                Ok(Outcome::State(as_one(self.states, majority)))
            }
            _ => unknown(&self.failures),
        }
    }
}

/// The time left of a lease that a majority has to keep: that of the last node of the best majority.
pub(super) fn kept(mut left: Vec<Duration>, majority: usize) -> Duration {
    left.sort_unstable_by(|one, other| other.cmp(one));
    left.get(majority - 1).or(left.last()).copied().unwrap_or_default()
}

/// The states of a lock on several nodes, seen as one: it is held if a majority says so.
fn as_one(states: Vec<LockState>, majority: usize) -> LockState {
    let last = states.iter().map(|state| state.last).max().unwrap_or_default();
    let waiters = states.iter().map(|state| &state.waiters).max_by_key(|waiters| waiters.len());
    let waiters = waiters.cloned().unwrap_or_default();
    let held = states.iter().filter(|state| !state.holders.is_empty()).count();
    let newest = |state: &LockState| state.holders.iter().map(|holder| holder.token).max();
    let shown = states.into_iter().max_by_key(|state| (state.holders.len(), newest(state)));
    let mut shown = shown.unwrap_or_default();
    if held < majority {
        shown.holders.clear();
    }
    LockState { last, waiters, ..shown }
}
