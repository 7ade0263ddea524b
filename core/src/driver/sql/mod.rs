//! The common parts of lock stores in a table of an SQL database: how a record lies in its row, when one statement will do, how a
//! transaction is repeated, what failures mean. The databases' own folders have the SQL and the connections.

pub(super) mod cell;
pub(super) mod fault;
pub(super) mod first_host;
pub(super) mod foreign;
pub(super) mod guarantees;
pub(super) mod host;
pub(super) mod idle;
pub(super) mod known;
pub(super) mod known_tables;
pub(super) mod place;
pub(super) mod plain;
pub(super) mod replace;
pub(super) mod room;
pub(super) mod row;
pub(super) mod session_guarantees;
pub(super) mod sweep;
pub(super) mod tables;
pub(super) mod transaction;

/// SQL's numbers have a sign. What they cannot hold is never reached.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
