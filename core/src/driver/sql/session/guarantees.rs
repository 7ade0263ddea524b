//! The guarantees of a lock that lives with a session of a database, in words.

use crate::port::Guarantee;

pub(in crate::driver) const HOLDER: Guarantee = Guarantee::new(
    "the process of the holder dies",
    "the lock is free as soon as the server sees that the connection has ended, within milliseconds; if its machine or the way to it dies, after one ttl",
);
pub(in crate::driver) const WAITERS: Guarantee = Guarantee::new(
    "waiters die too",
    "the server skips those whose process died; of each whose machine died it waits one ttl",
);
pub(in crate::driver) const PAUSED: Guarantee = Guarantee::new(
    "the holder is paused (GC, SIGSTOP, suspend)",
    "the server ends its session after one ttl; the guard reports the loss at the first check, and the fence refuses a write that is made without a check",
);
pub(in crate::driver) const NETWORK: Guarantee = Guarantee::new(
    "the network cuts a connection, or the server ends it",
    "its locks are free at once, and their guards are told; until that arrives two clients may believe they hold the lock; the fence covers it",
);
pub(in crate::driver) const RESTORE: Guarantee = Guarantee::new(
    "the server is stopped and the database is restored from a backup",
    "all locks end; tokens still rise, as far as the clock does not step back and the backup is more than two minutes old, and one more for each crash of the server right before it was made",
);
pub(in crate::driver) const LOADED: Guarantee = Guarantee::new(
    "a backup is loaded while the server runs",
    "locks stay with their sessions, and tokens drawn since the backup may be drawn again: end all clients first, and let them connect two minutes later",
);

/// Where the statement of a waiter ends each second.
pub(in crate::driver) const LONG_WAIT: Guarantee = Guarantee::new(
    "somebody waits longer than a second",
    "its place is taken anew each second, but with `mysql+getlock://`: those who came since may pass it, readers a writer too",
);
