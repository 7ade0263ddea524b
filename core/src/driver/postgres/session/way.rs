//! What a session locks, and by which statements.

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

/// What a failed statement means.
pub(super) type Judge<'a> = &'a (dyn Fn(tokio_postgres::Error) -> Error + Send + Sync);

/// See the module.
pub trait Way: Sized + Send + Sync + 'static {
    /// What is prepared on each connection.
    type Statements: Send + Sync + 'static;

    /// What a lock survives.
    const GUARANTEES: &'static [Guarantee];
    /// Whether a lock lives in a transaction of its session, which then has no other.
    const IN_TRANSACTION: bool;

    /// As these options want it, with these tables.
    fn new(options: &Options, tables: &Tables) -> Result<Self>;

    /// Whether what it locks lies in a table of the user's own: some of what the server says then means something else.
    fn on_own_table(&self) -> bool {
        false
    }

    /// What makes sure that tokens rise, before a session locks.
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

    /// Who has a lock and who waits for it.
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

/// What a failed statement means. `decides`: it may have been carried out though its answer was lost.
pub(super) fn judge<W: Way>(
    way: &W,
    address: &Address,
    error: &tokio_postgres::Error,
    decides: bool,
) -> Failure {
    let states = if way.on_own_table() { OWN_ROWS } else { &[] };
    judge_as(address, error, decides, states).failure
}
