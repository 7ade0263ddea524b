//! The parts of a store that differ from one kind of database to the other: connections, texts, and how a client is notified.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::address::{Address, Rules};
use super::fault::Fault;
use super::link::Link;
use super::model::Outbox;
use super::statement::{Answer, Row, Statement, Value};
use crate::driver::identifier::quoted;
use crate::driver::own_table::OwnTable;
use crate::driver::record::Record;
use crate::error::Result;
use crate::options::{Options, check_table};
use crate::port::{Guarantee, LockKey, OwnerId, RuntimeHandle};

/// A connection on which one transaction runs at a time.
pub trait Connection: Sized + Send + Sync + 'static {
    /// The meaning of an error that the server reports.
    type Known: Sync + 'static;

    /// Sends statements, and reads all answers. `decides`: they may have been carried out though the answer was lost. `known` are errors
    /// that have another meaning here. After a failure the first error counts.
    fn ask_of(
        &mut self,
        statements: &[Statement],
        decides: bool,
        known: &'static [Self::Known],
    ) -> impl Future<Output = Result<Answer, Fault>> + Send;

    /// The same where errors mean what they always do.
    fn ask(
        &mut self,
        statements: &[Statement],
        decides: bool,
    ) -> impl Future<Output = Result<Answer, Fault>> + Send {
        self.ask_of(statements, decides, &[])
    }

    /// Begins a transaction, commits it, and rolls it back.
    fn transaction(&self) -> [Vec<Statement>; 3];

    /// Whether it is still there, after it lay idle for so long.
    fn is_sound(
        &mut self,
        idle: Duration,
        runtime: &RuntimeHandle,
    ) -> impl Future<Output = bool> + Send;
}

/// One kind of database. In texts of fixed statements `$1` is the name of the row, or the list of names.
pub trait Dialect: Sized + Send + Sync + 'static {
    type Connection: Connection<Known = Self::Known>;
    type Known: Sync + 'static;
    /// How a server proves who it is.
    type Tls: Clone + Send + Sync + 'static;

    const NAME: &'static str;
    const RULES: &'static Rules;
    /// Between two of these stands a name.
    const MARK: char;
    /// The most bytes of a name.
    const MOST_BYTES: usize;
    /// The most connections for [`Link::pooled`] at once.
    const MOST_POOLED: usize;
    /// The server's clock in µs, in SQL.
    const CLOCK: &'static str;
    /// The column with the end of a lease, and the clock in its type.
    const ENDS: (&'static str, &'static str);
    /// The conditions that `name` is one of `$1`, and that it begins with it.
    const AMONG: &'static str;
    const BEGINS: &'static str;
    /// Columns that are read behind those of a record, and what is set behind those when it is written and when it is freed.
    const BESIDE: [&'static str; 3];
    /// Whether `UPDATE ... RETURNING` is there.
    const RETURNS: bool;
    /// The errors on a user's own table, and on another library's; there an empty text says that the table cannot be used.
    const OF_OWN_TABLE: &'static [Self::Known];
    const OF_FOREIGN: &'static [Self::Known];

    /// As the options want it, before anything is connected.
    fn new(options: &Options) -> Result<Self>;

    fn tls(options: &Options) -> Result<Self::Tls>;

    fn guarantees(&self) -> &'static [Guarantee];

    fn warning(&self) -> Option<&'static str> {
        None
    }

    /// Makes sure that the server and its tables serve, or says why not.
    fn begin(link: &Link<Self>) -> impl Future<Output = Result<()>> + Send;

    /// A new connection to the first server that takes writes.
    fn connect(link: &Link<Self>) -> impl Future<Output = Result<Self::Connection>> + Send;

    /// The server takes no more connections: lets go of those beside the pool. Clients that keep one while they ask for another would wait for each
    /// other.
    fn make_room(_: &Link<Self>) {}

    /// Sends statements that count by themselves. They are sent together.
    fn ask_of(
        link: &Link<Self>,
        statements: Vec<Statement>,
        decides: bool,
        known: &'static [Self::Known],
    ) -> impl Future<Output = Result<Answer, Fault>> + Send;

    /// Behind an INSERT: a row that is there stays as it is.
    fn unless_there(table: &str, key: &str) -> String;

    /// Reads rows as they are; after that the clock.
    fn look(columns: &str, table: &str, which: &str) -> Vec<String>;

    /// Behind [`lock`](Self::lock), so that it fails where a row is locked. Empty where many transactions in line for a row cost the server little.
    const AT_ONCE: &'static str;

    /// Locks rows and reads them; after that the clock, behind each.
    fn lock(columns: &str, table: &str, which: &str) -> String;

    /// Takes a mutex that has no row yet. $1 name, $2 owner id, $3 who asks, $4 lease, $5 how many tokens behind the first.
    fn make(tables: &Tables) -> String;

    /// Takes a mutex that nobody holds, waits for or has left a mark at; otherwise changes nothing. $1 to $5 as above, $6 the highest token
    /// that is known of it. As `Record::take` does it, but that the clock is read several times, and the counter is remembered a little
    /// longer.
    fn take(tables: &Tables) -> String;

    /// Renews holds of mutexes, and answers names, tokens and what is left. What waits there does not matter: the lock is held. As
    /// `Record::renew`.
    fn renew(tables: &Tables, holds: &[Renewing<'_>]) -> Vec<Statement>;

    /// Deletes some cells that have ended.
    fn sweep_cells(cells: &str) -> String;

    /// Begins to receive notices.
    fn listen(link: &Link<Self>) -> impl Future<Output = Result<()>> + Send;

    /// Takes the notices out of rows that were locked and read.
    fn receive(_: &Link<Self>, _: &[LockKey], _: &[Row]) {}

    /// Sends the notices of a change, whose records are `different`. Answers what is set beside each record that is written, and the statements that send.
    fn notify(
        link: &Link<Self>,
        rows: &[Row],
        different: &[(&LockKey, &Record)],
        notices: &Outbox,
    ) -> (Vec<Option<Value>>, Vec<Statement>);

    /// Reads the rows of locks where one of ours [waits](super::waits), and tells this client whose turn it is.
    fn look_for_turns(link: &Link<Self>) -> impl Future<Output = ()> + Send;

    /// Lets go of what it has beside the pool.
    fn close(&self) {}

    /// Looks at a user's own table.
    fn own_table(
        connection: &mut Self::Connection,
        own: &OwnTable<'_>,
    ) -> impl Future<Output = Result<Layout, Fault>> + Send;

    /// The columns `until` and `since` in µs, `by` as text, and whether the time has a zone, which is of no use.
    fn foreign_columns(until: &str, since: &str, by: &str) -> String;

    /// A value as one of this type, for a comparison.
    fn foreign_key(value: &str, kind: &str) -> String;

    /// A moment in µs as a time there; the time of a lock that nobody has ever held; and this moment, cut to milliseconds, as a column of
    /// such would round it up.
    fn foreign_times(micros: &str) -> [String; 3];

    /// The statements on such tables, with those that have to stand around them.
    fn around_foreign(statements: Vec<Statement>, locks: bool) -> Vec<Statement>;
}

/// A Renew of a mutex.
pub struct Renewing<'a> {
    pub(in crate::driver) name: &'a str,
    pub(in crate::driver) owner: OwnerId,
    pub(in crate::driver) ttl: i64,
}

