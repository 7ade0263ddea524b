//! The guarantees of a lock in a table of an SQL database, in words.

use crate::port::Guarantee;

pub(in crate::driver) const HOLDER: Guarantee = Guarantee::new(
    "the holder dies, also by kill -9 in the middle of a step",
    "the lock is free after at most one ttl and its waiters are served in order; a row that was locked is free when the server sees that the connection has ended, or after one second",
);
pub(in crate::driver) const WAITERS: Guarantee = Guarantee::new(
    "waiters die too",
    "their places in the queue end 5 s after they die; if a dead waiter is granted the lock before that, the next one waits for its lease to end, 5 s at most",
);
pub(in crate::driver) const NETWORK: Guarantee = Guarantee::new(
    "the network drops, delays or cuts; the server ends a connection",
    "a request without an answer is never a grant, and is cleaned up; a transaction whose commit was not answered is never sent again",
);
pub(in crate::driver) const FAILOVER: Guarantee = Guarantee::new(
    "a failover to a standby",
    "what was replicated continues (all, with synchronous replication); of locks that were not replicated, two clients may believe they hold the lock until the first one's next renewal; the fence covers it as far as the new server's clock is not behind",
);
pub(in crate::driver) const FORWARD: Guarantee = Guarantee::new(
    "the server's clock jumps forward",
    "leases may end early; two clients may believe they hold the lock until the next renewal; the fence covers it",
);
pub(in crate::driver) const BACK: Guarantee = Guarantee::new(
    "the server's clock steps back",
    "no guard counts on a longer lease than it asked for; the lock of a holder that died is free one lease after the next client asks for it",
);
pub(in crate::driver) const DELETED: Guarantee = Guarantee::new(
    "rows are deleted or the database is restored from a backup",
    "two clients may believe they hold the lock until the first one's next renewal; tokens still rise, as far as the clock does not step back",
);
