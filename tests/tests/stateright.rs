//! Every order of events of the small protocol models: healthy without a violation, broken with one.

use std::time::Instant;

use fencelock::mutation::Mutant;
use fencelock_tests::model::Protocol;
use stateright::{Checker, HasDiscoveries, Model};

/// Two clients ask once each, nobody queues; one may crash.
const MUTEX: Protocol = Protocol {
    clients: 2,
    attempts: 1,
    refreshes: 1,
    queues: false,
    open: false,
    doubles: 0,
    crashes: 1,
    end: 5,
    mutant: None,
};

/// Both ask again with a new owner id.
const RETRY: Protocol = Protocol { attempts: 2, refreshes: 0, crashes: 0, end: 3, ..MUTEX };
const HAND_OVER: Protocol = Protocol { queues: true, end: 4, ..MUTEX };
const AGAIN: Protocol = Protocol { queues: true, ..RETRY };
const OPEN: Protocol = Protocol { open: true, crashes: 0, ..HAND_OVER };
const THREE: Protocol = Protocol { clients: 3, refreshes: 0, crashes: 0, end: 3, ..HAND_OVER };
const DOUBLED: Protocol = Protocol { doubles: 1, crashes: 0, end: 3, ..HAND_OVER };

/// Counts the states of a healthy model, none of which may violate anything.
fn exhaust(name: &str, protocol: Protocol) {
    let start = std::time::Instant::now();
    let checker = protocol.checker().threads(1).target_state_count(6_000_000).spawn_bfs().join();
    println!(
        "{name}: {} states, {} distinct, depth {} {:?}",
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth(),
        start.elapsed()
    );
    for (property, path) in checker.discoveries() {
        if !property.starts_with("the lock is handed over") {
            println!("!!! {property}: {:?}", path.into_actions());
        }
    }
}

#[test]
fn experiment() {
    let all = [
        ("mutex", MUTEX),
        ("retry", RETRY),
        ("hand-over", HAND_OVER),
        ("again", AGAIN),
        ("open", OPEN),
        ("three", THREE),
        ("doubled", DOUBLED),
    ];
    for (name, protocol) in all.clone() {
        exhaust(name, protocol);
    }
    for mutant in Mutant::ALL {
        for (name, protocol) in all.clone() {
            let start = Instant::now();
            let protocol = Protocol { mutant: Some(*mutant), ..protocol };
            let checker = protocol
                .checker()
                .threads(1)
                .target_state_count(2_000_000)
                .finish_when(HasDiscoveries::AnyFailures)
                .spawn_bfs()
                .join();
            if let Some((property, path)) = checker
                .discoveries()
                .into_iter()
                .find(|found| !found.0.starts_with("the lock is handed"))
            {
                println!(
                    "{mutant:?}\t{name}\t{property}\t{}\t{:?} {:?}",
                    checker.state_count(),
                    path.into_actions().len(),
                    start.elapsed()
                );
            }
        }
    }
}
