//! The guarantees of a lock on ZooKeeper, in words.

use crate::driver::members;
use crate::port::Guarantee;

pub(super) const GUARANTEES: &[Guarantee] = &[
    Guarantee::new(
        "the holder dies",
        "the lock is free when its session has ended: after one ttl and two ticks of the server at most, and after one more ttl if a member becomes the leader meanwhile; its waiters are served in order",
    ),
    members::WAITERS,
    Guarantee::PAUSED,
    Guarantee::new(
        "the network drops, delays or cuts",
        "a request without an answer is never a grant, and is cleaned up; the session moves to another member; if none answers, the lock is reported lost before the session ends",
    ),
    members::MEMBER,
    Guarantee::new(
        "the leader is cut off from the other members",
        "a heartbeat needs a majority, so no session lives by it any more: its clients move to another member, or their locks are reported lost before the next leader ends their sessions",
    ),
    Guarantee::new(
        "the clocks of clients differ: jobs and values with an end",
        "ZooKeeper shows no clock: which instant is due, whether half a period has passed, and whether a value has ended, is decided by the clock of the client that asks, so one that is ahead may start a run early; never two at once, and never two for one instant; a recorded run that lies ahead by more than half a period plus a minute keeps nothing from running; a value is removed an hour after its end by such a clock",
    ),
    members::READERS,
    Guarantee::new(
        "the ensemble is restored from a backup, or somebody deletes the nodes",
        "two clients may believe that they hold the lock, the first one until its session ends or it gives the lock back; tokens after a restore may be lower than before it",
    ),
];
