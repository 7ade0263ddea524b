//! Locks that are rows, each held by a transaction that locks the row. The row is one of fencelock's own, which is made when it is
//! missing, or one of a table of the user's own, whose key is the lock's name.
//!
//! Nothing is written there, so a transaction is rolled back in the end: that waits for no disk. A try skips a row that somebody has
//! locked (`SKIP LOCKED`): what `NOWAIT` refuses is an error in the server's log.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join;
use tokio_postgres::{Client, Statement};

use super::connection::{Connection, Locking};
use super::guarantees;
use super::row_sql::{insert, look, names, sweep, take, wait};
use super::view;
use super::way::{Judge, Way};
use crate::driver::identifier::quoted;
use crate::driver::own_table::KeyedTable;
use crate::driver::postgres::row::column;
use crate::driver::postgres::schema::MOST_BYTES;
use crate::driver::postgres::shape::{self, of_type};
use crate::driver::postgres::statement::prepare;
use crate::driver::postgres::transaction::BEGIN;
use crate::driver::sql::fault::Fault;
use crate::driver::sql::sweep::Sweep;
use crate::driver::sql::tables::Tables;
use crate::error::{Code, Error, Result};
use crate::fence::Token;
use crate::options::Options;
use crate::port::{Failure, Guarantee, LockKey, LockState, Mode};
use crate::runtime::sync::Mutex;

/// See the module.
pub struct Rows {
    /// The user's own table as it was written; empty if there is none.
    on_table: String,
    tables: Tables,
    sweep: Mutex<Sweep>,
}

/// The statements for one table.
pub struct Statements {
    take: Statement,
    wait: Statement,
    look: Statement,
    rows: Origin,
    /// Whether a transaction is open.
    open: AtomicBool,
}

/// Where rows come from.
enum Origin {
    /// They are fencelock's own.
    Made { insert: Statement, sweep: Statement, names: Statement },
    /// They are the user's; what is said of one that is not there.
    Found { no_row: Error },
}

impl Way for Rows {
    type Statements = Statements;

    const GUARANTEES: &'static [Guarantee] = guarantees::ROWS;
    const IN_TRANSACTION: bool = true;

    fn new(options: &Options, tables: &Tables) -> Result<Self> {
        let on_table = options.on_table.clone();
        if !on_table.is_empty() {
            KeyedTable::parse(&on_table, MOST_BYTES)?;
        }
        Ok(Self { on_table, tables: tables.clone(), sweep: Mutex::default() })
    }

    fn on_own_table(&self) -> bool {
        !self.on_table.is_empty()
    }

    fn advance(&self) -> String {
        // A token that is drawn in a transaction may not have reached the disk when the server crashes.
        format!("SELECT {0}_leap(); SELECT {0}_advance()", self.tables.word)
    }

