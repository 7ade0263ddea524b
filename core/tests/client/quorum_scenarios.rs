//! Faults of other libraries' Redlock, as scenarios over memory nodes that can be cut off, slowed and emptied.
#![cfg(feature = "test-hooks")]
#![allow(missing_docs)]

use crate::machine;

use std::time::Duration;

use fencelock::driver::memory::Memory;
use fencelock::port::{
    Answer, Capabilities, Failure, Fence, LeaseHandle, LeaseStore, LockKey, NoticeSink, Runtime,
    Step,
};
use fencelock::{Client, Code, Error, Quorum, Released};
use fencelock_sim::Fault;

use self::machine::nodes::{LONGEST, Nodes};
use self::machine::{Machine, live};

const MS: Duration = Duration::from_millis(1);

#[test]
fn b24_what_was_applied_without_an_answer_is_given_back() {
    live(async |machine: Machine| {
        let nodes = Nodes::new(&machine, 5);
        let client = nodes.client().await;
        nodes.meet(0..2, Fault::ReplyLost);
        let guard = client.lock("x").ttl(LONGEST).renew(false).acquire().await.unwrap();
        nodes.meet(0..2, Fault::None);
        guard.release().await.check().unwrap();
        nodes.are_kept_by(0, 100 * MS).await;
    });
}

#[test]
fn b31_the_deadline_counts_from_the_vote_that_won_not_from_the_first() {
    live(async |machine: Machine| {
        let nodes = Nodes::new(&machine, 3);
        let (a, b) = (nodes.client().await, nodes.client().await);
        let first = a.lock("x").acquire().await.unwrap();
        let waiter = machine.start(b.lock("x").renew(false).acquire());
        machine.sleep(250 * MS).await;
        first.release().await.check().unwrap();
        let second = waiter.await.unwrap().unwrap();
        assert!(second.remaining() > 100 * MS, "{:?} left", second.remaining());
        second.extend(LONGEST).await.unwrap();
        assert!(second.remaining() > 250 * MS, "{:?} left", second.remaining());
    });
}

#[test]
fn b33_a_release_after_the_loss_ends_in_time() {
    live(async |machine: Machine| {
        let nodes = Nodes::new(&machine, 3);
        let client = nodes.client().await;
        let guard = client.lock("x").acquire().await.unwrap();
        nodes.meet(0..3, Fault::RequestLost);
        guard.claim().lost().await;
        let start = machine.now();
        assert_ne!(guard.release().await, Released::Released);
        assert!(machine.now().since(start) < 200 * MS, "{:?}", machine.now().since(start));
    });
}

#[test]
fn b34_not_mine_any_more_is_not_the_same_as_could_not_tell() {
    live(async |machine: Machine| {
        let nodes = Nodes::new(&machine, 3);
        let client = nodes.client().await;
        let ended = client.lock("x").ttl(20 * MS).renew(false).acquire().await.unwrap();
        machine.sleep(30 * MS).await;
        assert_eq!(ended.release().await, Released::AlreadyLost);
        let held = client.lock("x").acquire().await.unwrap();
        nodes.meet(0..2, Fault::RequestLost);
        assert_eq!(held.release().await, Released::Unconfirmed);
    });
}

#[test]
fn b35_nodes_restarted_in_turn_do_not_end_a_hold_nor_bring_it_back() {
    live(async |machine: Machine| {
        let nodes = Nodes::new(&machine, 3);
        let client = nodes.client().await;
        let guard = client.lock("x").acquire().await.unwrap();
        for node in (0..3).cycle().take(4) {
            nodes.restart(node);
            // It votes again after the longest lease, and then the next renewal brings the hold back to it.
            machine.sleep(LONGEST).await;
            nodes.are_kept_by(3, 200 * MS).await;
            assert!(guard.is_held(), "lost with node {node}");
        }
        guard.release().await.check().unwrap();
        nodes.are_kept_by(0, 100 * MS).await;
        machine.sleep(200 * MS).await;
        assert_eq!(nodes.keep().await, 0, "came back after the release");
    });
}

#[test]
fn b36_an_extend_that_fails_gives_nothing_up() {
    live(async |machine: Machine| {
        let nodes = Nodes::new(&machine, 3);
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
    });
}

#[test]
fn b37_an_extend_counts_from_its_sending() {
    live(async |machine: Machine| {
        let nodes = Nodes::new(&machine, 3);
        let client = nodes.client().await;
        let guard = client.lock("x").ttl(LONGEST).renew(false).acquire().await.unwrap();
        nodes.meet(0..3, Fault::Late(40 * MS));
        guard.extend(LONGEST).await.unwrap();
        assert!(guard.remaining() + 40 * MS < LONGEST, "{:?} left", guard.remaining());
        nodes.meet(0..3, Fault::Late(2 * LONGEST));
        let error = guard.extend(LONGEST).await.unwrap_err();
        assert!(matches!(error.code(), Code::Lost | Code::Unavailable), "{error}");
    });
}

