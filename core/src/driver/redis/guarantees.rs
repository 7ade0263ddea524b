//! What a lock on one Redis server survives, in words.

use crate::port::Guarantee;

pub(super) const GUARANTEES: &[Guarantee] = &[
    Guarantee::new(
        "the holder dies",
        "the lock is free after at most one ttl; its waiters are served in order",
    ),
    Guarantee::new(
        "the holder is paused (GC, SIGSTOP, suspend)",
        "past its deadline the guard says lost at its first look; a write made without looking is refused by the fence",
    ),
    Guarantee::new(
        "the network drops, delays or cuts",
        "an unanswered request is never a grant and is undone; a hold that cannot be renewed is lost before its lease ends",
    ),
    Guarantee::new(
        "the server restarts with its data",
        "holds, queue and tokens go on; guards that could not be renewed in time are lost",
    ),
    Guarantee::new(
        "the server restarts without its data, or FLUSHALL, or a foreign DEL",
        "two may believe to hold until the first one's next renewal; the fence covers it: tokens come from the server's clock",
    ),
    Guarantee::new(
        "failover to a replica that lacks the last writes",
        "as without its data: the fence covers it as far as the clocks of the two agree",
    ),
    Guarantee::new(
        "the server's clock jumps forward",
        "leases may end early: two may believe to hold until the next renewal; the fence covers it",
    ),
    Guarantee::new(
        "the server's clock steps back",
        "what ends by it lasts longer by the step: the lock of a holder that died is free after a ttl and the step",
    ),
    Guarantee::new(
        "the server's clock steps back and its data is lost",
        "nothing on the store knows the older tokens; this client still raises the counter to those it has seen",
    ),
    Guarantee::new(
        "renew is false",
        "a foreign delete or data loss is not told before the deadline; the fence covers it",
    ),
    Guarantee::new(
        "the data is lost or falls back: jobs and versions",
        "the instant a job ran last may be run once more; tokens and versions still rise, as far as the clock does not step back",
    ),
];
