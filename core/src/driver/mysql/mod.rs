//! Locks in a table of a MySQL or MariaDB database.
//!
//! `sql` has the store; here are the connection and the SQL. These servers notify nobody. A notice lies in the row, in `notices`,
//! until the one it is for has gone; a client that waits reads it there, again and again (`notices.rs`).

mod connection;
mod dialect;
mod fault;
mod guarantees;
mod line;
mod literal;
mod notices;
mod schema;
mod session;

use self::dialect::Mysql;
pub use self::schema::{gate_trigger, schema};
#[doc(hidden)]
pub use self::session::{GetLockStore, RowStore};
use super::sql::store::SqlStore;

/// One client's view of the locks in a MySQL or MariaDB database.
pub type MysqlStore = SqlStore<Mysql>;
