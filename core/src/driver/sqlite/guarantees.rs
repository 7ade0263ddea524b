//! What a lock in a SQLite file survives, in words.

use crate::port::Guarantee;

pub(super) const GUARANTEES: &[Guarantee] = &[
    Guarantee::new(
        "the holder dies, also by kill -9 in the middle of a step",
        "the file recovers by itself; the lock is free after at most one ttl and its waiters are served in order",
    ),
    Guarantee::new(
        "waiters die too",
        "their places in the queue end 5 s after they died; one that is served before that keeps the next ones waiting for its ttl, 5 s at most",
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
        "the log beside the file (`-wal`, `-shm`) is deleted",
        "what is written there from then on is not believed: two may believe to hold until the first one's next renewal; the client opens the file again and goes on",
    ),
    Guarantee::new(
        "this process opens the file by another SQLite, or copies it",
        "nothing on Linux (x86-64 and ARM64): the locks belong to the open file (open file description locks), not to the process, unless the program itself had opened it first through the SQLite that fencelock is linked with; on other systems do neither, since it ends SQLite's locks and two may hold for ever",
    ),
    Guarantee::new(
        "the file has several names (hard links), or is mounted by itself into a container",
        "refused at connect: under each name it would have a log of its own; mount its directory",
    ),
    Guarantee::new(
        "two users share the file",
        "works, where both may write the file and its directory; one is not woken by the other, and asks again every second at most",
    ),
    Guarantee::new(
        "the machine's clock jumps forward",
        "leases may end early: two may believe to hold until the next renewal; the fence covers it",
    ),
    Guarantee::new(
        "the machine's clock steps back",
        "no guard believes in more than it asked for; the lock of a holder that died is free one lease after somebody asks for it",
    ),
    Guarantee::new(
        "the file lies on a network file system",
        "not supported: SQLite's shared memory does not cross machines",
    ),
    Guarantee::new(
        "the data is lost or falls back: jobs and versions",
        "the instant a job ran last may be run once more; tokens and versions still rise, as far as the clock does not step back",
    ),
    Guarantee::new(
        "the machine's clock was ahead and is set right: jobs",
        "what it left of a run that lies ahead by more than half a period, and a minute, is not believed: the run that is due starts and overwrites it, also beside one in progress, which is lost with its next sign of life (the fence covers it); what lies ahead by less keeps runs from starting until the clock has caught up, and a start says so",
    ),
];
