//! The guarantees of a lock in a SQLite file, in words.

use crate::driver::memory;
use crate::port::Guarantee;

pub(super) const GUARANTEES: &[Guarantee] = &[
    Guarantee::new(
        "the holder dies, also by kill -9 in the middle of a step",
        "the file recovers by itself; the lock is free after at most one ttl and its waiters are served in order",
    ),
    Guarantee::new(
        "waiters die too",
        "their places in the queue end 5 s after they die; if a dead waiter is granted the lock before that, the next one waits for its lease to end, 5 s at most",
    ),
    Guarantee::new(
        "the holder is paused (SIGSTOP, suspend)",
        "after its deadline the guard reports the loss at the first check; the fence refuses a write that is made without a check",
    ),
    Guarantee::new(
        "another process keeps the file locked",
        "requests wait up to `timeout` and then fail without effect; locks that cannot be renewed are reported lost in time",
    ),
    Guarantee::new(
        "the machine loses power",
        "the last commits may be missing (synchronous=NORMAL); all holders end with the machine, and tokens come from the clock",
    ),
    Guarantee::new(
        "the file is deleted or restored from a copy",
        "two clients may believe they hold the lock until the first one's next renewal; the fence covers it as far as the clock does not step back",
    ),
    Guarantee::new(
        "the log beside the file (`-wal`, `-shm`) is deleted while a client has it open",
        "it is not noticed, and two clients may hold the same lock; the fence covers it as far as the clock does not step back",
    ),
    Guarantee::new(
        "a process that holds locks opens the file by another SQLite, or copies it",
        "not supported: the system then ends SQLite's locks on the file, and two clients may hold the same lock; another process may do both",
    ),
    Guarantee::new(
        "the file has several names (hard links), or is mounted by itself into a container",
        "not supported: SQLite keeps a separate log for each name, and two clients may hold the same lock; mount the directory instead",
    ),
    Guarantee::new(
        "two users share the file",
        "works if both may write the file and its directory; the users do not wake each other's waiters, which ask again after at most a second",
    ),
    memory::FORWARD,
    memory::BACK,
    Guarantee::new(
        "the file lies on a network file system",
        "on Linux connect refuses it, where the system says so (NFS, SMB, Ceph and the like; not FUSE): SQLite's shared memory does not cross machines",
    ),
    Guarantee::new(
        "the data is lost or an older copy is restored: jobs and versions",
        "a job may run once more for its last scheduled instant; tokens and versions still rise, as far as the clock does not step back",
    ),
    memory::JOBS_AHEAD,
];
