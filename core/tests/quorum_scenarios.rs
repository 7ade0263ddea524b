//! What other libraries' Redlock got wrong, as scenarios over memory nodes that can be cut off, slowed and emptied.
#![allow(missing_docs, clippy::disallowed_methods)] // A user of the core may use tokio as it likes.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fencelock::driver::memory::Memory;
use fencelock::layer::{Chaos, Fault};
use fencelock::port::{
    Answer, Capabilities, Failure, Fence, LeaseHandle, LeaseStore, LockKey, Mode, NoticeSink,
    RuntimeHandle, Step,
};
use fencelock::runtime::TokioRuntime;
use fencelock::{Client, Code, Error, Quorum, Released};

const MS: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(300);

struct Nodes(Vec<(Memory, Arc<Mutex<Fault>>)>);

fn runtime() -> RuntimeHandle {
    Arc::new(TokioRuntime::current().expect("inside tokio"))
}

impl Nodes {
    fn new(count: usize) -> Self {
        let node = |_| (Memory::new(), Arc::new(Mutex::new(Fault::None)));
        Self((0..count).map(node).collect())
    }

    /// A client that sees the nodes' faults, or (an onlooker) none of them.
    async fn connect(&self, onlooker: bool) -> Client {
        let store = self.store(onlooker, LONGEST, 50 * MS);
        Client::builder().runtime(runtime()).option("ttl", 150).store(store).await.unwrap()
    }

    fn store(&self, onlooker: bool, max_ttl: Duration, timeout: Duration) -> Quorum {
        let node = |(memory, fault): &(Memory, Arc<Mutex<Fault>>)| {
            let fault = fault.clone();
            let meets = move || if onlooker { Fault::None } else { *fault.lock().unwrap() };
            LeaseHandle::new(Chaos::new(memory.store(runtime()), runtime(), meets))
        };
        let nodes = self.0.iter().map(node).collect();
        Quorum::new(nodes, runtime(), max_ttl, timeout).unwrap()
    }

    async fn client(&self) -> Client {
        self.connect(false).await
    }

    fn meet(&self, nodes: impl IntoIterator<Item = usize>, fault: Fault) {
        for node in nodes {
            *self.0[node].1.lock().unwrap() = fault;
        }
    }

    fn restart(&self, node: usize) {
        self.0[node].0.restart(&runtime());
    }

    /// On how many nodes the lock `x` is held.
    async fn keep(&self) -> usize {
        let mut count = 0;
        for (memory, _) in &self.0 {
            let store = memory.store(runtime());
            let client = Client::builder().runtime(runtime()).store(store).await.unwrap();
            count += client.lock("x").inspect().await.unwrap().holders.len();
        }
        count
    }

    async fn are_kept_by(&self, count: usize, within: Duration) {
        let start = Instant::now();
        while self.keep().await != count {
            assert!(start.elapsed() < within, "held on {} nodes, not {count}", self.keep().await);
            tokio::time::sleep(MS).await;
        }
    }
}

#[tokio::test]
async fn b24_what_was_applied_without_an_answer_is_given_back() {
    let nodes = Nodes::new(5);
    let client = nodes.client().await;
    nodes.meet(0..2, Fault::ReplyLost);
    let guard = client.lock("x").ttl(LONGEST).renew(false).acquire().await.unwrap();
    nodes.meet(0..2, Fault::None);
    guard.release().await.check().unwrap();
    nodes.are_kept_by(0, 100 * MS).await;
}

#[tokio::test]
async fn b31_the_deadline_counts_from_the_vote_that_won_not_from_the_first() {
    let nodes = Nodes::new(3);
    let (a, b) = (nodes.client().await, nodes.client().await);
    let first = a.lock("x").acquire().await.unwrap();
    let waiter = tokio::spawn(b.lock("x").renew(false).acquire());
    tokio::time::sleep(250 * MS).await;
    first.release().await.check().unwrap();
    let second = waiter.await.unwrap().unwrap();
    assert!(second.remaining() > 100 * MS, "{:?} left", second.remaining());
    second.extend(LONGEST).await.unwrap();
    assert!(second.remaining() > 250 * MS, "{:?} left", second.remaining());
}

#[tokio::test]
async fn b33_a_release_after_the_loss_ends_in_time() {
    let nodes = Nodes::new(3);
    let client = nodes.client().await;
    let guard = client.lock("x").acquire().await.unwrap();
    nodes.meet(0..3, Fault::RequestLost);
    guard.claim().lost().await;
    let start = Instant::now();
    assert_ne!(guard.release().await, Released::Released);
    assert!(start.elapsed() < 200 * MS, "{:?}", start.elapsed());
}

