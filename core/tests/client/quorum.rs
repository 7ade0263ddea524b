//! A quorum over memory nodes that can be cut off, slowed and emptied: what it refuses, and the faults of other libraries' Redlock.

use std::time::Duration;

use fencelock::driver::memory::Memory;
use fencelock::port::{
    Answer, Capabilities, Failure, Fence, LeaseHandle, LeaseStore, LockKey, NoticeSink, Runtime,
    Step,
};
use fencelock::{Client, Code, Error, Quorum, Released};
use fencelock_sim::Fault;

use crate::world::nodes::{LONGEST, Nodes};
use crate::world::{MS, World};

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

async fn b24_what_was_applied_without_an_answer_is_given_back(world: &World) {
    let nodes = Nodes::new(world, 5);
    let client = nodes.client().await;
    nodes.meet(0..2, Fault::ReplyLost);
    let guard = client.lock("x").ttl(LONGEST).renew(false).acquire().await.unwrap();
    nodes.meet(0..2, Fault::None);
    guard.release().await.check().unwrap();
    nodes.are_kept_by(0, 100 * MS).await;
}

async fn b31_the_deadline_counts_from_the_vote_that_won_not_from_the_first(world: &World) {
    let nodes = Nodes::new(world, 3);
    let (a, b) = (nodes.client().await, nodes.client().await);
    let first = a.lock("x").acquire().await.unwrap();
    let waiter = world.begin(b.lock("x").renew(false).acquire());
    world.sleep(250 * MS).await;
    first.release().await.check().unwrap();
    let second = waiter.await.unwrap().unwrap();
    assert!(second.remaining() > 100 * MS, "{:?} left", second.remaining());
    second.extend(LONGEST).await.unwrap();
    assert!(second.remaining() > 250 * MS, "{:?} left", second.remaining());
}

async fn b33_a_release_after_the_loss_ends_in_time(world: &World) {
    let nodes = Nodes::new(world, 3);
    let client = nodes.client().await;
    let guard = client.lock("x").acquire().await.unwrap();
    nodes.meet(0..3, Fault::RequestLost);
    guard.claim().lost().await;
    let start = world.now();
    assert_ne!(guard.release().await, Released::Released);
    assert!(world.now().since(start) < 200 * MS, "{:?}", world.now().since(start));
}

async fn b34_not_mine_any_more_is_not_the_same_as_could_not_tell(world: &World) {
    let nodes = Nodes::new(world, 3);
    let client = nodes.client().await;
    let ended = client.lock("x").ttl(20 * MS).renew(false).acquire().await.unwrap();
    world.sleep(30 * MS).await;
    assert_eq!(ended.release().await, Released::AlreadyLost);
    let held = client.lock("x").acquire().await.unwrap();
    nodes.meet(0..2, Fault::RequestLost);
    assert_eq!(held.release().await, Released::Unconfirmed);
}

async fn b35_nodes_restarted_in_turn_do_not_end_a_hold_nor_bring_it_back(world: &World) {
    let nodes = Nodes::new(world, 3);
    let client = nodes.client().await;
    let guard = client.lock("x").acquire().await.unwrap();
    for node in (0..3).cycle().take(4) {
        nodes.restart(node);
        // It votes again after the longest lease, and then the next renewal brings the hold back to it.
        world.sleep(LONGEST).await;
        nodes.are_kept_by(3, 200 * MS).await;
        assert!(guard.is_held(), "lost with node {node}");
    }
    guard.release().await.check().unwrap();
    nodes.are_kept_by(0, 100 * MS).await;
    world.sleep(200 * MS).await;
    assert_eq!(nodes.keep().await, 0, "came back after the release");
}

