//! The guarantees of a lock in a PostgreSQL table, then of one that lives with a session, in words.

use crate::driver::sql::guarantees as table;
use crate::driver::sql::session::guarantees as session;
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
    "it keeps all promises; where it hands each transaction to another session, a waiter looks for its turn: 5 to 50 ms apart when it is next, a second at most",
);

/// The rows of a table on a server that restarts like this.
macro_rules! table {
    ($restart:ident) => {
        &[
            table::HOLDER,
            table::WAITERS,
            Guarantee::PAUSED,
            table::NETWORK,
            $restart,
            table::FAILOVER,
            table::FORWARD,
            table::BACK,
            table::DELETED,
            POOLER,
        ]
    };
}
pub(super) const DURABLE: &[Guarantee] = table!(RESTART);
pub(super) const RELAXED: &[Guarantee] = table!(RELAXED_RESTART);

const SESSION_RESTART: Guarantee = Guarantee::new(
    "the server restarts, crashes or fails over",
    "all locks end and their guards are told; tokens still rise, but that those drawn in the milliseconds before a crash may be drawn again",
);
const CLOCK: Guarantee = Guarantee::new(
    "the server's clock jumps",
    "tokens still rise; a session may end early, and its guards are told",
);
const SESSION_POOLER: Guarantee = Guarantee::new(
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

/// The rows of a session, and more.
macro_rules! session {
    ($($more:ident),*) => {
        &[
            session::HOLDER, session::WAITERS, session::PAUSED, session::NETWORK, SESSION_RESTART, CLOCK, session::RESTORE,
            session::LOADED, SESSION_POOLER, session::LONG_WAIT, $($more),*
        ]
    };
}
pub(super) const ADVISORY: &[Guarantee] = session!();
pub(super) const ROWS: &[Guarantee] = session!(ROW_ORDER, ROW_LONG);
