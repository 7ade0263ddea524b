//! Redlock: an odd number of lease stores as one. A majority decides, whatever the others do.
//!
//! The same owner id goes to all nodes at once. A lock is held when a majority has granted it; the lease is what that
//! majority keeps, counted from before the request was sent. Nodes have no queue here: each would grant in an order of its
//! own and split the grant. Whoever was not granted is told when the lock is given back, and asks again; a vote that was
//! split is settled by rests of random length. What a node did not confirm is repeated until it does.

mod fanout;
mod node;
mod node_set;
mod pending_cleanup;
mod proposal;
mod stragglers;
mod tally;
mod vote;
mod voters;
mod waiters;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};

use self::fanout::Fanout;
use self::node_set::NodeSet;
use self::tally::Tally;
use self::voters::Voters;
use crate::error::{Code, Error, Result};
use crate::port::limits::TOMBSTONE_LIFE;
use crate::port::{
    Action, Answer, Capabilities, Failure, Fence, Guarantee, LeaseHandle, LeaseStore, LockKey,
    Notice, NoticeSink, Outcome, RuntimeHandle, Step, Take,
};

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
    Guarantee::new(
        "the holder is paused (GC, SIGSTOP, suspend)",
        "after its deadline the guard reports the loss at the first check; the fence refuses a write that is made without a check",
    ),
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

