//! Locks in a table of a MySQL or MariaDB database.
//!
//! The row of a lock is its record, as on PostgreSQL. A plain case (a Take of a mutex nobody holds or waits for, its Free, its Renew) is one
//! statement. All else is a transaction of two flights: the first locks the row and reads it, and the server's clock after that; the
//! model runs in the client; the second writes the row and commits. A row stays for good, so that tokens rise.
//!
//! These servers tell nobody anything. What is told lies in the row, in `told`, until the one it is for has gone; a client that waits
//! reads it there, again and again (`polling`). Correctness rests on the row's lock. `link` has the connections, `statement`
//! the SQL.

mod address;
mod cell;
mod fault;
mod finishing;
mod foreign;
mod gate;
mod guarantees;
mod heard;
mod link;
mod literal;
mod live;
mod own_table;
mod plain;
mod polling;
mod row;
mod schema;
mod session;
mod shape;
mod statement;
mod store;
mod tls;
mod told;
mod transaction;
mod version;

pub use self::gate::gate_trigger;
pub use self::schema::schema;
pub use self::session::{GetLockStore, RowStore};
pub use self::store::MysqlStore;
