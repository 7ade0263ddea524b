//! Redlock: an odd number of lease stores as one. A majority decides, whatever the others do.
//!
//! The same owner id goes to all nodes at once. A lock is held when a majority has granted it; the lease is what that
//! majority keeps, counted from before the request was sent. Nodes have no queue here: each would grant in an order of its
//! own and split the grant. An attempt that is not granted is answered "held", and asks again after a pause of random length.
//! A Free or Leave that a node did not confirm is repeated until it does.

mod fanout;
mod holds;
mod node;
mod proposal;
mod tally;
mod vote;
mod voters;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use futures_util::future::join_all;

use self::fanout::Fanout;
use self::node::Node;
use self::tally::{Tally, unanswered};
use self::voters::Voters;
use crate::engine::RetryDelays;
use crate::error::{Error, Result};
use crate::port::{
    Action, Answer, Capabilities, Fence, Guarantee, LeaseHandle, LeaseStore, LockKey, Notice,
    NoticeSink, Outcome, RuntimeHandle, Step,
};
use crate::runtime::sync::Mutex;

/// Lease stores that are one: a lock is held where a majority of them says so. A client is made of it as of any store.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use std::{sync::Arc, time::Duration};
/// use fencelock::{driver::memory::Memory, port::LeaseHandle, runtime::TokioRuntime, Client, Quorum};
/// let runtime = Arc::new(TokioRuntime::current().unwrap());
/// let nodes = [Memory::new(), Memory::new(), Memory::new()];
/// let nodes = nodes.iter().map(|node| LeaseHandle::new(node.store(runtime.clone()))).collect();
/// let longest = Duration::from_secs(60);
/// let quorum = Quorum::new(nodes, runtime.clone(), longest, Duration::from_secs(5))?;
/// let client = Client::builder().runtime(runtime).store(quorum).await?;
/// client.lock("orders:42").acquire().await?.release().await.check()?;
/// # Ok::<(), fencelock::Error>(()) }).unwrap();
/// ```
pub struct Quorum(Arc<Voters>);

/// The effects of failures on the promises of a quorum.
const GUARANTEES: &[Guarantee] = &[
    Guarantee::new(
        "a minority of the nodes is down, cut off or stands still",
        "no effect: a majority decides, and what the others missed is sent to them again",
    ),
    Guarantee::new(
        "a node is new, restarts, is flushed, or another server takes its place",
        "it does not vote for `max_ttl` after a client first sees it in this state, because until then a client may rely on a lease that the node has forgotten; a later renewal writes the lock to it again",
    ),
    Guarantee::new(
        "that happens to a majority of the nodes within `max_ttl`",
        "no lock is granted until the nodes vote again",
    ),
    Guarantee::new("the holder dies", "the lock is free after at most one ttl"),
    Guarantee::PAUSED,
    Guarantee::new(
        "the network drops, delays or cuts",
        "a vote without an answer is never a grant, and is cleaned up; without a majority a lock is reported lost before its lease ends",
    ),
    Guarantee::new(
        "the clocks of the nodes differ",
        "by up to a minute: no effect; by more: no lock is granted where that majority is needed",
    ),
    Guarantee::new(
        "the clocks of a majority jump forward",
        "leases may end early; two clients may believe they hold the lock until the next renewal; the fence covers it",
    ),
    Guarantee::new(
        "a node without its data starts with its clock behind, and the clock is corrected",
        "the node counts `max_ttl` by its clock, so it votes early by the same amount; two clients may believe they hold the lock, for one lease at most; the fence covers it",
    ),
    Guarantee::new(
        "readers enter at once",
        "they may have the same token; the token of a writer is above all of them",
    ),
    Guarantee::new(
        "clients disagree on `max_ttl`",
        "a node may vote while a client still relies on a longer lease; the fence covers it",
    ),
];

/// Why there is no order between clients, and are no permits.
const UNORDERED: &str =
    "each node of a quorum would grant in an order of its own, and split the grant";

impl Quorum {
    /// The quorum of these nodes: an odd number, at least three. `max_ttl` is the longest lease, and how long a node that
    /// is new or lost its data does not vote: the same for all clients. A node is waited for as long as `timeout`, or a quarter of the
    /// lease asked for, at most; less once it is known how long answers take: 250 ms, or four times the slowest of late.
    pub fn new(
        nodes: Vec<LeaseHandle>,
        runtime: RuntimeHandle,
        max_ttl: Duration,
        timeout: Duration,
    ) -> Result<Self> {
        let count = nodes.len();
        if count < 3 || count.is_multiple_of(2) {
            return Err(Self::wrong_number(count));
        }
        let node = |store| Arc::new(Node::new(store, RetryDelays::new(runtime.clone())));
        Ok(Self(Arc::new(Voters {
            nodes: nodes.into_iter().map(node).collect(),
            runtime,
            max_ttl,
            timeout,
            slowest: AtomicU64::new(0),
            proposal: Mutex::default(),
            holds: Mutex::default(),
        })))
    }

    pub(crate) fn wrong_number(count: usize) -> Error {
        let message = format!(
            "a quorum has an odd number of nodes, at least three, not {count}; an even one survives no more failures than the odd one below it"
        );
        Error::invalid("nodes", message).with("count", count.to_string())
    }