    fn refusal(mode: Mode) -> Option<&'static str> {
        match mode {
            Mode::Exclusive => None,
            Mode::Read | Mode::Write => Some(
                "rows that readers share let new readers pass a writer that waits; for readers and writers use `postgres+advisory://` or `postgres://`",
            ),
            Mode::Permit => Some("a row is locked once; for permits use `postgres://`"),
        }
    }

    async fn prepare(&self, client: &Client, judged: Judge<'_>) -> Result<Statements> {
        let Tables { word, rows, tokens, .. } = &self.tables;
        if !self.on_own_table() {
            let is_it = "t.name = $1";
            let texts = [
                take(tokens, rows, is_it),
                wait(&self.tables, rows, is_it),
                look(rows, is_it),
                insert(rows),
                sweep(rows),
                names(rows),
            ];
            let [take, wait, look, insert, sweep, names] =
                prepare(client, &texts).await.map_err(judged)?;
            let rows = Origin::Made { insert, sweep, names };
            return Ok(Statements { take, wait, look, rows, open: AtomicBool::new(false) });
        }
        // Without it no row is a lock.
        let needed = format!("SELECT {word}_leap(), nextval('{tokens}')");
        client.prepare(&needed).await.map_err(judged)?;
        let own = KeyedTable::parse(&self.on_table, MOST_BYTES)?;
        let fault = |error| Fault::refused(judged(error));
        let types = shape::types(client, &own, &[own.key], fault).await;
        let types = types.map_err(|fault| fault.failure.error)?;
        let (table, key) = (own.name('"'), quoted('"', own.key));
        let is_it = format!("t.{key} = {}", of_type("$1::text", &types[0]));
        let texts = [
            take(tokens, &table, &is_it),
            wait(&self.tables, &table, &is_it),
            look(&table, &is_it),
        ];
        let prepared = prepare(client, &texts).await;
        let [take, wait, look] = prepared.map_err(judged)?;
        let rows = Origin::Found { no_row: own.no_row() };
        Ok(Statements { take, wait, look, rows, open: AtomicBool::new(false) })
    }

    async fn lock(
        &self,
        session: &Connection<Self>,
        lock: &LockKey,
        _: Mode,
        wait: bool,
    ) -> Result<Option<Token>, Failure> {
        let live = session.live()?;
        let Statements { take, wait: waiting, rows, open, .. } = &live.statements.locking;
        let statement = if wait { waiting } else { take };
        loop {
            open.store(true, Ordering::Release);
            // One flight: what is polled first is sent first. Without a transaction the row would not stay locked.
            let (begun, row) = join(
                live.client.batch_execute(BEGIN),
                session.ask(&live, statement, &[&lock.as_str()]),
            )
            .await;
            begun.map_err(|error| session.judged(&error, true))?;
            let row = row?;
            if let Some(token) = Connection::<Self>::token(&row)? {
                return Ok(Some(token));
            }
            roll_back(session, &live).await?;
            let held = column::<bool>(&row, 2, "there").map_err(Failure::refused)?;
            match rows {
                _ if held && wait => {}
                _ if held => return Ok(None),
                Origin::Found { no_row } => return Err(Failure::refused(no_row.clone())),
                Origin::Made { insert, sweep, .. } => {
                    let made = live.client.execute(insert, &[&lock.as_str()]).await;
                    let made = made.map_err(|error| session.judged(&error, false))?;
                    if made > 0 {
                        self.row_made(session, &live, sweep).await;
                    }
                }
            }
        }
    }

    async fn unlock(
        &self,
        session: &Connection<Self>,
        _: &LockKey,
        _: Mode,
    ) -> Result<bool, Failure> {
        // Nothing but the end of its transaction takes the row from a session.
        roll_back(session, &*session.live()?).await
    }

    async fn unlock_all(&self, session: &Connection<Self>) -> Result<(), Failure> {
        roll_back(session, &*session.live()?).await.map(drop)
    }

    async fn look(&self, session: &Connection<Self>, lock: &LockKey) -> Result<LockState, Failure> {
        let live = session.live()?;
        view::look(session, &live, &live.statements.locking.look, lock).await
    }

    async fn names(&self, session: &Connection<Self>, prefix: &str) -> Result<Vec<LockKey>> {
        let live = session.live().map_err(|failure| failure.error)?;
        let Origin::Made { names, .. } = &live.statements.locking.rows else {
            let message = "which rows of your table are locked would take a look at each; ask for a lock by its name";
            return Err(Error::new(Code::Unsupported, message));
        };
        let rows = live.client.query(names, &[&prefix]).await;
        let rows = rows.map_err(|error| session.judged(&error, false).error)?;
        rows.iter().map(|row| column::<&str>(row, 0, "name").map(LockKey::new)).collect()
    }
}

impl Rows {
    /// A row was made. Sweeps, if it is time; if that fails, rows stay.
    async fn row_made(
        &self,
        session: &Connection<Self>,
        live: &Locking<Self>,
        statement: &Statement,
    ) {
        let Some(from) = self.sweep.lock().row_made() else { return };
        let swept = live.client.query_one(statement, &[&from]).await.map(|row| row.get(0));
        let swept = swept.map_err(|error| session.judged(&error, false).error.code());
        self.sweep.lock().swept(swept);
    }
}

/// Ends the transaction, if one is open. Answers whether it was.
async fn roll_back(session: &Connection<Rows>, live: &Locking<Rows>) -> Result<bool, Failure> {
    let open = &live.statements.locking.open;
    let was_open = open.load(Ordering::Acquire);
    if was_open {
        let rolled_back = live.client.batch_execute("ROLLBACK").await;
        rolled_back.map_err(|error| session.judged(&error, true))?;
        // Not before: what was interrupted is to be rolled back yet.
        open.store(false, Ordering::Release);
    }
    Ok(was_open)
}
