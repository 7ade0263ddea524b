//! Every order of events of the small protocol models: healthy without a violation, broken with one.

use fencelock::mutation::Mutant;
use fencelock_worlds::model::{HAND_OVER, Protocol};
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

/// One of them asks again, with a new owner id.
const RETRY: Protocol = Protocol { attempts: 2, refreshes: 0, crashes: 0, end: 3, ..MUTEX };

/// Two clients queue and hand the lock over; one may crash.
const QUEUE: Protocol = Protocol { queues: true, end: 4, ..MUTEX };

/// One of them asks again behind the other.
const AGAIN: Protocol = Protocol { queues: true, ..RETRY };

/// Releases leave the lock open to whoever comes first.
const OPEN: Protocol = Protocol { open: true, crashes: 0, ..QUEUE };

/// Three clients in the queue.
const THREE: Protocol = Protocol { clients: 3, refreshes: 0, crashes: 0, end: 3, ..QUEUE };

/// A request arrives twice.
const DOUBLED: Protocol = Protocol { doubles: 1, crashes: 0, end: 3, ..QUEUE };

/// Tries everything that can happen in a healthy model; nothing may break a promise.
fn exhaust(name: &str, protocol: Protocol) {
    let queues = protocol.queues;
    let checker = protocol.checker().threads(1).spawn_bfs().join();
    println!("{name}: {} states, {} distinct", checker.state_count(), checker.unique_state_count());
    for (property, path) in checker.discoveries() {
        assert_eq!(property, HAND_OVER, "{:#?}", path.into_actions());
    }
    assert_eq!(queues, checker.discovery(HAND_OVER).is_some(), "hand-overs happen where they can");
}

#[test]
fn the_mutex_is_exhausted() {
    exhaust("mutex", MUTEX);
}

#[test]
fn a_second_attempt_is_exhausted() {
    exhaust("retry", RETRY);
    exhaust("again", AGAIN);
}

#[test]
fn the_hand_over_is_exhausted() {
    exhaust("queue", QUEUE);
}

#[test]
fn the_open_lock_is_exhausted() {
    exhaust("open", OPEN);
}

#[test]
fn three_waiters_are_exhausted() {
    exhaust("three", THREE);
}

#[test]
fn doubled_requests_are_exhausted() {
    exhaust("doubled", DOUBLED);
}

#[test]
fn broken_clauses_are_found() {
    let broken = [
        (Mutant::DeadlineFromReply, MUTEX),
        (Mutant::LateGrantAccepted, MUTEX),
        (Mutant::NoTombstone, MUTEX),
        (Mutant::TombstoneIgnored, MUTEX),
        (Mutant::SameOwnerForEveryAttempt, MUTEX),
        (Mutant::FreeWithoutOwnerCheck, RETRY),
        (Mutant::RenewWithoutOwnerCheck, QUEUE),
        (Mutant::PushCountedFromArrival, AGAIN),
        (Mutant::TokenRepeats, QUEUE),
        (Mutant::FreeDoesNotSettle, QUEUE),
        (Mutant::OnlyFreeSettles, QUEUE),
        (Mutant::LeaveForgetsHold, QUEUE),
        (Mutant::RefreshCreatesTicket, QUEUE),
        (Mutant::ExpiryIgnored, QUEUE),
    ];
    for (mutant, protocol) in broken {
        let protocol = Protocol { mutant: Some(mutant), ..protocol };
        let checker = protocol.checker().threads(1).finish_when(HasDiscoveries::AnyFailures);
        let checker = checker.spawn_bfs().join();
        let found = checker.discoveries().into_iter().find(|(property, _)| *property != HAND_OVER);
        let (property, path) = found.unwrap_or_else(|| panic!("{mutant:?} is not found"));
        let (events, states) = (path.into_actions().len(), checker.state_count());
        println!("{mutant:?}: \"{property}\" after {events} events, {states} states");
    }
}
