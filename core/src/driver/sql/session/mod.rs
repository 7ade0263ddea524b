//! Locks that live with a session of a database: one store for all kinds of databases, by a [`SessionDialect`]. The lock of a process that
//! dies is free at once.
//!
//! The server ends a session that was silent for the length of the lease, so that a session is a lease. Tokens are drawn from a sequence,
//! which no rollback turns back.
//!
//! `connection` is a session, `store` opens it, whatever it locks. What that is, a [`Way`] says: `named` the server's own locks of
//! names, `rows` rows.

mod connection;
pub(in crate::driver) mod guarantees;
mod named;
mod rows;
mod store;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

pub(in crate::driver) use self::connection::Connection;
pub(in crate::driver) use self::connection::INTERRUPT;
pub(in crate::driver) use self::named::Named;
pub(in crate::driver) use self::rows::{Place, Rows};
pub(in crate::driver) use self::store::SessionLocks;
use super::dialect::Tables;
use super::dialect::{AddressOf, Dialect};
use super::fault::Fault;
use super::host::Host;
use super::statement::{Answer, Statement, Value};
use crate::driver::own_table::KeyedTable;
use crate::error::{Error, Result};
use crate::fence::Token;
use crate::options::Options;
use crate::port::{EndSink, Failure, Guarantee, LockKey, LockState, Mode, RuntimeHandle};

/// The connection of a session. What is asked of it is carried out in the order in which it is asked first, also if nobody stays for it.
pub trait Wire: Send + Sync + 'static {
    fn ask(
        &self,
        statements: Vec<Statement>,
        decides: bool,
    ) -> impl Future<Output = Result<Answer, Fault>> + Send;

    /// Has the server interrupt what the session does.
    fn interrupt(&self) -> impl Future<Output = ()> + Send + 'static + use<Self>;

    /// Ends it. What is under way fails.
    fn cut(&self);

    /// Another session has answered in its place.
    fn is_another(&self) {}

    fn is_over(&self) -> bool;
}

/// The parts of sessions that differ from one kind of database to the other. In texts $1 is the name of the lock, and the first column of
/// each row the number of the session.
pub trait SessionDialect: Dialect {
    type Wire: Wire;
    /// Notices the end of a connection, from its beginning.
    type Watch: Send;

