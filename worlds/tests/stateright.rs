//! Every order of events of the small protocol models, without a violation.

use fencelock_worlds::model::{HAND_OVER, Protocol};
use stateright::{Checker, Model};

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
