//! Votes that a node of a quorum carries out long after everything else was decided: nothing of them stays held.
#![cfg(feature = "test-hooks")]
#![allow(missing_docs)]

use crate::machine;

use std::sync::Arc;
use std::time::Duration;

use fencelock::Token;
use fencelock::port::{Action, Kind, LeaseHandle, LockKey, Mode, Outcome, OwnerId, Step, Take};
use fencelock_sim::Fault;

use self::machine::nodes::{LONGEST, Nodes};
use self::machine::{Machine, live};

const MS: Duration = Duration::from_millis(1);

/// Nothing is held, and nothing comes to be held for as long as a lease.
async fn nothing_comes(nodes: &Nodes) {
    nodes.are_kept_by(0, 100 * MS).await;
    for _ in 0..50 {
        nodes.machine.sleep(10 * MS).await;
        assert_eq!(nodes.keep().await, 0, "it came to be held by nobody");
    }
}

#[test]
fn a_vote_that_the_end_of_the_hold_overtook_is_given_back() {
    for late in [5, 20, 60] {
        live(async |machine: Machine| {
            let nodes = Nodes::new(&machine, 5);
            let client = nodes.client().await;
            nodes.meet(3..5, Fault::Late(late * MS));
            let guard = client.lock("x").acquire().await.unwrap();
            // The vote is on its way.
            machine.sleep(MS).await;
            nodes.meet(3..5, Fault::None);
            guard.release().await.check().unwrap();
            machine.sleep(late * MS).await;
            nothing_comes(&nodes).await;
        });
    }
}

/// The renewal comes first, finds nothing, and has the hold taken there once more; the vote comes after the release.
#[test]
fn a_vote_that_comes_after_the_hold_was_healed_and_released_is_given_back() {
    live(async |machine: Machine| {
        let nodes = Nodes::new(&machine, 3);
        let client = nodes.client().await;
        nodes.meet(2..3, Fault::Late(120 * MS));
        let guard = client.lock("x").acquire().await.unwrap();
        machine.sleep(MS).await;
        nodes.meet(2..3, Fault::None);
        // The renewal, at a third of the lease of 150 ms.
        nodes.are_kept_by(3, 80 * MS).await;
        guard.release().await.check().unwrap();
        machine.sleep(50 * MS).await;
        nothing_comes(&nodes).await;
    });
}

/// No cleanup is pending for a node that was certainly never asked.
#[test]
fn a_node_that_was_never_reached_is_owed_nothing() {
    live(async |machine: Machine| {
        let nodes = Nodes::new(&machine, 3);
        let client = nodes.client().await;
        nodes.meet(2..3, Fault::Refused);
        let before = nodes.counts[2].steps();
        for _ in 0..500 {
            client.lock("x").acquire().await.unwrap().release().await.check().unwrap();
            machine.sleep(MS).await;
        }
        nodes.meet(2..3, Fault::None);
        machine.sleep(2 * LONGEST).await;
        assert_eq!(nodes.counts[2].steps() - before, 0, "it was made to undo what it never did");
    });
}

/// A registration for notices is forgotten when the store is closed, also one that nobody has taken back before.
#[test]
fn nobody_is_told_after_the_close() {
    live(async |machine: Machine| {
        let nodes = Nodes::new(&machine, 3);
        let client = nodes.client().await;
        let guard = client.lock("x").acquire().await.unwrap();
        let store = LeaseHandle::new(nodes.store(false, LONGEST, 50 * MS));
        store.listen(Arc::new(|_| {})).await.unwrap();
        let take = Take {
            mode: Mode::Exclusive,
            limit: 1,
            ttl: LONGEST,
            wait: true,
            block: 1,
            floor: Token::default(),
            info: "{}".into(),
        };
        let owner = OwnerId::draw(&*machine.runtime());
        let (lock, kind, action) = (LockKey::new("x"), Kind::Mutex, Action::Take(take));
        let answers = store.step(vec![Step { lock, owner, kind, action }]).await;
        assert!(matches!(answers[..], [Ok(Outcome::Queued { .. })]), "{answers:?}");
        let waiters = async || client.lock("x").inspect().await.unwrap().waiters.len();
        assert_eq!(waiters().await, 1);
        store.close().await;
        assert_eq!(waiters().await, 0, "the nodes wait for a client that has left");
        guard.release().await.check().unwrap();
    });
}
