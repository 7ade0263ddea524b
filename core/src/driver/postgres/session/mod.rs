//! Locks that live with a session of a PostgreSQL database. Whoever waits does so in the server's own queue, for a second at a
//! time, and the lock of a process that dies is free at once.
//!
//! The server ends a session that was silent for the length of the lease (`idle_session_timeout`,
//! `idle_in_transaction_session_timeout`), so that a session is a lease. Tokens are drawn from a sequence, which no rollback turns back.
//!
//! `connection` is a session, `store` opens and probes it, whatever it locks. What that is, a [`Way`](way::Way) says: `advisory` the
//! numbers of names, `row` rows.

mod advisory;
mod connection;
mod guarantees;
mod row;
mod row_sql;
mod store;
mod unclosed;
mod view;
mod way;

use self::advisory::Advisory;
use self::row::Rows;
use self::store::SessionLocks;

/// One client's view of the advisory locks in a PostgreSQL database. [`Sessions`](crate::Sessions) makes a store of locks of it.
pub type AdvisoryStore = SessionLocks<Advisory>;
/// The same of the rows of a table, which are locks while they are locked.
pub type RowStore = SessionLocks<Rows>;