/// The statements for one table, and how its value column holds a value. $1 is the name.
pub struct Layout {
    /// Whether the row is there, its version and its value; after that the clock.
    pub(in crate::driver) look: Vec<String>,
    /// Its version, and the clock. It waits for whoever has the row locked.
    pub(in crate::driver) lock: String,
    /// $2 value, $3 version.
    pub(in crate::driver) replace: String,
    pub(in crate::driver) kind: Kind,
}

/// How a column holds a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::driver) enum Kind {
    /// The database tells it as JSON, and takes JSON.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code))]
    Json,
    #[cfg_attr(not(feature = "mysql"), allow(dead_code))]
    Number,
    /// Its text is JSON.
    #[cfg_attr(not(feature = "mysql"), allow(dead_code))]
    Document,
    /// Its text is a text.
    #[cfg_attr(not(feature = "mysql"), allow(dead_code))]
    Text,
}

/// The texts of the fixed statements.
pub(in crate::driver) struct Texts {
    pub(in crate::driver) make: Arc<str>,
    pub(in crate::driver) take: Arc<str>,
    pub(in crate::driver) free: Arc<str>,
    pub(in crate::driver) look: Vec<Arc<str>>,
    pub(in crate::driver) names: Arc<str>,
    pub(in crate::driver) sweep_look: Arc<str>,
    pub(in crate::driver) sweep: Arc<str>,
    pub(in crate::driver) lock: Arc<str>,
    /// The same, but it fails where a row is locked.
    pub(in crate::driver) lock_at_once: Arc<str>,
    pub(in crate::driver) insert: Arc<str>,
    pub(in crate::driver) store: Arc<str>,
    pub(in crate::driver) cell_look: Vec<Arc<str>>,
    pub(in crate::driver) cell_lock: Arc<str>,
    pub(in crate::driver) cell_insert: Arc<str>,
    pub(in crate::driver) cell_store: Arc<str>,
    pub(in crate::driver) cell_sweep: Arc<str>,
}

