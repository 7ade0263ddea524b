//! The objects that a session locks, and the statements that lock them.

use std::future::Future;

use super::connection::Connection;
use crate::driver::postgres::connection::Connection as Live;
use crate::driver::postgres::fault::{OWN_ROWS, State};
use crate::driver::sql::fault::Fault;
use crate::driver::sql::tables::Tables;
use crate::error::Result;
use crate::fence::Token;
use crate::options::Options;
use crate::port::{Failure, Guarantee, LockKey, LockState, Mode};

/// See the module.
pub trait Way: Sized + Send + Sync + 'static {
    /// The statements, kept for each connection.
    type Found: Send + Sync + 'static;

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
    fn prepare(&self, live: &Live) -> impl Future<Output = Result<Self::Found, Fault>> + Send;

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

/// The errors of the server that have another meaning here.
pub(super) fn known<W: Way>(way: &W) -> &'static [State] {
    if way.on_own_table() { OWN_ROWS } else { &[] }
}
