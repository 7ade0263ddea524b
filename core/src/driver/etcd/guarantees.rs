//! The guarantees of a lock on etcd, in words.

use crate::driver::members;
use crate::port::Guarantee;

pub(super) const GUARANTEES: &[Guarantee] = &[
    Guarantee::new(
        "the holder dies",
        "the lock is free when its session has ended: after at most one ttl, and after one more if a member becomes the leader meanwhile; its waiters are served in order",
    ),
    members::WAITERS,
    Guarantee::PAUSED,
    Guarantee::new(
        "the network drops, delays or cuts",
        "a request without an answer is never a grant, and is cleaned up; the next member is asked within a second; if none answers, the lock is reported lost before the session ends",
    ),
    members::MEMBER,
    Guarantee::new(
        "the leader stood still for longer than a ttl and comes back, on etcd before 3.4.31 or 3.5.13",
        "it may end sessions that live (etcd issue 15247): the next client may hold the lock before the first one is told, which its watch does within a round trip; the fence covers it",
    ),
    Guarantee::new(
        "the clocks of clients differ: jobs",
        "etcd shows no clock: which instant is due, and whether half a period has passed, is decided by the clock of the client that asks, so one that is ahead may start a run early; never two at once, and never two for one instant; a recorded run that lies ahead by more than half a period plus a minute keeps nothing from running",
    ),
    members::READERS,
    Guarantee::new(
        "the cluster is restored from a backup, or somebody deletes the keys",
        "two clients may believe that they hold the lock, the first one until its session ends or it gives the lock back; tokens after a restore may be lower than before it",
    ),
];