impl Texts {
    pub(in crate::driver) fn of<D: Dialect>(tables: &Tables) -> Self {
        use super::sweep::{KEPT, PART};
        let Tables { table, cells, .. } = tables;
        let ((ends, now), [beside, written, freed]) = (D::ENDS, D::BESIDE);
        let (clock, among, begins, kept) = (D::CLOCK, D::AMONG, D::BEGINS, KEPT.as_micros());
        let columns = format!(
            "name, kind, owner, holder, token, granted_at, {ends}, last_token, counter_until, longest_lease, rest{beside}"
        );
        let cell = "value, since, trail, forget_after";
        let unused = format!("owner IS NULL AND rest IS NULL AND counter_until < {clock} - {kept}");
        let text = |text: String| Arc::<str>::from(text);
        let texts = |texts: Vec<String>| texts.into_iter().map(text).collect();
        let insert = |table: &str| {
            text(format!(
                "INSERT INTO {table} (name) VALUES ($1) {}",
                D::unless_there(table, "name")
            ))
        };
        let lock = D::lock(&columns, table, &format!("{among} ORDER BY name"));
        Self {
            make: text(D::make(tables)),
            take: text(D::take(tables)),
            // Ends the hold of a mutex nobody waits for; otherwise changes nothing.
            free: text(format!(
                "UPDATE {table} SET version = version + 1, owner = NULL, holder = NULL, token = NULL, granted_at = NULL, {ends} = NULL{freed}
                 WHERE name = $1 AND owner = $2 AND rest IS NULL AND {ends} > {now}"
            )),
            look: texts(D::look(&columns, table, among)),
            names: text(format!(
                "SELECT name FROM {table} WHERE name >= $1 AND {begins}
                     AND (owner IS NOT NULL OR rest IS NOT NULL OR counter_until > {clock}) ORDER BY name"
            )),
            sweep_look: text(format!(
                "SELECT name, CASE WHEN {unused} THEN 1 ELSE 0 END FROM {table} WHERE name > $1 ORDER BY name LIMIT {PART}"
            )),
            sweep: text(format!("DELETE FROM {table} WHERE {among} AND {unused}")),
            // Always in the same order.
            lock: text(lock.clone()),
            lock_at_once: text(lock + D::AT_ONCE),
            insert: insert(table),
            store: text(format!(
                "UPDATE {table} SET version = version + 1, kind = $2, holder = $3, token = $4, {ends} = $5, waiting = $6, owner = $7,
                     granted_at = $8, last_token = $9, counter_until = $10, longest_lease = $11, rest = $12{written} WHERE name = $1"
            )),
            cell_look: texts(D::look(cell, cells, "name = $1")),
            cell_lock: text(D::lock(cell, cells, "name = $1")),
            cell_insert: insert(cells),
            cell_store: text(format!(
                "UPDATE {cells} SET value = $2, since = $3, trail = $4, forget_after = $5 WHERE name = $1"
            )),
            cell_sweep: text(D::sweep_cells(cells)),
        }
    }
}

/// Kept statements with the same values.
pub(in crate::driver) fn each(texts: &[Arc<str>], values: &[Value]) -> Vec<Statement> {
    texts.iter().map(|text| Statement::kept(text, values)).collect()
}

/// The address of a dialect's servers.
pub(in crate::driver) type AddressOf<D> = Address<<D as Dialect>::Tls>;

/// The names of fencelock's own tables: the option `table`, and names that begin with it. They stand in statements as they are.
#[derive(Clone, Debug)]
pub struct Tables {
    /// The beginning of all names.
    pub(in crate::driver) word: String,
    /// The table of locks. Its name alone may be a word of SQL's, so it is quoted.
    pub(in crate::driver) table: String,
    pub(in crate::driver) cells: String,
    /// Rows that are locked themselves.
    pub(in crate::driver) rows: String,
    /// The sequence of fencing tokens of locks that live with a session or a transaction.
    pub(in crate::driver) tokens: String,
}

impl Tables {
    /// As the option `table` says. Names are quoted by this mark on this database.
    pub(in crate::driver) fn new(word: &str, mark: char) -> Result<Self> {
        check_table("table", word)?;
        let behind = |end: &str| format!("{word}_{end}");
        Ok(Self {
            word: word.to_owned(),
            table: quoted(mark, word),
            cells: behind("cell"),
            rows: behind("row"),
            tokens: behind("token"),
        })
    }
}
