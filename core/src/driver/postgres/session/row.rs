//! Locks that are rows, each held by a transaction that locks the row. The row is one of fencelock's own, which is made when it is
//! missing, or one of a table of the user's own, whose key is the lock's name.
//!
//! Nothing is written there, so a transaction is rolled back in the end: that waits for no disk. A try skips a row that somebody has
//! locked (`SKIP LOCKED`): what `NOWAIT` refuses is an error in the server's log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::connection::Connection;
use super::guarantees;
use super::row_sql::{insert, look, names, sweep, take, wait};
use super::view;
use super::way::{Way, known};
use crate::driver::identifier::quoted;
use crate::driver::own_table::KeyedTable;
use crate::driver::postgres::connection::Connection as Live;
use crate::driver::postgres::dialect::BEGIN;
use crate::driver::postgres::own_table::{of_type, types};
use crate::driver::postgres::schema::MOST_BYTES;
use crate::driver::sql::fault::Fault;
use crate::driver::sql::statement::{Answer, Statement, column, name};
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
    take: Arc<str>,
    wait: Arc<str>,
    look: Arc<str>,
    rows: Origin,
    /// Whether a transaction is open.
    open: AtomicBool,
}

/// Where rows come from.
enum Origin {
    /// They are fencelock's own.
    Made { insert: Arc<str>, sweep: Arc<str>, names: Arc<str> },
    /// They are the user's; what is said of one that is not there.
    Found { no_row: Error },
}

impl Way for Rows {
    type Found = Statements;

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

    async fn prepare(&self, live: &Live) -> Result<Statements, Fault> {
        let (Tables { word, rows, tokens, .. }, known) = (&self.tables, known(self));
        let (table, is_it, origin) = if self.on_own_table() {
            // Without it no row is a lock.
            let needed = format!("SELECT {word}_leap(), nextval('{tokens}')");
            live.prepare(&[needed.into()], known).await?;
            let own = KeyedTable::parse(&self.on_table, MOST_BYTES).map_err(Fault::refused)?;
            let types = types(live, &own, &[own.key], known).await?;
            let is_it = format!("t.{} = {}", quoted('"', own.key), of_type("$1::text", &types[0]));
            (own.name('"'), is_it, Origin::Found { no_row: own.no_row() })
        } else {
            let [insert, sweep, names] = [insert(rows), sweep(rows), names(rows)].map(Into::into);
            (rows.clone(), "t.name = $1".to_owned(), Origin::Made { insert, sweep, names })
        };
        let [take, wait, look] = [
            take(tokens, &table, &is_it),
            wait(&self.tables, &table, &is_it),
            look(&table, &is_it),
        ]
        .map(Arc::<str>::from);
        let mut each = vec![take.clone(), wait.clone(), look.clone()];
        if let Origin::Made { insert, sweep, names } = &origin {
            each.extend([insert, sweep, names].map(Arc::clone));
        }
        live.prepare(&each, known).await?;
        Ok(Statements { take, wait, look, rows: origin, open: AtomicBool::new(false) })
    }

    async fn lock(
        &self,
        session: &Connection<Self>,
        lock: &LockKey,
        _: Mode,
        wait: bool,
    ) -> Result<Option<Token>, Failure> {
        let Statements { take, wait: waiting, rows, open, .. } = &session.found;
        let text = if wait { waiting } else { take };
        let named = |text| Statement::kept(text, [name(lock.as_str())]);
        loop {
            open.store(true, Ordering::Release);
            // Without a transaction the row would not stay locked.
            let row = session.ask(&[Statement::bare(BEGIN), named(text)]).await?;
            if let Some(token) = Connection::<Self>::token(&row)? {
                return Ok(Some(token));
            }
            roll_back(session).await?;
            let held = column::<bool>(&row, 2, "there").map_err(Failure::refused)?;
            match rows {
                _ if held && wait => {}
                _ if held => return Ok(None),
                Origin::Found { no_row } => return Err(Failure::refused(no_row.clone())),
                Origin::Made { insert, sweep, .. } => {
                    if session.send(&[named(insert)], false).await?.changed > 0 {
                        self.row_made(session, sweep).await;
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
        roll_back(session).await
    }

    async fn unlock_all(&self, session: &Connection<Self>) -> Result<(), Failure> {
        roll_back(session).await.map(drop)
    }

    async fn look(&self, session: &Connection<Self>, lock: &LockKey) -> Result<LockState, Failure> {
        view::look(session, &session.found.look, lock).await
    }

    async fn names(&self, session: &Connection<Self>, prefix: &str) -> Result<Vec<LockKey>> {
        let Origin::Made { names, .. } = &session.found.rows else {
            let message = "which rows of your table are locked would take a look at each; ask for a lock by its name";
            return Err(Error::new(Code::Unsupported, message));
        };
        let answer = session.send(&[Statement::kept(names, [name(prefix)])], false).await;
        let answer = answer.map_err(|failure| failure.error)?;
        answer.all().map(|row| column::<&str>(row, 0, "name").map(LockKey::new)).collect()
    }
}

impl Rows {
    /// A row was made. Sweeps, if it is time; if that fails, rows stay.
    async fn row_made(&self, session: &Connection<Self>, sweep: &Arc<str>) {
        let Some(from) = self.sweep.lock().row_made() else { return };
        let swept = session.send(&[Statement::kept(sweep, [name(from)])], false).await;
        let last = |answer: Answer| Some(column::<&str>(answer.row()?, 0, "last").ok()?.to_owned());
        self.sweep.lock().swept(swept.map(last).map_err(|failure| failure.error.code()));
    }
}

/// Ends the transaction, if one is open. Answers whether it was.
async fn roll_back(session: &Connection<Rows>) -> Result<bool, Failure> {
    let open = &session.found.open;
    let was_open = open.load(Ordering::Acquire);
    if was_open {
        session.send(&[Statement::bare("ROLLBACK")], true).await?;
        // Not before: what was interrupted is to be rolled back yet.
        open.store(false, Ordering::Release);
    }
    Ok(was_open)
}
