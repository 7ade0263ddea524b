//! A Take on a quorum: the vote, the token, and the return of a vote that was not won.

use std::sync::Arc;
use std::time::Duration;

use super::fanout::Fanout;
use super::holds::{Kept, KeptByNode, QuorumHold};
use super::tally::{Tally, no_majority, unanswered};
use super::voters::Voters;
use crate::engine::deadline;
use crate::error::{Code, Error};
use crate::fence::Token;
use crate::port::{Action, Answer, Failure, Instant, LockState, Outcome, Step, Take, Vote};

/// Asks all nodes for the lock, once.
pub(super) async fn take(voters: &Arc<Voters>, step: &Step, take: &Take) -> Answer {
    let nodes = voters.nodes.len();
    let sent = voters.runtime.now();
    let proposed = voters.proposal.lock().make(sent, take.floor);
    let action = Action::Take(voting(voters, take, proposed, false));
    let batch: Arc<[Step]> = Arc::new([Step { action, ..step.clone() }]);
    let mut fanout = Fanout::send(voters, vec![batch.clone(); nodes], voters.patience(take.ttl));
    let mut tally = Tally::of(nodes);
    while !tally.is_decided(&batch[0].action) {
        let Some((node, _, mut answers)) = fanout.next().await else { break };
        tally.count(node, answers.pop().unwrap_or_else(|| Err(unanswered())));
    }
    voters.took(voters.runtime.now().since(sent));
    let drawn = tally.drawn();
    // The last of the tokens drawn with the first.
    let newest = Token::new(tally.token().get() + u64::from(drawn.max(1)) - 1);
    let take = Take { block: drawn, ..voting(voters, take, newest, false) };
    if tally.is_granted() && agree(voters, step, &take, &tally, (sent, proposed)).await {
        let (token, left) = (tally.token(), tally.left());
        let kept = KeptByNode::new(tally.kept());
        fanout.won = Some(kept.clone());
        let hold = QuorumHold { take, until: deadline(sent, left), kept };
        voters.holds.lock().insert(step.owner, hold);
        return Ok(Outcome::Granted { token, left, drawn });
    }
    drop(fanout);
    give_back(voters, step, &tally).await;
    lost(&tally)
}

/// The Take that a node of the quorum is sent.
fn voting(voters: &Voters, take: &Take, floor: Token, again: bool) -> Take {
    let vote = Some(Vote { aged: voters.max_ttl, again });
    Take { wait: false, floor, vote, ..take.clone() }
}

/// Whether a majority keeps a counter not below the newest token, so that the next majority cannot draw a lower one. Where the
/// nodes answered different ones, it is written to those that lag, while they keep the hold.
async fn agree(
    voters: &Arc<Voters>,
    step: &Step,
    take: &Take,
    tally: &Tally,
    (sent, proposed): (Instant, Token),
) -> bool {
    let token = tally.token();
    if tally.granted().all(|(_, own, _)| own == token) {
        return true;
    }
    // What the nodes answer is one more than what was proposed.
    voters.proposal.lock().missed(Token::new(proposed.get() + 1), token, sent);
    let lagging = |node| tally.granted().any(|(other, own, _)| other == node && own < token);
    let mut stored = tally.granted().filter(|(_, own, _)| *own == token).count();
    if stored >= tally.majority {
        return true;
    }
    let raise = Action::Take(voting(voters, take, take.floor, true));
    let raise = [raise, Action::Read].map(|action| Step { action, ..step.clone() });
    let (raise, nothing): (Arc<[Step]>, Arc<[Step]>) = (Arc::new(raise), Arc::new([]));
    let batch = |node| if lagging(node) { raise.clone() } else { nothing.clone() };
    let batches = (0..voters.nodes.len()).map(batch).collect();
    let mut fanout = Fanout::send(voters, batches, voters.patience(take.ttl));
    while stored < tally.majority {
        let Some((.., answers)) = fanout.next().await else { return false };
        if let [Ok(Outcome::Granted { .. }), Ok(Outcome::State(LockState { last, .. }))] =
            answers[..]
        {
            stored += usize::from(last >= take.floor);
        }
    }
    true
}

/// Gives back what a lost vote was granted, on every node that may have granted it. That is sent, and seen to in the background;
/// so is what is granted late.
async fn give_back(voters: &Arc<Voters>, step: &Step, tally: &Tally) {
    let leave = Step { action: Action::Leave { tombstone: None }, ..step.clone() };
    let batch = |kept| match kept {
        Kept::Asked => Arc::from([]),
        kept => voters.end_on(&leave, kept).into_iter().collect(),
    };
    let batches = tally.kept().into_iter().map(batch).collect();
    Fanout::send(voters, batches, Duration::ZERO).sent().await;
}

/// The answer of a vote that was not won.
fn lost(tally: &Tally) -> Answer {
    if let Some(kind) = tally.conflict() {
        return Ok(Outcome::Conflict { kind });
    }
    if tally.is_gone() {
        return Ok(Outcome::Gone);
    }
    if tally.is_known() {
        return Ok(Outcome::Held { left: tally.held() });
    }
    // Nothing is left of it, or that is seen to.
    Err(Failure::refused(match tally.recovering() {
        Some(left) if tally.failures().next().is_none() => recovering_nodes(left),
        _ => no_majority(tally),
    }))
}

/// Too many nodes have kept their data for too short a time.
fn recovering_nodes(left: Duration) -> Error {
    let message = format!(
        "too many nodes of the quorum were started, or lost their data, less than `max_ttl` ago; they vote again in {} s",
        left.as_secs_f32().ceil()
    );
    Error::new(Code::Unavailable, message)
}
