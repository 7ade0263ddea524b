//! Lock stores in a table of an SQL database: one store for all kinds of databases, by a [`Dialect`](dialect::Dialect).
//!
//! The row of a lock is its record (`records`, `row`). A plain case (a Take of a mutex nobody holds or waits for, its Free, its Renew) is one
//! statement (`plain`). All else is a transaction of two flights: the first locks the row and reads it, and the server's clock after that;
//! the model runs in the client; the second writes the row, tells whoever is told, and commits. A row stays for a week, so that tokens rise.
//! `cell` has versions, `own_table` those in a table of the user's own, `foreign` the locks of other libraries.

pub(super) mod address;
pub(super) mod cell;
pub(super) mod dialect;
pub(super) mod fault;
pub(super) mod foreign;
mod foreign_rows;
pub(super) mod guarantees;
pub(super) mod host;
pub(super) mod known;
pub(super) mod link;
pub(super) mod model;
pub(super) mod own_table;
pub(super) mod plain;
pub(super) mod pool;
pub(super) mod records;
pub(super) mod session;
pub(super) mod statement;
pub(super) mod store;
pub(super) mod sweep;
mod transaction;
pub(super) mod waits;

pub(super) use super::columns::signed;
pub(super) use super::record_row as row;