/// So long a quorum that is closed waits for nodes to forget who is not there any more.
const LAST: Duration = Duration::from_millis(200);

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
        if count < 3 || count.is_multiple_of(2) || count > NodeSet::MOST {
            return Err(Self::wrong_number(count));
        }
        Ok(Self(Arc::new(Voters::new(nodes, runtime, max_ttl, timeout))))
    }

    pub(crate) fn wrong_number(count: usize) -> Error {
        let message = format!(
            "a quorum has an odd number of nodes, at least three, not {count}; an even one survives no more failures than the odd one below it"
        );
        Error::invalid("nodes", message).with("count", count.to_string())
    }

    /// Runs steps that are decided by counting; one batch for each node.
    async fn count(&self, batch: &[Step], batches: Vec<Arc<[Step]>>) -> Vec<Answer> {
        let voters = &self.0;
        let sent = voters.runtime.now();
        // The same replies answer all: the shortest lease gains nothing by giving up early, the others lose. It is asked for
        // again in a batch of its own meanwhile.
        let leases = batch.iter().filter_map(|step| match step.action {
            Action::Renew { ttl } => Some(ttl),
            _ => None,
        });
        let patience = voters.patience(leases.max().unwrap_or(voters.max_ttl));
        let mut tallies: Vec<Tally> = batch.iter().map(|_| Tally::default()).collect();
        let mut fanout = Fanout::send(voters, batches, patience);
        while !batch.iter().zip(&tallies).all(|(step, tally)| tally.decided(&step.action, voters)) {
            let Some((node, sent, answers)) = fanout.next().await else { break };
            // A node that certainly has nothing to free was not told to.
            let mut told = sent.iter().zip(answers).peekable();
            for (step, tally) in batch.iter().zip(&mut tallies) {
                if told.peek().is_some_and(|(sent, _)| sent.owner == step.owner)
                    && let Some((_, answer)) = told.next()
                {
                    tally.count(node, answer);
                }
            }
        }
        voters.took(voters.runtime.now().since(sent));
        drop(fanout);
        let tallies = batch.iter().zip(tallies);
        tallies.map(|(step, tally)| tally.outcome(voters, step, sent)).collect()
    }

    async fn counted(&self, batch: Vec<Step>) -> Vec<Answer> {
        let voters = &self.0;
        let asked = batch.len();
        let mut batch = batch;
        let leaves = |step: &&Step| matches!(step.action, Action::Leave { .. });
        // What was registered for whoever gives up goes with it.
        let more = batch.iter().filter(leaves).filter_map(|step| voters.waiting.lock().left(step));
        let more: Vec<Step> = more.collect();
        batch.extend(more);
        let mut same: Option<Arc<[Step]>> = None;
        let ends: Vec<(NodeSet, NodeSet)> = batch
            .iter()
            .map(|step| match step.action {
                Action::Free { .. } => voters.give_up(step.owner, true),
                Action::Leave { .. } => voters.give_up(step.owner, false),
                _ => Default::default(),
            })
            .collect();
        let tombstone = Some(voters.max_ttl.max(TOMBSTONE_LIFE));
        let batches = (0..voters.nodes.len()).map(|node| {
            if ends.iter().all(|(doubtful, unasked)| !doubtful.has(node) && !unasked.has(node)) {
                return same.get_or_insert_with(|| batch.clone().into()).clone();
            }
            let told = batch.iter().zip(&ends).filter_map(|(step, (doubtful, unasked))| {
                let frees = matches!(step.action, Action::Free { .. });
                match frees {
                    true if doubtful.has(node) => {
                        Some(Step { action: Action::Leave { tombstone }, ..step.clone() })
                    }
                    true if unasked.has(node) => None,
                    _ => Some(step.clone()),
                }
            });
            told.collect()
        });
        let batches = batches.collect();
        let mut answers = self.count(&batch, batches).await;
        answers.truncate(asked);
        for (step, answer) in batch.iter().zip(&answers) {
            if matches!(answer, Ok(Outcome::Gone)) {
                voters.gone(step);
            }
        }
        answers
    }

    /// A Take; `after` a Free of the same lock, whoever was told of that is let pass first.
    async fn take(&self, step: &Step, take: &Take, after: bool) -> Answer {
        if after {
            let voters = &self.0;
            let pause = voters.round_trip() * 4;
            voters.runtime.sleep_until(voters.runtime.now() + pause.min(take.ttl / 8)).await;
        }
        vote::take(&self.0, step, take).await
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
        // The plainest first: it is what most acquires are.
        if let [step @ Step { action: Action::Take(take), .. }] = batch {
            return vec![self.take(step, take, false).await];
        }
        let counts = |step: &&Step| {
            !matches!(step.action, Action::Take(_) | Action::Refresh { .. })
                && self.0.refuses(step).is_none()
        };
        let counted: Vec<Step> = batch.iter().filter(counts).cloned().collect();
        let takes = batch.iter().filter_map(|step| {
            let Action::Take(take) = &step.action else { return None };
            let frees = |other: &Step| {
                other.lock == step.lock
                    && matches!(other.action, Action::Free { .. } | Action::Leave { .. })
            };
            Some(self.take(step, take, batch.iter().any(frees)))
        });
        let counting =
            async { if counted.is_empty() { Vec::new() } else { self.counted(counted).await } };
        let (counted, takes) = join(counting, join_all(takes)).await;
        let (mut counted, mut takes) = (counted.into_iter(), takes.into_iter());
        let answer = |step: &Step| match step.action {
            Action::Take(_) => takes.next(),
            // There are no tickets: whoever waits asks anew.
            Action::Refresh { .. } => Some(Ok(self.0.waiting.lock().asks_again(step))),
            _ => self.0.refuses(step).map(Err).or_else(|| counted.next()),
        };
        let missing = || Err(Failure::unknown(Error::internal("a step was not answered")));
        batch.iter().map(answer).map(|answer| answer.unwrap_or_else(missing)).collect()
    }

    async fn listen(&self, sink: NoticeSink) -> Result<()> {
        let voters = &self.0;
        let listening = voters.nodes.iter().enumerate().map(|(number, node)| {
            let (voters, sink) = (Arc::downgrade(voters), sink.clone());
            let heard = move |notice| {
                let Some(voters) = voters.upgrade() else { return };
                match notice {
                    Notice::Open { owner } => {
                        let owners = voters.waiting.lock().told(owner);
                        for owner in owners {
                            sink(Notice::Open { owner });
                        }
                    }
                    // No node of a quorum hands over, and what one has lost the others may keep.
                    Notice::Granted { .. } | Notice::Gone { .. } => {}
                    Notice::Gap => {
                        voters.nodes[number].news.notify(usize::MAX);
                        sink(notice);
                    }
                    Notice::Look => sink(notice),
                }
            };
            node.store.listen(Arc::new(heard))
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
        let (mut names, mut answered) = (std::collections::BTreeSet::new(), 0);
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
        let voters = &self.0;
        // Who was late to hear that its vote is lost had itself registered when it had given up already.
        let registered: Arc<[Step]> = voters.waiting.lock().all_left().into();
        if !registered.is_empty() {
            let mut fanout = Fanout::send(voters, vec![registered; voters.nodes.len()], LAST);
            while fanout.next().await.is_some() {}
        }
        join_all(voters.nodes.iter().map(|node| node.store.close())).await;
    }
}

/// Permits are counted by each node for itself: five nodes with two permits each are ten, a majority is three of them.
fn no_permits() -> Error {
    let message = "a quorum has no permits: each node would count them for itself; use one store for a semaphore";
    Error::new(Code::Unsupported, message)
}

/// More than a minority is away. Where so many fail for good that there is no majority without them, and all in the same
/// way, asking again is in vain, and that is the error.
fn no_majority(voters: &Voters, failures: &[(usize, Error)]) -> Error {
    let (of, needed) = (voters.nodes.len(), voters.majority());
    let lasting = failures.iter().find(|(_, error)| {
        let same = |(_, other): &&(usize, Error)| other.code() == error.code();
        !error.retryable() && failures.iter().filter(same).count() > of - needed
    });
    if let Some((node, error)) = lasting {
        return error.clone().with("node", format!("{} of {of}", node + 1));
    }
    let message = format!("fewer than {needed} of the quorum's {of} nodes answer");
    let error = Error::new(Code::Unavailable, message);
    match failures.last() {
        Some((_, failure)) => {
            error.with("node", failure.message().to_owned()).with_source(failure.clone())
        }
        None => error,
    }
}
