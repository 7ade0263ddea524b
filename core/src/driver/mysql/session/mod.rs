//! Locks that live with a session of a MySQL or MariaDB server. Whoever waits does so in the server's own queue, and the lock of a process
//! that dies is free at once.
//!
//! The server ends a session that was silent for the length of the lease (`wait_timeout`), so that a session is a lease. Tokens are drawn
//! from a sequence, which no rollback turns back; MySQL has none, so there they are the server's clock.
//!
//! `connection` is a session on a `line`, `store` opens it, whatever it locks. What that is, a [`Way`](way::Way) says: `named` the
//! server's named locks, `row` rows.

mod connection;
mod guarantees;
mod key;
mod line;
mod named;
mod row;
mod row_sql;
mod rows_sweep;
mod store;
mod tokens;
mod view;
mod way;

use self::named::Named;
use self::row::Rows;
use self::store::SessionLocks;

/// One client's view of the named locks (`GET_LOCK`) of a MySQL or MariaDB server. [`Sessions`](crate::Sessions) makes a store of locks of it.
pub type GetLockStore = SessionLocks<Named>;
/// The same of the rows of a table, which are locks while they are locked.
pub type RowStore = SessionLocks<Rows>;
