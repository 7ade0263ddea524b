//! The guarantees of a lock that lives with a session of a PostgreSQL database, in words.

use crate::driver::sql::session::guarantees::{
    HOLDER, LOADED, LONG_WAIT, NETWORK, PAUSED, RESTORE, WAITERS,
};
use crate::port::Guarantee;

const RESTART: Guarantee = Guarantee::new(
    "the server restarts, crashes or fails over",
    "all locks end and their guards are told; tokens still rise, but that those drawn in the milliseconds before a crash may be drawn again",
);
const CLOCK: Guarantee = Guarantee::new(
    "the server's clock jumps",
    "tokens still rise; a session may end early, and its guards are told",
);
const POOLER: Guarantee = Guarantee::new(
    "a pooler stands before the server",
    "it has to keep sessions: one that does not is found and refused, when the client connects or at the first answer of another backend",
);

const ROW_ORDER: Guarantee = Guarantee::new(
    "somebody asks just as a lock by row becomes free",
    "it may get the lock before those that wait",
);
const ROW_LONG: Guarantee = Guarantee::new(
    "a lock by row is held for long",
    "its transaction stays open: VACUUM keeps rows that were deleted since, in all tables of the database, and `CREATE INDEX CONCURRENTLY` waits for its end, also if the holder runs it",
);

pub(super) const ADVISORY: &[Guarantee] =
    &[HOLDER, WAITERS, PAUSED, NETWORK, RESTART, CLOCK, RESTORE, LOADED, POOLER, LONG_WAIT];
pub(super) const ROWS: &[Guarantee] = &[
    HOLDER, WAITERS, PAUSED, NETWORK, RESTART, CLOCK, RESTORE, LOADED, POOLER, LONG_WAIT,
    ROW_ORDER, ROW_LONG,
];
