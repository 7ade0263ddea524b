//! Locks in a table of a PostgreSQL database.
//!
//! The row of a lock is its record. A plain case (a Take of a mutex nobody holds or waits for, its Free, its Renew) is one statement. All
//! else is a transaction of two flights: the first locks the row and reads it, and the server's clock after that; the model runs in the
//! client; the second writes the row, tells whoever is told with NOTIFY, and commits. A row stays for good, so that tokens rise.
//!
//! Correctness rests on the row's lock, not on an isolation level. `link` has one connection for what is one statement and hears notices
//! there, and a few for transactions. `statement` has the SQL, `row` says how a record lies in the table.

mod address;
mod cell;
mod fault;
mod foreign;
mod gate;
mod guarantees;
mod link;
mod live;
mod lock_in;
mod own_table;
mod plain;
mod pooler;
mod row;
mod schema;
mod session;
mod setup;
mod shape;
mod statement;
mod store;
mod sweep;
mod transaction;
mod value;

pub use self::gate::gate_trigger;
pub use self::lock_in::lock_in;
pub use self::schema::schema;
pub use self::session::{AdvisoryStore, RowStore};
pub use self::store::PostgresStore;
