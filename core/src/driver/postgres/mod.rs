//! Locks in a table of a PostgreSQL database.
//!
//! `sql` has the store; here are the connection, the SQL and the notices. One connection is for what is one statement, many at once, and
//! hears notices (LISTEN); a few are for transactions. Correctness rests on the row's lock, not on an isolation level.

mod connection;
mod dialect;
mod fault;
mod guarantees;
mod notices;
mod schema;
mod session;

use self::dialect::Postgres;
pub use self::schema::{gate_trigger, schema};
#[doc(hidden)]
pub use self::session::{AdvisoryStore, RowStore};
use super::sql::store::SqlStore;

/// One client's view of the locks in a PostgreSQL database.
pub type PostgresStore = SqlStore<Postgres>;
