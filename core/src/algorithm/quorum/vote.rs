//! A Take on a quorum: the vote, the token, and what becomes of a vote that was not won.

use std::sync::Arc;
use std::time::Duration;

use super::fanout::Fanout;
use super::no_majority;
use super::node_set::NodeSet;
use super::stragglers::Stragglers;
use super::tally::kept;
use super::voters::{QuorumHold, Voters};
use super::waiters::queued;
use crate::engine::deadline;
use crate::error::{Code, Error};
use crate::fence::Token;
use crate::port::limits::TOMBSTONE_LIFE;
use crate::port::{
    Action, Answer, Applied, Failure, Instant, Kind, LockState, Outcome, Step, Take, Vote,
};

/// How the nodes voted.
#[derive(Default)]
struct Votes {
    /// The nodes that granted, with the token and the time left there.
    granted: Vec<(usize, Token, Duration)>,
    /// The fewest tokens that one of them drew.
    drawn: Option<u32>,
    /// The times left of others' holds.
    held: Vec<Option<Duration>>,
    recovering: Vec<Duration>,
    conflicts: Vec<Kind>,
    tombstoned: usize,
    failures: Vec<(usize, Error)>,
    /// Nodes that may have granted, or may yet, for all that is known.
    doubtful: NodeSet,
    /// Whom the question certainly did not reach.
    unasked: NodeSet,
}

impl Votes {
    fn count(&mut self, node: usize, answer: Option<Answer>) {
        match answer {
            Some(Ok(Outcome::Granted { token, left, drawn })) => {
                self.granted.push((node, token, left));
                self.drawn = Some(self.drawn.map_or(drawn, |least| least.min(drawn)));
            }
            Some(Ok(Outcome::Held { left })) => self.held.push(left),
            Some(Ok(Outcome::Recovering { left })) => self.recovering.push(left),
            Some(Ok(Outcome::Conflict { kind })) => self.conflicts.push(kind),
            Some(Ok(Outcome::Gone)) => self.tombstoned += 1,
            Some(Ok(_)) | None => {
                self.doubtful.add(node);
                self.failures
                    .push((node, Error::internal("a node answered a vote with something else")));
            }
            Some(Err(failure)) => {
                let reached = failure.applied == Applied::Unknown;
                if reached { &mut self.doubtful } else { &mut self.unasked }.add(node);
                self.failures.push((node, failure.error));
            }
        }
    }

    /// Nodes that said who has the lock, or that it may be had.
    fn heard(&self) -> usize {
        self.granted.len() + self.held.len() + self.conflicts.len()
    }

    /// Whether no further answer can change the outcome, nor what is said of it: that a majority does not answer is only known
    /// once those that do have answered.
    fn are_decided(&self, nodes: usize, majority: usize) -> bool {
        let refused =
            self.held.len() + self.conflicts.len() + self.tombstoned + self.recovering.len();
        let lost = refused + self.failures.len() > nodes - majority;
        let known = self.heard() >= majority || self.tombstoned > nodes - majority;
        self.granted.len() >= majority || lost && known
    }

    fn token(&self) -> Token {
        self.granted.iter().map(|(_, token, _)| *token).max().unwrap_or_default()
    }
}