#[tokio::test]
async fn b34_not_mine_any_more_is_not_the_same_as_could_not_tell() {
    let nodes = Nodes::new(3);
    let client = nodes.client().await;
    let ended = client.lock("x").ttl(20 * MS).renew(false).acquire().await.unwrap();
    tokio::time::sleep(30 * MS).await;
    assert_eq!(ended.release().await, Released::AlreadyLost);
    let held = client.lock("x").acquire().await.unwrap();
    nodes.meet(0..2, Fault::RequestLost);
    assert_eq!(held.release().await, Released::Unconfirmed);
}

#[tokio::test]
async fn b35_nodes_restarted_in_turn_do_not_end_a_hold_nor_bring_it_back() {
    let nodes = Nodes::new(3);
    let client = nodes.client().await;
    let guard = client.lock("x").acquire().await.unwrap();
    for node in (0..3).cycle().take(4) {
        nodes.restart(node);
        // It votes again after the longest lease, and then the next renewal brings the hold back to it.
        tokio::time::sleep(LONGEST).await;
        nodes.are_kept_by(3, 200 * MS).await;
        assert!(guard.is_held(), "lost with node {node}");
    }
    guard.release().await.check().unwrap();
    nodes.are_kept_by(0, 100 * MS).await;
    tokio::time::sleep(200 * MS).await;
    assert_eq!(nodes.keep().await, 0, "came back after the release");
}

#[tokio::test]
async fn b36_an_extend_that_fails_gives_nothing_up() {
    let nodes = Nodes::new(3);
    let client = nodes.client().await;
    let guard = client.lock("x").ttl(LONGEST).renew(false).acquire().await.unwrap();
    // The third vote is not waited for.
    nodes.are_kept_by(3, 100 * MS).await;
    nodes.meet(0..2, Fault::RequestLost);
    assert_eq!(guard.extend(LONGEST).await.unwrap_err().code(), Code::Unavailable);
    assert!(guard.is_held());
    assert_eq!(nodes.keep().await, 3);
    nodes.meet(0..2, Fault::None);
    guard.extend(LONGEST).await.unwrap();
    guard.release().await.check().unwrap();
}

#[tokio::test]
async fn b37_an_extend_counts_from_its_sending() {
    let nodes = Nodes::new(3);
    let client = nodes.client().await;
    let guard = client.lock("x").ttl(LONGEST).renew(false).acquire().await.unwrap();
    nodes.meet(0..3, Fault::Late(40 * MS));
    guard.extend(LONGEST).await.unwrap();
    assert!(guard.remaining() + 40 * MS < LONGEST, "{:?} left", guard.remaining());
    nodes.meet(0..3, Fault::Late(2 * LONGEST));
    let error = guard.extend(LONGEST).await.unwrap_err();
    assert!(matches!(error.code(), Code::Lost | Code::Unavailable), "{error}");
}

#[tokio::test]
async fn b57_the_loss_is_told_without_being_asked_for() {
    let nodes = Nodes::new(3);
    let (a, b) = (nodes.client().await, nodes.connect(true).await);
    let guard = a.lock("x").acquire().await.unwrap();
    nodes.meet(0..2, Fault::RequestLost);
    let start = Instant::now();
    let claim = guard.claim();
    let other = tokio::spawn(b.lock("x").acquire());
    claim.lost().await;
    assert!(!other.is_finished() && start.elapsed() < 150 * MS, "{:?}", start.elapsed());
    let next = other.await.unwrap().unwrap();
    assert!(next.token() > claim.token());
}

#[tokio::test]
async fn b58_releases_of_lost_votes_do_not_free_the_next_grant() {
    let nodes = Nodes::new(3);
    let (a, b) = (nodes.client().await, nodes.client().await);
    let first = a.lock("x").acquire().await.unwrap();
    let waiter = tokio::spawn(b.lock("x").acquire());
    tokio::time::sleep(5 * MS).await;
    nodes.meet(0..1, Fault::Late(30 * MS));
    first.release().await.check().unwrap();
    let second = waiter.await.unwrap().unwrap();
    nodes.meet(0..1, Fault::None);
    // Everything that was late has arrived.
    tokio::time::sleep(100 * MS).await;
    assert!(second.is_held());
    nodes.are_kept_by(3, 200 * MS).await;
    second.release().await.check().unwrap();
}