    /// Carries out steps that are decided by counting, in one batch for each node.
    async fn count(&self, batch: &[Step]) -> Vec<Answer> {
        let voters = &self.0;
        let sent = voters.runtime.now();
        // The same replies answer all: the shortest lease gains nothing by giving up early, the others lose. It is asked for
        // again in a batch of its own meanwhile.
        let leases = batch.iter().filter_map(|step| match step.action {
            Action::Renew { ttl } => Some(ttl),
            _ => None,
        });
        let patience = voters.patience(leases.max().unwrap_or(voters.max_ttl));
        let mut fanout = self.send(batch, patience);
        let mut tallies: Vec<_> = batch.iter().map(|_| Tally::of(voters.nodes.len())).collect();
        let decided = |tallies: &[Tally]| {
            batch.iter().zip(tallies).all(|(step, tally)| tally.is_decided(&step.action))
        };
        while !decided(&tallies) {
            let Some((node, sent, answers)) = fanout.next().await else { break };
            let mut answered = sent.iter().zip(answers).peekable();
            for (step, tally) in batch.iter().zip(&mut tallies) {
                if let Some((_, answer)) = answered.next_if(|(sent, _)| sent.owner == step.owner) {
                    tally.count(node, answer);
                }
            }
        }
        voters.took(voters.runtime.now().since(sent));
        drop(fanout);
        let answer = |(step, tally): (&Step, &Tally)| {
            let answer = tally.outcome(&step.action);
            if let Action::Renew { .. } = step.action {
                match &answer {
                    Ok(Outcome::Gone) => {
                        voters.gone(step);
                        return answer;
                    }
                    Ok(_) => voters.renewed(step.owner, sent, tally.left()),
                    Err(_) => {}
                }
                tally.gone().for_each(|node| voters.heal(node, step));
            }
            answer
        };
        batch.iter().zip(&tallies).map(answer).collect()
    }

    /// The steps for each node: all, but that the end of a hold is told by what the node keeps of it.
    fn send(&self, batch: &[Step], patience: Duration) -> Fanout {
        let voters = &self.0;
        let ends = |step: &&Step| matches!(step.action, Action::Free { .. } | Action::Leave { .. });
        let hold = |step: &Step| Some((step.owner, voters.ended(step.owner)?));
        let ended: BTreeMap<_, _> = batch.iter().filter(ends).filter_map(hold).collect();
        let of_node = |node| {
            let steps = batch.iter().filter_map(|step| match ended.get(&step.owner) {
                Some(kept) => voters.end_on(step, kept.of(node)),
                None => Some(step.clone()),
            });
            steps.collect()
        };
        let batches = if ended.is_empty() {
            vec![batch.into(); voters.nodes.len()]
        } else {
            (0..voters.nodes.len()).map(of_node).collect()
        };
        let mut fanout = Fanout::send(voters, batches, patience);
        fanout.ended = ended;
        fanout
    }
}

impl LeaseStore for Quorum {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("redlock", Fence::ClockBounded)
            .with_guarantees(GUARANTEES)
            .without_order(UNORDERED)
    }

    fn warning(&self) -> Option<&'static str> {
        self.0.nodes.iter().find_map(|node| node.store.warning())
    }

    async fn step(&self, batch: &[Step]) -> Vec<Answer> {
        let voters = &self.0;
        // The plainest first: it is what most acquires are.
        if let [step @ Step { action: Action::Take(take), .. }] = batch
            && voters.refusal(step).is_none()
        {
            return vec![vote::take(voters, step, take).await];
        }
        let counts = |step: &&Step| {
            !matches!(step.action, Action::Take(_) | Action::Refresh { .. })
                && voters.refusal(step).is_none()
        };
        let counted: Vec<Step> = batch.iter().filter(counts).cloned().collect();
        let counted = if counted.is_empty() { Vec::new() } else { self.count(&counted).await };
        let mut counted = counted.into_iter();
        let mut answers = Vec::with_capacity(batch.len());
        for step in batch {
            let frees = |other: &Step| {
                other.lock == step.lock && matches!(other.action, Action::Free { .. })
            };
            answers.push(match (&step.action, voters.refusal(step)) {
                (_, Some(refused)) => Err(refused),
                // Who gives a lock back asks for it as late as the others who wait, or they would never meet it free.
                (Action::Take(take), _) if take.wait && batch.iter().any(frees) => {
                    Ok(Outcome::Held { left: None })
                }
                (Action::Take(take), _) => vote::take(voters, step, take).await,
                // There are no tickets.
                (Action::Refresh { .. }, _) => Ok(Outcome::Gone),
                _ => counted.next().unwrap_or_else(|| Err(unanswered())),
            });
        }
        answers
    }

    async fn listen(&self, sink: NoticeSink) -> Result<()> {
        let voters = &self.0;
        let listening = voters.nodes.iter().enumerate().map(|(number, node)| {
            let (voters, sink) = (Arc::downgrade(voters), sink.clone());
            let pass_on = move |notice| {
                // No node of a quorum hands over, and what one has lost the others may keep.
                let (Notice::Gap | Notice::Look) = notice else { return };
                if notice == Notice::Gap
                    && let Some(voters) = voters.upgrade()
                {
                    voters.nodes[number].back.end();
                }
                sink(notice);
            };
            node.store.listen(Arc::new(pass_on))
        });
        let results = join_all(listening).await;
        let listened = results.iter().filter(|result| result.is_ok()).count();
        match results.into_iter().find_map(Result::err) {
            Some(error) if listened < voters.majority() => Err(error),
            _ => Ok(()),
        }
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        let voters = &self.0;
        let asked = join_all(voters.nodes.iter().map(|node| node.store.names(prefix))).await;
        let (mut names, mut answered) = (BTreeSet::new(), 0);
        let mut failure = None;
        for result in asked {
            match result {
                Ok(keys) => {
                    answered += 1;
                    names.extend(keys);
                }
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(error) if answered < voters.majority() => Err(error),
            _ => Ok(names.into_iter().collect()),
        }
    }

    async fn close(&self) {
        join_all(self.0.nodes.iter().map(|node| node.store.close())).await;
    }
}
