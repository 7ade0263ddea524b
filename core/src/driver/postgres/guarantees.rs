//! What a lock in a PostgreSQL table survives, in words.

use crate::driver::sql::guarantees::{
    BACK, DELETED, FAILOVER, FORWARD, HOLDER, NETWORK, PAUSED, WAITERS,
};
use crate::port::Guarantee;

const RESTART: Guarantee = Guarantee::new(
    "the server restarts or crashes",
    "locks, queue and tokens continue as they were committed (`durability=durable`)",
);
const RELAXED_RESTART: Guarantee = Guarantee::new(
    "the server or its machine crashes",
    "the changes of the last second may be missing (`durability=relaxed`): two clients may believe they hold the lock until the first one's next renewal; tokens still rise, as far as the clock does not step back",
);
const POOLER: Guarantee = Guarantee::new(
    "a pooler stands before the server",
    "it has to keep sessions: one that hands each transaction to another session is refused at the first statement, or delivers no notices, and waiters then look once a second",
);

pub(super) const DURABLE: &[Guarantee] =
    &[HOLDER, WAITERS, PAUSED, NETWORK, RESTART, FAILOVER, FORWARD, BACK, DELETED, POOLER];
pub(super) const RELAXED: &[Guarantee] =
    &[HOLDER, WAITERS, PAUSED, NETWORK, RELAXED_RESTART, FAILOVER, FORWARD, BACK, DELETED, POOLER];

const ADVISORY_HOLDER: Guarantee = Guarantee::new(
    "the process of the holder dies",
    "the lock is free as soon as the server sees that the connection has ended, within milliseconds; if its machine or the way to it dies, after one ttl",
);
const ADVISORY_WAITERS: Guarantee = Guarantee::new(
    "waiters die too",
    "the server skips those whose process died; of each whose machine died it waits one ttl",
);
const ADVISORY_PAUSED: Guarantee = Guarantee::new(
    "the holder is paused (GC, SIGSTOP, suspend)",
    "the server ends its session after one ttl; the guard reports the loss at the first check, and the fence refuses a write that is made without a check",
);
const ADVISORY_NETWORK: Guarantee = Guarantee::new(
    "the network cuts a connection; a backend is ended",
    "its locks are free at once, and their guards are told; until that arrives two clients may believe they hold the lock; the fence covers it",
);
const ADVISORY_RESTART: Guarantee = Guarantee::new(
    "the server restarts, crashes or fails over",
    "all locks end and their guards are told; tokens still rise, but that those drawn in the milliseconds before a crash may be drawn again",
);
const ADVISORY_CLOCK: Guarantee = Guarantee::new(
    "the server's clock jumps",
    "tokens still rise; a session may end early, and its guards are told",
);
const ADVISORY_RESTORE: Guarantee = Guarantee::new(
    "the database is restored from a backup",
    "all locks end; tokens still rise, as far as the clock does not step back",
);
const ADVISORY_POOLER: Guarantee = Guarantee::new(
    "a pooler stands before the server",
    "it has to keep sessions: one that does not is found and refused, when the client connects or at the first answer of another backend",
);

pub(super) const ADVISORY: &[Guarantee] = &[
    ADVISORY_HOLDER,
    ADVISORY_WAITERS,
    ADVISORY_PAUSED,
    ADVISORY_NETWORK,
    ADVISORY_RESTART,
    ADVISORY_CLOCK,
    ADVISORY_RESTORE,
    ADVISORY_POOLER,
];
