//! The objects that a session locks, and the statements that lock them.

use std::future::Future;

use tokio_postgres::Client;

use super::connection::Connection;
use crate::driver::postgres::address::Address;
use crate::driver::postgres::fault::{OWN_ROWS, judge_as};
use crate::driver::sql::tables::Tables;
use crate::error::{Error, Result};
use crate::fence::Token;
use crate::options::Options;
use crate::port::{Failure, Guarantee, LockKey, LockState, Mode};

/// A function that makes fencelock's error of a failed statement.
pub(super) type Judge<'a> = &'a (dyn Fn(tokio_postgres::Error) -> Error + Send + Sync);

/// See the module.
pub trait Way: Sized + Send + Sync + 'static {
    /// The statements prepared on each connection.
    type Statements: Send + Sync + 'static;

    /// The guarantees of a lock, in words.
    const GUARANTEES: &'static [Guarantee];
    /// Whether a lock lives in a transaction of its session, which then has no other.
    const IN_TRANSACTION: bool;

    /// As these options want it, with these tables.
    fn new(options: &Options, tables: &Tables) -> Result<Self>;

    /// Whether what it locks lies in a table of the user's own: some of what the server says then means something else.
    fn on_own_table(&self) -> bool {
        false
    }

    /// The SQL that makes sure that tokens rise, run before a session locks.
    fn advance(&self) -> String;

    /// Why a lock cannot be held so, if it cannot.
    fn refusal(mode: Mode) -> Option<&'static str>;

    /// Prepares a connection. What the migration makes may not be there: an error with that `sqlstate`.
    fn prepare(
        &self,
        client: &Client,
        judged: Judge<'_>,
    ) -> impl Future<Output = Result<Self::Statements>> + Send;

    /// As [`Session::lock`](crate::port::Session::lock), but an interrupt fails.
    fn lock(
        &self,
        session: &Connection<Self>,
        lock: &LockKey,
        mode: Mode,
        wait: bool,
    ) -> impl Future<Output = Result<Option<Token>, Failure>> + Send;

    /// As [`Session::unlock`](crate::port::Session::unlock).
    fn unlock(
        &self,
        session: &Connection<Self>,
        lock: &LockKey,
        mode: Mode,
    ) -> impl Future<Output = Result<bool, Failure>> + Send;

    /// Gives all back that a session has.
    fn unlock_all(
        &self,
        session: &Connection<Self>,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// The holders of a lock and those who wait for it.
    fn look(
        &self,
        session: &Connection<Self>,
        lock: &LockKey,
    ) -> impl Future<Output = Result<LockState, Failure>> + Send;

    /// The names that begin so and are held.
    fn names(
        &self,
        session: &Connection<Self>,
        prefix: &str,
    ) -> impl Future<Output = Result<Vec<LockKey>>> + Send;
}

/// The failure that an error of a statement amounts to. `decides`: it may have been carried out though its answer was lost.
pub(super) fn judge<W: Way>(
    way: &W,
    address: &Address,
    error: &tokio_postgres::Error,
    decides: bool,
) -> Failure {
    let states = if way.on_own_table() { OWN_ROWS } else { &[] };
    judge_as(address, error, decides, states).failure
}