/// Asks all nodes for the lock.
pub(super) async fn take(voters: &Arc<Voters>, step: &Step, take: &Take) -> Answer {
    if let Some(refused) = voters.refuses(step) {
        return Err(refused);
    }
    let (nodes, majority) = (voters.nodes.len(), voters.majority());
    let sent = voters.runtime.now();
    let proposed = voters.proposal.lock().make(sent, take.floor);
    let asked = Take { wait: false, floor: proposed, ..take.clone() };
    let batch: Arc<[Step]> = Arc::new([vote(voters, step, asked, false)]);
    let mut fanout = Fanout::send(voters, vec![batch; nodes], voters.patience(take.ttl));
    let mut votes = Votes::default();
    while !votes.are_decided(nodes, majority) {
        let Some((node, _, mut answers)) = fanout.next().await else { break };
        votes.count(node, answers.pop());
    }
    voters.took(voters.runtime.now().since(sent));
    let drawn = votes.drawn.unwrap_or(1);
    let take = &Take { block: drawn, ..take.clone() };
    if votes.granted.len() >= majority && agree(voters, step, take, &votes, (sent, proposed)).await
    {
        let token = votes.token();
        let left = kept(votes.granted.iter().map(|(.., left)| *left).collect(), majority);
        let held = QuorumHold {
            take: Take { floor: top(token, take), ..take.clone() },
            until: deadline(sent, left),
            stragglers: Stragglers::new(fanout.awaited().collect()),
            doubtful: votes.doubtful,
            unasked: votes.unasked,
            freed: false,
        };
        voters.holds(step.owner, held);
        let more = voters.waiting.lock().won(step, take.mode.is_exclusive());
        if let Some(step) = more {
            tell_all(voters, step);
        }
        return Ok(Outcome::Granted { token, left, drawn });
    }
    // What is granted late is given back when it is known.
    drop(fanout);
    lost(voters, step, take, votes).await
}

fn vote(voters: &Voters, step: &Step, take: Take, again: bool) -> Step {
    let action = Action::Vote(Vote { take, aged: voters.max_ttl, again });
    Step { action, ..step.clone() }
}

/// The last of the tokens drawn with the first.
fn top(token: Token, take: &Take) -> Token {
    Token::new(token.get() + u64::from(take.block.max(1)) - 1)
}

/// A step whose answer nobody waits for.
fn tell_all(voters: &Arc<Voters>, step: Step) {
    let step: Arc<[Step]> = Arc::new([step]);
    drop(Fanout::send(voters, vec![step; voters.nodes.len()], Duration::ZERO));
}

/// Whether a majority keeps a counter not below the token, so that the next majority cannot draw a lower one. Where the
/// nodes answered different ones, it is written to those that lag, while they keep the hold.
async fn agree(
    voters: &Arc<Voters>,
    step: &Step,
    take: &Take,
    votes: &Votes,
    (sent, proposed): (Instant, Token),
) -> bool {
    let token = votes.token();
    if votes.granted.iter().all(|(_, own, _)| *own == token) {
        return true;
    }
    // What the nodes answer is one more than what was proposed.
    voters.proposal.lock().missed(Token::new(proposed.get() + 1), token, sent);
    let lagging = |(node, own, _): &(usize, Token, Duration)| (*own < token).then_some(*node);
    let lagging: Vec<usize> = votes.granted.iter().filter_map(lagging).collect();
    let mut stored = votes.granted.len() - lagging.len();
    if stored >= voters.majority() {
        return true;
    }
    let floor = top(token, take);
    let raise = vote(voters, step, Take { wait: false, floor, ..take.clone() }, true);
    let look = Step { action: Action::Read, ..step.clone() };
    let raise: Arc<[Step]> = Arc::new([raise, look]);
    let nothing: Arc<[Step]> = Arc::new([]);
    let batch = |node| if lagging.contains(&node) { &raise } else { &nothing };
    let batches = (0..voters.nodes.len()).map(batch).cloned().collect();
    let mut fanout = Fanout::send(voters, batches, voters.patience(take.ttl));
    while stored < voters.majority() {
        let Some((.., answers)) = fanout.next().await else { return false };
        if let [Ok(Outcome::Granted { .. }), Ok(Outcome::State(LockState { last, .. }))] =
            answers[..]
        {
            stored += usize::from(last >= floor);
        }
    }
    true
}

/// Too many nodes have kept their data for too short a time.
fn recovering_nodes(left: Duration) -> Error {
    let message = format!(
        "too many nodes of the quorum were started, or lost their data, less than `max_ttl` ago; they vote again in {} s",
        left.as_secs_f32().ceil()
    );
    Error::new(Code::Unavailable, message)
}

