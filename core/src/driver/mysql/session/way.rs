//! The objects that a session locks, and the statements that lock them.

use std::future::Future;

use super::connection::Connection;
use super::tokens::Tokens;
use crate::driver::mysql::connection::Connection as Live;
use crate::driver::mysql::fault::Number;
use crate::driver::own_table::UNFIT;
use crate::driver::sql::fault::{Fault, Next};
use crate::driver::sql::known_tables::CHANGED;
use crate::driver::sql::tables::Tables;
use crate::error::{Code, Result};
use crate::fence::Token;
use crate::options::Options;
use crate::port::{Failure, Guarantee, LockKey, LockState, Mode};

/// The server's errors on the objects that the migration makes.
pub(super) const NUMBERS: &[Number] = &[
    (
        &[1146, 4091],
        Code::Unsupported,
        Next::Keep,
        "the database lacks what locks of a session need; connect once with `create=true`, or have its owner run what `fencelock sql schema --dialect mysql` prints, with the `--table` of the URL",
    ),
    (
        &[1142, 1143, 1370],
        Code::Auth,
        Next::Keep,
        "the user may not do this; grant it SELECT and INSERT on `fencelock_token`, and for locks by row SELECT, INSERT, UPDATE and DELETE on `fencelock_row` (or what begins with `table`)",
    ),
];

/// The server's errors on a user's own table.
const OWN: &[Number] = &[
    (
        &[1142, 1143],
        Code::Auth,
        Next::Keep,
        "the user may not do this; grant it SELECT and UPDATE on your table, SELECT and INSERT on the sequence `fencelock_token` (or what begins with `table`)",
    ),
    (&[1054, 1146, 1356], Code::Conflict, Next::Keep, CHANGED),
    (&[1267, 1271, 1292, 1366, 1367, 1525], Code::Invalid, Next::Keep, UNFIT),
];

/// The server's errors that mean something else for locks of a session than for locks in a table.
pub(super) fn numbers<W: Way>(way: &W) -> &'static [Number] {
    if way.on_own_table() { OWN } else { NUMBERS }
}

/// See the module.
pub trait Way: Sized + Send + Sync + 'static {
    /// The known place of the locks, kept for each connection.
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

    /// Why a lock cannot be held so, if it cannot.
    fn refusal(mode: Mode) -> Option<&'static str>;

    /// Looks at what there is on a new connection. What the migration makes may not be there: an error with that `number`.
    fn find(
        &self,
        live: &mut Live,
        tokens: Tokens,
    ) -> impl Future<Output = Result<Self::Found, Fault>> + Send;

    /// As [`Session::lock`](crate::port::Session::lock), but an interrupt may fail.
    fn lock(
        &self,
        session: &Connection<Self>,
        lock: &LockKey,
        wait: bool,
    ) -> impl Future<Output = Result<Option<Token>, Failure>> + Send;

    /// As [`Session::unlock`](crate::port::Session::unlock).
    fn unlock(
        &self,
        session: &Connection<Self>,
        lock: &LockKey,
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