    /// Answers the number of the session, and no more.
    const BEAT: &'static str;
    /// Whether a statement that waits ends each second, with NULL, and is asked again; it then draws a token too.
    const WAITS_SHORTLY: bool;
    /// Begins a transaction for a row.
    const BEGIN_ROW: &'static str;
    /// The guarantees of locks of names and of rows.
    const GUARANTEES: [&'static [Guarantee]; 2];

    fn check(options: &Options) -> Result<()>;

    /// Why names, or rows, cannot be locked in this mode.
    fn refusal(mode: Mode, rows: bool) -> Option<&'static str>;

    /// The errors that have another meaning here, also on a user's own table.
    fn known(on_own_table: bool) -> &'static [Self::Known];

    /// A connection that the server ends when it was silent for the ttl.
    fn open<W: Way<Self>>(
        store: &SessionLocks<Self, W>,
        ttl: Duration,
        ended: &EndSink,
    ) -> impl Future<Output = Result<(Self::Connection, Host, Self::Watch)>> + Send;

    fn wire(
        connection: Self::Connection,
        number: i64,
        place: (Arc<AddressOf<Self>>, Host),
        watch: Self::Watch,
        known: &'static [Self::Known],
        runtime: RuntimeHandle,
        ended: EndSink,
    ) -> Self::Wire;

    /// Makes what the migration makes.
    fn create(
        connection: &mut Self::Connection,
        tables: &Tables,
    ) -> impl Future<Output = Result<(), Fault>> + Send;

    /// The error, if it says that something of the migration is not there.
    fn missing(error: &Error) -> Option<Error>;

    /// Says that a connection has no session of its own.
    fn pooled() -> Error;

    /// Whether a statement was interrupted, and whether it waited as long as the server lets it.
    fn was_interrupted(error: &Error) -> bool;
    fn was_too_short(error: &Error) -> bool;

    /// A new token, in SQL.
    fn token(connection: &Self::Connection, tables: &Tables) -> String;

    /// Makes sure that tokens rise.
    fn advance(
        connection: &mut Self::Connection,
        tables: &Tables,
        rows: bool,
    ) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Makes sure that these statements can be carried out. With `rows`, on that table.
    fn prepare(
        connection: &mut Self::Connection,
        texts: &[Arc<str>],
        rows: Option<&Place>,
        known: &'static [Self::Known],
    ) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Takes a lock that nobody has and answers a token, or 0; waits for it; gives it back. For readers, if `shared`.
    fn named(tables: &Tables, token: &str, shared: bool) -> [String; 3];

    /// Gives all back that a session has.
    const FREE_ALL: &'static str;

    /// The holders of a name and those who wait for it with this statement.
    fn look_named(tables: &Tables, wait: &str, lock: &LockKey) -> Vec<Statement>;

    /// Where the rows of a user's own table lie, or of fencelock's own.
    fn place(
        connection: &mut Self::Connection,
        tables: &Tables,
        own: Option<&KeyedTable<'_>>,
        known: &'static [Self::Known],
    ) -> impl Future<Output = Result<Place, Fault>> + Send;

    /// Locks a row and draws a token; one that somebody has is left out, or waited for.
    fn lock_row(place: &Place, tables: &Tables, token: &str) -> [String; 2];

    /// Gives the row back that a session has, and ends its transaction.
    fn roll_back() -> Vec<Statement>;

    /// The holder of a row and those who wait for it with this statement.
    fn look_row(place: &Place, wait: &str, name: Value) -> Vec<Statement>;

    /// The names that begin with $1 of fencelock's own rows that are locked.
    fn locked_names(place: &Place) -> String;

    /// The condition that a row was made so many seconds ago.
    fn is_old(seconds: u64) -> String;

    /// The state of a lock, from the answer to such a look.
    fn state(answer: &Answer) -> Result<LockState>;
}

/// The objects that a session locks, and the statements that lock them.
pub trait Way<D: SessionDialect>: Sized + Send + Sync + 'static {
    /// The statements, kept for each connection.
    type Found: Send + Sync + 'static;

    /// Whether these are rows: a lock then lives in a transaction of its session, which has no other.
    const ROWS: bool;

    /// As these options want it, with these tables.
    fn new(options: &Options, tables: &Tables) -> Result<Self>;

    /// Whether what it locks lies in a table of the user's own: some of what the server says then means something else.
    fn on_own_table(&self) -> bool {
        false
    }

    /// Looks at what there is on a new connection.
    fn find(
        &self,
        connection: &mut D::Connection,
    ) -> impl Future<Output = Result<Self::Found, Fault>> + Send;

    /// As [`Session::lock`](crate::port::Session::lock), but an interrupt may fail.
    fn lock(
        &self,
        session: &Connection<D, Self>,
        lock: &LockKey,
        mode: Mode,
        wait: bool,
    ) -> impl Future<Output = Result<Option<Token>, Failure>> + Send;

    /// As [`Session::unlock`](crate::port::Session::unlock).
    fn unlock(
        &self,
        session: &Connection<D, Self>,
        lock: &LockKey,
        mode: Mode,
    ) -> impl Future<Output = Result<bool, Failure>> + Send;

    /// Gives all back that a session has.
    fn unlock_all(
        &self,
        session: &Connection<D, Self>,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// The statements that show the holders of a lock and those who wait for it.
    fn look(&self, session: &Connection<D, Self>, lock: &LockKey) -> Vec<Statement>;

    /// The names that begin so and are held.
    fn names(
        &self,
        session: &Connection<D, Self>,
        prefix: &str,
    ) -> impl Future<Output = Result<Vec<LockKey>>> + Send;
}