async fn b36_an_extend_that_fails_gives_nothing_up(world: &World) {
    let nodes = Nodes::new(world, 3);
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

async fn b37_an_extend_counts_from_its_sending(world: &World) {
    let nodes = Nodes::new(world, 3);
    let client = nodes.client().await;
    let guard = client.lock("x").ttl(LONGEST).renew(false).acquire().await.unwrap();
    nodes.meet(0..3, Fault::Late(40 * MS));
    guard.extend(LONGEST).await.unwrap();
    assert!(guard.remaining() + 40 * MS < LONGEST, "{:?} left", guard.remaining());
    nodes.meet(0..3, Fault::Late(2 * LONGEST));
    let error = guard.extend(LONGEST).await.unwrap_err();
    assert!(matches!(error.code(), Code::Lost | Code::Unavailable), "{error}");
}

async fn b57_the_loss_is_told_without_being_asked_for(world: &World) {
    let nodes = Nodes::new(world, 3);
    let (a, b) = (nodes.client().await, nodes.connect(true).await);
    let guard = a.lock("x").acquire().await.unwrap();
    nodes.meet(0..2, Fault::RequestLost);
    let start = world.now();
    let claim = guard.claim();
    let mut other = world.begin(b.lock("x").acquire());
    claim.lost().await;
    assert!(
        other.try_recv().unwrap().is_none() && world.now().since(start) < 150 * MS,
        "{:?}",
        world.now().since(start)
    );
    let next = other.await.unwrap().unwrap();
    assert!(next.token() > claim.token());
}

async fn b58_releases_of_lost_votes_do_not_free_the_next_grant(world: &World) {
    let nodes = Nodes::new(world, 3);
    let (a, b) = (nodes.client().await, nodes.client().await);
    let first = a.lock("x").acquire().await.unwrap();
    let waiter = world.begin(b.lock("x").acquire());
    world.sleep(5 * MS).await;
    nodes.meet(0..1, Fault::Late(30 * MS));
    first.release().await.check().unwrap();
    let second = waiter.await.unwrap().unwrap();
    nodes.meet(0..1, Fault::None);
    // Everything that was late has arrived.
    world.sleep(100 * MS).await;
    assert!(second.is_held());
    nodes.are_kept_by(3, 200 * MS).await;
    second.release().await.check().unwrap();
}

async fn a_long_way_to_the_nodes_grants_locks(world: &World) {
    let nodes = Nodes::new(world, 3);
    let store = nodes.store(false, 30_000 * MS, 2_000 * MS);
    let client = Client::builder().runtime(world.node.clone()).store(store).await.unwrap();
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

async fn what_a_majority_refuses_for_good_is_the_answer(world: &World) {
    let nodes = |refusing: &[Code]| {
        let good =
            (refusing.len()..3).map(|_| LeaseHandle::new(Memory::new().store(world.node.clone())));
        refusing.iter().map(|code| LeaseHandle::new(Refusing(*code))).chain(good).collect()
    };
    let client = async |refusing: &[Code]| {
        let store = Quorum::new(nodes(refusing), world.node.clone(), LONGEST, 50 * MS).unwrap();
        Client::builder().runtime(world.node.clone()).store(store).await.unwrap()
    };
    let within = async |client: Client| {
        let acquired = world.within(2_000 * MS, client.lock("x").ttl(LONGEST).acquire());
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

async fn a_minority_that_is_cut_off_costs_nothing_and_forgets_nothing(world: &World) {
    let (nodes, timeout) = (Nodes::new(world, 5), 50 * MS);
    let client = async |nodes: &Nodes| {
        let store = nodes.store(false, Duration::from_mins(1), timeout);
        Client::builder().runtime(world.node.clone()).store(store).await.unwrap()
    };
    let one = client(&nodes).await;
    let before = one.lock("x").acquire().await.unwrap();
    nodes.meet(0..2, Fault::RequestLost);
    let start = world.now();
    before.release().await.check().unwrap();
    for _ in 0..20 {
        one.lock("x").acquire().await.unwrap().release().await.check().unwrap();
    }
    assert!(world.now().since(start) < timeout, "waited for nodes that are cut off");
    nodes.meet(0..2, Fault::None);
    // What those two missed is repeated to them.
    let some = nodes.first(3);
    let acquired = world.within(1500 * MS, client(&some).await.lock("x").acquire()).await;
    acquired.expect("freed").unwrap().release().await.check().unwrap();
}

/// The renewal comes first and finds nothing; the vote that is under way is the only one, and comes after the release.
async fn a_vote_that_comes_after_a_renewal_and_the_release_is_refused(world: &World) {
    let nodes = Nodes::new(world, 3);
    let client = nodes.client().await;
    nodes.meet(2..3, Fault::Late(120 * MS));
    let guard = client.lock("x").acquire().await.unwrap();
    world.sleep(MS).await;
    nodes.meet(2..3, Fault::None);
    // The renewal, at a third of the lease of 150 ms.
    world.sleep(70 * MS).await;
    assert_eq!(nodes.keep().await, 2);
    guard.release().await.check().unwrap();
    world.sleep(60 * MS).await;
    nothing_comes(&nodes).await;
}

/// No cleanup is pending for a node that was certainly never asked.
async fn a_node_that_was_never_reached_is_owed_nothing(world: &World) {
    let nodes = Nodes::new(world, 3);
    let client = nodes.client().await;
    nodes.meet(2..3, Fault::Refused);
    let before = nodes.counts[2].steps();
    for _ in 0..500 {
        client.lock("x").acquire().await.unwrap().release().await.check().unwrap();
        world.sleep(MS).await;
    }
    nodes.meet(2..3, Fault::None);
    world.sleep(2 * LONGEST).await;
    assert_eq!(nodes.counts[2].steps() - before, 0, "it was made to undo what it never did");
}

/// Nothing is held, and nothing comes to be held for as long as a lease.
async fn nothing_comes(nodes: &Nodes) {
    nodes.are_kept_by(0, 100 * MS).await;
    for _ in 0..50 {
        nodes.sleep(10 * MS).await;
        assert_eq!(nodes.keep().await, 0, "it came to be held by nobody");
    }
}

async fn a_vote_that_the_end_of_the_hold_overtook_is_given_back(world: &World) {
    for late in [5, 20, 60] {
        let nodes = Nodes::new(world, 5);
        let client = nodes.client().await;
        nodes.meet(3..5, Fault::Late(late * MS));
        let guard = client.lock("x").acquire().await.unwrap();
        // The vote is on its way.
        world.sleep(MS).await;
        nodes.meet(3..5, Fault::None);
        guard.release().await.check().unwrap();
        world.sleep(late * MS).await;
        nothing_comes(&nodes).await;
    }
}

/// Six clients try for one lock, while one node of five fails like this: no try is an error, and every wait ends with its lock.
async fn contend(world: &World, fault: Fault) {
    let nodes = Nodes::new(world, 5);
    // Their ways differ, so that votes are split.
    (0..4).for_each(|node| nodes.meet([node], Fault::Late(MS * (node as u32 + 1))));
    nodes.meet([4], fault);
    let mut tries = Vec::new();
    for number in 1..=6 {
        let (client, node) = (nodes.client().await, world.node.clone());
        tries.push(world.begin(async move {
            for _ in 0..50 {
                node.sleep_until(node.now() + MS * number * 7 / 10).await;
                let tried = client.lock("x").try_acquire().await;
                if let Some(guard) = tried.expect("a node that fails is not felt") {
                    guard.release().await.check().unwrap();
                }
            }
            let guard = client.lock("x").acquire_within(Duration::from_secs(10)).await;
            guard.expect("it is free in the end").release().await.check().unwrap();
        }));
    }
    for tries in tries {
        tries.await.expect("no try failed");
    }
}

async fn a_node_that_fails_is_not_felt_by_those_who_contend(world: &World) {
    for fault in [Fault::Refused, Fault::RequestLost] {
        contend(world, fault).await;
    }
}

async fn without_a_majority_nothing_is_granted(world: &World) {
    let nodes = Nodes::new(world, 3);
    let client = nodes.client().await;
    nodes.meet(0..2, Fault::RequestLost);
    let error = client.lock("x").try_acquire().await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
    assert!(error.message().contains("fewer than 2 of the quorum's 3 nodes"), "{error}");
    nodes.meet(0..2, Fault::None);
    let guard = client.lock("x").acquire_within(2000 * MS).await.unwrap();
    guard.release().await.check().unwrap();
}

async fn what_a_quorum_cannot_do_is_refused(world: &World) {
    for count in [0, 1, 2, 4, 6] {
        let error =
            Nodes::new(world, count).quorum(false, LONGEST, 50 * MS).err().expect("refused");
        assert_eq!(error.code(), Code::Invalid);
        assert_eq!(error.fields()["count"], count.to_string());
    }
    let client = Nodes::new(world, 3).client().await;
    let error = client.semaphore("x", 2).acquire().await.unwrap_err();
    assert_eq!(error.code(), Code::Unsupported);
    assert!(error.message().contains("permits"), "{error}");
    let error = client.lock("x").fair(true).acquire().await.unwrap_err();
    assert_eq!(error.code(), Code::Unsupported);
    assert!(error.message().contains("fair"), "{error}");
    for dialect in ["redisson", "plain:redlock:"] {
        let error = client.lock("x").option("dialect", dialect).try_acquire().await.unwrap_err();
        assert_eq!(error.code(), Code::Unsupported, "{error}");
        let word = dialect.split(':').next().expect("it has a word");
        assert!(
            error.message().contains(&format!("does not speak the dialect `{word}`")),
            "{error}"
        );
    }
    let error = client.lock("x").ttl(2 * LONGEST).acquire().await.unwrap_err();
    assert_eq!((error.code(), error.fields()["argument"].as_str()), (Code::Invalid, "ttl"));
    client.lock("x").fair(false).acquire().await.unwrap().release().await.check().unwrap();
}

plays! {
    b24_what_was_applied_without_an_answer_is_given_back,
    b31_the_deadline_counts_from_the_vote_that_won_not_from_the_first,
    b33_a_release_after_the_loss_ends_in_time,
    b34_not_mine_any_more_is_not_the_same_as_could_not_tell,
    b35_nodes_restarted_in_turn_do_not_end_a_hold_nor_bring_it_back,
    b36_an_extend_that_fails_gives_nothing_up,
    b37_an_extend_counts_from_its_sending,
    b57_the_loss_is_told_without_being_asked_for,
    b58_releases_of_lost_votes_do_not_free_the_next_grant,
    a_long_way_to_the_nodes_grants_locks,
    what_a_majority_refuses_for_good_is_the_answer,
    a_minority_that_is_cut_off_costs_nothing_and_forgets_nothing,
    a_vote_that_comes_after_a_renewal_and_the_release_is_refused,
    a_node_that_was_never_reached_is_owed_nothing,
    a_vote_that_the_end_of_the_hold_overtook_is_given_back,
    a_node_that_fails_is_not_felt_by_those_who_contend,
    without_a_majority_nothing_is_granted,
    what_a_quorum_cannot_do_is_refused,
}
