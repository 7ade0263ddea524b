//! What a lock in a PostgreSQL table survives, in words.

use crate::port::Guarantee;

const HOLDER: Guarantee = Guarantee::new(
    "the holder dies, also by kill -9 in the middle of a step",
    "the lock is free after at most one ttl and its waiters are served in order; a row that was locked is free when the server sees that the connection has ended, or after one second",
);
const WAITERS: Guarantee = Guarantee::new(
    "waiters die too",
    "their places in the queue end 5 s after they die; if a dead waiter is granted the lock before that, the next one waits for its lease to end, 5 s at most",
);
const PAUSED: Guarantee = Guarantee::new(
    "the holder is paused (GC, SIGSTOP, suspend)",
    "after its deadline the guard reports the loss at the first check; the fence refuses a write that is made without a check",
);
const NETWORK: Guarantee = Guarantee::new(
    "the network drops, delays or cuts; a backend is ended",
    "a request without an answer is never a grant, and is cleaned up; a transaction whose commit was not answered is never sent again",
);
const RESTART: Guarantee = Guarantee::new(
    "the server restarts or crashes",
    "locks, queue and tokens continue as they were committed (`durability=durable`)",
);
const RELAXED_RESTART: Guarantee = Guarantee::new(
    "the server or its machine crashes",
    "the changes of the last second may be missing (`durability=relaxed`): two clients may believe they hold the lock until the first one's next renewal; tokens still rise, as far as the clock does not step back",
);
const FAILOVER: Guarantee = Guarantee::new(
    "a failover to a standby",
    "what was replicated continues (all, with synchronous replication); of the rest two clients may believe they hold the lock until the first one's next renewal; the fence covers it as far as the new server's clock is not behind",
);
const FORWARD: Guarantee = Guarantee::new(
    "the server's clock jumps forward",
    "leases may end early; two clients may believe they hold the lock until the next renewal; the fence covers it",
);
const BACK: Guarantee = Guarantee::new(
    "the server's clock steps back",
    "no guard counts on a longer lease than it asked for; the lock of a holder that died is free one lease after the next client asks for it",
);
const DELETED: Guarantee = Guarantee::new(
    "rows are deleted or the database is restored from a backup",
    "two clients may believe they hold the lock until the first one's next renewal; tokens still rise, as far as the clock does not step back",
);
const POOLER: Guarantee = Guarantee::new(
    "a pooler stands before the server",
    "it has to keep sessions: one that hands each transaction to another session is refused at the first statement, or delivers no notices, and waiters then look once a second",
);

pub(super) const DURABLE: &[Guarantee] =
    &[HOLDER, WAITERS, PAUSED, NETWORK, RESTART, FAILOVER, FORWARD, BACK, DELETED, POOLER];
pub(super) const RELAXED: &[Guarantee] =
    &[HOLDER, WAITERS, PAUSED, NETWORK, RELAXED_RESTART, FAILOVER, FORWARD, BACK, DELETED, POOLER];