#[tokio::test]
async fn an_upgrade_outlives_nodes_restarted_in_turn() {
    let nodes = Nodes::new(3);
    let (a, b) = (nodes.client().await, nodes.client().await);
    let mut guard = a.upgradeable("x").acquire().await.unwrap();
    guard.upgrade().await.unwrap();
    for node in 0..2 {
        nodes.restart(node);
        tokio::time::sleep(LONGEST).await;
        nodes.are_kept_by(3, 200 * MS).await;
        assert!(b.read("x").try_acquire().await.unwrap().is_none(), "a reader beside the writer");
    }
    // What it was turned into is kept as well.
    guard.downgrade(Mode::Read).await.unwrap();
    b.read("x").acquire_within(100 * MS).await.unwrap().release().await.check().unwrap();
    nodes.restart(2);
    tokio::time::sleep(LONGEST).await;
    nodes.are_kept_by(3, 200 * MS).await;
    assert!(guard.is_held());
    b.read("x").acquire_within(100 * MS).await.unwrap().release().await.check().unwrap();
}

#[tokio::test]
async fn a_node_that_missed_an_upgrade_does_not_count_for_it() {
    let nodes = Nodes::new(3);
    let (a, b) = (nodes.client().await, nodes.client().await);
    let mut guard = a.upgradeable("x").acquire().await.unwrap();
    nodes.are_kept_by(3, 100 * MS).await;
    nodes.meet([0], Fault::RequestLost);
    guard.upgrade().await.unwrap();
    nodes.meet([0], Fault::None);
    // A renewal tells it, before the next node forgets.
    tokio::time::sleep(100 * MS).await;
    nodes.restart(1);
    tokio::time::sleep(LONGEST).await;
    for _ in 0..5 {
        let reader = b.read("x").try_acquire().await;
        assert!(reader.unwrap().is_none() && guard.is_held(), "a reader beside the writer");
    }
}

#[tokio::test]
async fn a_long_way_to_the_nodes_grants_locks() {
    let nodes = Nodes::new(3);
    let store = nodes.store(false, 30_000 * MS, 2_000 * MS);
    let client = Client::builder().runtime(runtime()).store(store).await.unwrap();
    nodes.meet(0..3, Fault::Late(300 * MS));
    let first = client.lock("x").try_acquire().await.unwrap().expect("nobody holds it");
    first.release().await.check().unwrap();
    // Those who have known a shorter way learn.
    nodes.meet(0..3, Fault::None);
    for _ in 0..50 {
        client.lock("x").acquire().await.unwrap().release().await.check().unwrap();
    }
    nodes.meet(0..3, Fault::Late(300 * MS));
    let next = client.lock("x").acquire_within(5_000 * MS).await.unwrap();
    next.release().await.check().unwrap();
}

/// A node that answers nothing but this.
struct Refusing(Code);

impl LeaseStore for Refusing {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("refusing", Fence::ClockBounded)
    }

    async fn step(&self, batch: &[Step]) -> Vec<Answer> {
        let refused = || Err(Failure::refused(Error::new(self.0, "this node refuses")));
        batch.iter().map(|_| refused()).collect()
    }

    async fn listen(&self, _: NoticeSink) -> Result<(), Error> {
        Ok(())
    }

    async fn names(&self, _: &str) -> Result<Vec<LockKey>, Error> {
        Ok(Vec::new())
    }

    async fn close(&self) {}
}

#[tokio::test]
async fn what_a_majority_refuses_for_good_is_the_answer() {
    let nodes = |refusing: &[Code]| {
        let good = (refusing.len()..3).map(|_| LeaseHandle::new(Memory::new().store(runtime())));
        refusing.iter().map(|code| LeaseHandle::new(Refusing(*code))).chain(good).collect()
    };
    let client = async |refusing: &[Code]| {
        let store = Quorum::new(nodes(refusing), runtime(), LONGEST, 50 * MS).unwrap();
        Client::builder().runtime(runtime()).store(store).await.unwrap()
    };
    let within = async |client: Client| {
        let acquired = tokio::time::timeout(2_000 * MS, client.lock("x").ttl(LONGEST).acquire());
        acquired.await.map(|result| result.map_err(|error| (error.code(), error)))
    };
    let (code, error) = within(client(&[Code::Auth; 2]).await).await.unwrap().unwrap_err();
    assert_eq!(code, Code::Auth, "{error}");
    assert!(error.fields()["node"].ends_with(" of 3"), "{error}");
    within(client(&[Code::Auth]).await).await.unwrap().unwrap().release().await.check().unwrap();
    // What may pass, or differs, may pass.
    for refusing in [[Code::Unavailable; 2], [Code::Auth, Code::Invalid]] {
        let error = client(&refusing).await.lock("x").ttl(LONGEST).try_acquire().await.unwrap_err();
        assert_eq!(error.code(), Code::Unavailable);
    }
}