/// The vote was not won: what was granted is given back, and whoever waits is told when it is worth asking again.
async fn lost(voters: &Arc<Voters>, step: &Step, take: &Take, votes: Votes) -> Answer {
    let (nodes, majority) = (voters.nodes.len(), voters.majority());
    if votes.conflicts.len() > nodes - majority {
        let kind = votes.conflicts[0];
        give_back(voters, step, &votes, None, take).await;
        return Ok(Outcome::Conflict { kind });
    }
    if votes.tombstoned > nodes - majority {
        return Ok(Outcome::Gone);
    }
    if votes.heard() < majority {
        let recovering = votes.recovering.iter().min().copied();
        voters.waiting.lock().left(step).into_iter().for_each(|step| tell_all(voters, step));
        give_back(voters, step, &votes, None, take).await;
        return Err(Failure::refused(match recovering {
            Some(left) if votes.failures.is_empty() => recovering_nodes(left),
            _ => no_majority(voters, &votes.failures),
        }));
    }
    let mut ends = votes.held.clone();
    ends.sort_unstable_by_key(|left| left.unwrap_or(Duration::MAX));
    // So many of the others' holds have to end before a majority is free.
    let more = majority.saturating_sub(votes.granted.len()).saturating_sub(1);
    let left = ends.get(more).or(ends.last()).copied().unwrap_or(Some(Duration::ZERO));
    if !take.wait {
        give_back(voters, step, &votes, None, take).await;
        return Ok(Outcome::Held { left });
    }
    let split = votes.held.len() < majority;
    let id = voters.waiting.lock().wait(step, &voters.runtime);
    let watch = Step {
        owner: id,
        action: Action::Watch { mode: take.mode, info: take.info.clone() },
        ..step.clone()
    };
    let (free, ahead, foreign) = give_back(voters, step, &votes, Some(watch), take).await;
    let splits = voters.waiting.lock().splits(&step.lock, split);
    let longest = voters.round_trip().max(Duration::from_micros(200)) * (4 << splits.min(6));
    let rest = voters.jitter(longest.min(take.ttl / 4));
    if free {
        return Ok(queued(Some(rest), 0, false));
    }
    Ok(queued(left.map(|left| left + rest), ahead, foreign))
}

/// Gives back what a lost vote was granted, on every node that may have granted it, and has `watch` registered.
/// Whether a majority is free now, how many are told before us, and whether nobody would tell.
async fn give_back(
    voters: &Arc<Voters>,
    step: &Step,
    votes: &Votes,
    watch: Option<Step>,
    take: &Take,
) -> (bool, u32, bool) {
    let tombstone = Some(take.ttl.max(TOMBSTONE_LIFE));
    let leave = |tombstone| Step { action: Action::Leave { tombstone }, ..step.clone() };
    let granted = |node: usize| votes.granted.iter().any(|(granted, ..)| *granted == node);
    let batches: Vec<Arc<[Step]>> = (0..voters.nodes.len())
        .map(|node| {
            let cleanup = if votes.doubtful.has(node) {
                Some(leave(tombstone))
            } else {
                granted(node).then(|| leave(None))
            };
            cleanup.into_iter().chain(watch.clone()).collect()
        })
        .collect();
    let mut fanout = Fanout::send(voters, batches, voters.patience(take.ttl));
    let (mut free, mut answered, mut first, mut foreigners) = (0, 0, u32::MAX, false);
    if watch.is_none() {
        // Sent, and seen to in the background.
        fanout.sent().await;
        return (false, 0, false);
    }
    while answered < voters.majority() {
        let Some((.., mut answers)) = fanout.next().await else { break };
        match answers.pop() {
            Some(Ok(Outcome::Queued { ahead, foreign, .. })) => {
                first = first.min(ahead);
                foreigners |= foreign;
            }
            Some(Ok(_)) => free += 1,
            _ => continue,
        }
        answered += 1;
    }
    (free >= voters.majority(), if first == u32::MAX { 0 } else { first }, foreigners)
}
