//! Votes that a node of a quorum carries out long after everything else was decided: nothing of them stays held.
#![cfg(feature = "test-hooks")]
#![allow(missing_docs)]

use crate::machine;

use std::time::Duration;

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

/// The renewal comes first and finds nothing; the vote that is under way is the only one, and comes after the release.
#[test]
fn a_vote_that_comes_after_a_renewal_and_the_release_is_refused() {
    live(async |machine: Machine| {
        let nodes = Nodes::new(&machine, 3);
        let client = nodes.client().await;
        nodes.meet(2..3, Fault::Late(120 * MS));
        let guard = client.lock("x").acquire().await.unwrap();
        machine.sleep(MS).await;
        nodes.meet(2..3, Fault::None);
        // The renewal, at a third of the lease of 150 ms.
        machine.sleep(70 * MS).await;
        assert_eq!(nodes.keep().await, 2);
        guard.release().await.check().unwrap();
        machine.sleep(60 * MS).await;
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
