//! What a lock in a PostgreSQL table survives, in words.

use crate::driver::sql::guarantees::{
    BACK, DELETED, FAILOVER, FORWARD, HOLDER, NETWORK, PAUSED, WAITERS,
};
use crate::driver::sql::session_guarantees as sessions;
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

const SESSION_RESTART: Guarantee = Guarantee::new(
    "the server restarts, crashes or fails over",
    "all locks end and their guards are told; tokens still rise, but that those drawn in the milliseconds before a crash may be drawn again",
);
const SESSION_CLOCK: Guarantee = Guarantee::new(
    "the server's clock jumps",
    "tokens still rise; a session may end early, and its guards are told",
);
const SESSION_POOLER: Guarantee = Guarantee::new(
    "a pooler stands before the server",
    "it has to keep sessions: one that does not is found and refused, when the client connects or at the first answer of another backend",
);

const ROW_ORDER: Guarantee = Guarantee::new(
    "somebody asks just as a lock by row becomes free",
    "it may get the lock before those that wait; they keep their order among themselves",
);
const ROW_LONG: Guarantee = Guarantee::new(
    "a lock by row is held for long",
    "its transaction stays open: VACUUM keeps rows that were deleted since, in all tables of the database",
);

pub(super) const ADVISORY: &[Guarantee] = &[
    sessions::HOLDER,
    sessions::WAITERS,
    sessions::PAUSED,
    sessions::NETWORK,
    SESSION_RESTART,
    SESSION_CLOCK,
    sessions::RESTORE,
    SESSION_POOLER,
];
pub(super) const ROWS: &[Guarantee] = &[
    sessions::HOLDER,
    sessions::WAITERS,
    sessions::PAUSED,
    sessions::NETWORK,
    SESSION_RESTART,
    SESSION_CLOCK,
    sessions::RESTORE,
    SESSION_POOLER,
    ROW_ORDER,
    ROW_LONG,
];
