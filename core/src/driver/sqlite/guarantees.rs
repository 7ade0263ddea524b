//! What a lock in a SQLite file survives, in words.

use crate::port::Guarantee;

pub(super) const GUARANTEES: &[Guarantee] = &[
    Guarantee::new(
        "the holder dies, also by kill -9 in the middle of a step",
        "the file recovers by itself; the lock is free after at most one ttl and its waiters are served in order",
    ),
    Guarantee::new(
        "the holder is paused (SIGSTOP, suspend)",
        "past its deadline the guard says lost at its first look; a write made without looking is refused by the fence",
    ),
    Guarantee::new(
        "another program keeps the file locked",
        "steps wait up to `timeout` and then fail without effect; holds that cannot be renewed are lost in time",
    ),
    Guarantee::new(
        "the machine loses power",
        "the last commits may be missing (synchronous=NORMAL): all holders are gone anyway, and tokens come from the clock",
    ),
    Guarantee::new(
        "the file is deleted or restored from a copy",
        "two may believe to hold until the first one's next renewal; the fence covers it as far as the clock does not step back",
    ),
    Guarantee::new(
        "the machine's clock jumps forward",
        "leases may end early: two may believe to hold until the next renewal; the fence covers it",
    ),
    Guarantee::new(
        "the machine's clock steps back",
        "what ends by it lasts longer by the step: the lock of a holder that died is free after a ttl and the step",
    ),
    Guarantee::new(
        "the file lies on a network file system",
        "not supported: SQLite's shared memory does not cross machines",
    ),
    Guarantee::new(
        "the data is lost or falls back: jobs and versions",
        "the instant a job ran last may be run once more; tokens and versions still rise, as far as the clock does not step back",
    ),
];