#[test]
fn b57_the_loss_is_told_without_being_asked_for() {
    live(async |machine: Machine| {
        let nodes = Nodes::new(&machine, 3);
        let (a, b) = (nodes.client().await, nodes.connect(true).await);
        let guard = a.lock("x").acquire().await.unwrap();
        nodes.meet(0..2, Fault::RequestLost);
        let start = machine.now();
        let claim = guard.claim();
        let mut other = machine.start(b.lock("x").acquire());
        claim.lost().await;
        assert!(
            other.try_recv().unwrap().is_none() && machine.now().since(start) < 150 * MS,
            "{:?}",
            machine.now().since(start)
        );
        let next = other.await.unwrap().unwrap();
        assert!(next.token() > claim.token());
    });
}

#[test]
fn b58_releases_of_lost_votes_do_not_free_the_next_grant() {
    live(async |machine: Machine| {
        let nodes = Nodes::new(&machine, 3);
        let (a, b) = (nodes.client().await, nodes.client().await);
        let first = a.lock("x").acquire().await.unwrap();
        let waiter = machine.start(b.lock("x").acquire());
        machine.sleep(5 * MS).await;
        nodes.meet(0..1, Fault::Late(30 * MS));
        first.release().await.check().unwrap();
        let second = waiter.await.unwrap().unwrap();
        nodes.meet(0..1, Fault::None);
        // Everything that was late has arrived.
        machine.sleep(100 * MS).await;
        assert!(second.is_held());
        nodes.are_kept_by(3, 200 * MS).await;
        second.release().await.check().unwrap();
    });
}

#[test]
fn a_writer_outlives_nodes_restarted_in_turn() {
    live(async |machine: Machine| {
        let nodes = Nodes::new(&machine, 3);
        let (a, b) = (nodes.client().await, nodes.client().await);
        let guard = a.write_lock("x").acquire().await.unwrap();
        for node in 0..3 {
            nodes.restart(node);
            machine.sleep(LONGEST).await;
            nodes.are_kept_by(3, 200 * MS).await;
            let reader = b.read_lock("x").try_acquire().await.unwrap();
            assert!(reader.is_none() && guard.is_held(), "a reader beside the writer");
        }
    });
}

#[test]
fn a_long_way_to_the_nodes_grants_locks() {
    live(async |machine: Machine| {
        let nodes = Nodes::new(&machine, 3);
        let store = nodes.store(false, 30_000 * MS, 2_000 * MS);
        let client = Client::builder().runtime(machine.runtime()).store(store).await.unwrap();
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
    });
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

#[test]
fn what_a_majority_refuses_for_good_is_the_answer() {
    live(async |machine: Machine| {
        let nodes = |refusing: &[Code]| {
            let good = (refusing.len()..3)
                .map(|_| LeaseHandle::new(Memory::new().store(machine.runtime())));
            refusing.iter().map(|code| LeaseHandle::new(Refusing(*code))).chain(good).collect()
        };
        let client = async |refusing: &[Code]| {
            let store = Quorum::new(nodes(refusing), machine.runtime(), LONGEST, 50 * MS).unwrap();
            Client::builder().runtime(machine.runtime()).store(store).await.unwrap()
        };
        let within = async |client: Client| {
            let acquired = machine.within(2_000 * MS, client.lock("x").ttl(LONGEST).acquire());
            acquired.await.map(|result| result.map_err(|error| (error.code(), error)))
        };
        let (code, error) = within(client(&[Code::Auth; 2]).await).await.unwrap().unwrap_err();
        assert_eq!(code, Code::Auth, "{error}");
        assert!(error.fields()["node"].ends_with(" of 3"), "{error}");
        within(client(&[Code::Auth]).await)
            .await
            .unwrap()
            .unwrap()
            .release()
            .await
            .check()
            .unwrap();
        // What may pass, or differs, may pass.
        for refusing in [[Code::Unavailable; 2], [Code::Auth, Code::Invalid]] {
            let error =
                client(&refusing).await.lock("x").ttl(LONGEST).try_acquire().await.unwrap_err();
            assert_eq!(error.code(), Code::Unavailable);
        }
    });
}

#[test]
fn a_minority_that_is_cut_off_costs_nothing_and_forgets_nothing() {
    live(async |machine| {
        let (nodes, timeout) = (Nodes::new(&machine, 5), 50 * MS);
        let client = async |nodes: &Nodes| {
            let store = nodes.store(false, Duration::from_mins(1), timeout);
            Client::builder().runtime(machine.runtime()).store(store).await.unwrap()
        };
        let one = client(&nodes).await;
        let before = one.lock("x").acquire().await.unwrap();
        nodes.meet(0..2, Fault::RequestLost);
        let start = machine.now();
        before.release().await.check().unwrap();
        for _ in 0..20 {
            one.lock("x").acquire().await.unwrap().release().await.check().unwrap();
        }
        assert!(machine.now().since(start) < timeout, "waited for nodes that are cut off");
        nodes.meet(0..2, Fault::None);
        // What those two missed is repeated to them.
        let some = nodes.first(3);
        let acquired = machine.within(1500 * MS, client(&some).await.lock("x").acquire()).await;
        acquired.expect("freed").unwrap().release().await.check().unwrap();
    });
}
