//! Locks that are rows, each held by a transaction that locks the row. The row is one of fencelock's own, which is made when it is
//! missing, or one of a table of the user's own, whose key is the lock's name.
//!
//! Nothing is written there, so a transaction is rolled back in the end: that waits for no disk. A try leaves a row out that somebody has
//! locked (`SKIP LOCKED`). Which rows are locked, these servers tell administrators only; so whoever has one takes a named lock too, its
//! mark, by which others see who it is. Nothing else rests on that.

use std::sync::atomic::{AtomicBool, Ordering};

use super::connection::Connection;
use super::guarantees;
use super::row_sql::{Place, ROLL_BACK, setup};
use super::rows_sweep::sweep;
use super::tokens::Tokens;
use super::view;
use super::way::{Way, numbers};
use crate::driver::mysql::connection::Connection as Live;
use crate::driver::mysql::fault::number;
use crate::driver::mysql::own_table::columns;
use crate::driver::mysql::schema::MOST_BYTES;
use crate::driver::own_table::KeyedTable;
use crate::driver::sql::dialect::Connection as _;
use crate::driver::sql::fault::{Fault, Next};
use crate::driver::sql::statement::{Statement, column};
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

/// Where the rows lie, and whether one is locked.
pub struct Found {
    place: Place,
    /// The error for a row that does not exist; `None`: the row is made.
    no_row: Option<Error>,
    /// Whether a transaction is open.
    open: AtomicBool,
}

impl Way for Rows {
    type Found = Found;

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

    fn refusal(mode: Mode) -> Option<&'static str> {
        match mode {
            Mode::Exclusive => None,
            Mode::Read | Mode::Write => Some(
                "rows that readers share let new readers pass a writer that waits; for readers and writers use `mysql://`",
            ),
            Mode::Permit => Some("a row is locked once; for permits use `mysql://`"),
        }
    }

    async fn find(&self, live: &mut Live, tokens: Tokens) -> Result<Found, Fault> {
        if !live.version.skips_locked() {
            let message = "the server is too old for locks by row: MySQL 8.0 or MariaDB 10.6, or a newer one, is needed";
            return Err(Fault::refused(Error::new(Code::Unsupported, message)));
        }
        let (known, open) = (numbers(self), AtomicBool::new(false));
        live.ask_of(&[Statement::bare(setup())], false, known).await?;
        if !self.on_own_table() {
            let looked = format!("SELECT name FROM {} LIMIT 0", self.tables.rows);
            live.ask_of(&[Statement::bare(looked)], false, known).await?;
            let place = Place::new(&self.tables, tokens);
            return Ok(Found { place, no_row: None, open });
        }
        let own = KeyedTable::parse(&self.on_table, MOST_BYTES).map_err(Fault::refused)?;
        let found = columns(live, &own, &[own.key], known).await?;
        if found.iter().any(|key| !key.is_unique) {
            return Err(Fault::refused(own.not_unique()));
        }
        let place = Place::own(&own, tokens);
        Ok(Found { place, no_row: Some(own.no_row()), open })
    }

    async fn lock(
        &self,
        session: &Connection<Self>,
        lock: &LockKey,
        wait: bool,
    ) -> Result<Option<Token>, Failure> {
        let Found { place, no_row, open } = &session.found;
        loop {
            open.store(true, Ordering::Release);
            let answered = match session.ask(Statement::bare(place.wish(lock, wait))).await {
                Err(failure) if wait && is_too_short(&failure) => {
                    roll_back(session).await?;
                    continue;
                }
                answered => answered?,
            };
            if let Some(row) = answered.row() {
                let token = column(row, 1, "token").map_err(Failure::unknown)?;
                return Ok(Some(Token::new(token)));
            }
            let left = session.ask(Statement::bare(place.leave(lock))).await?;
            open.store(false, Ordering::Release);
            let there = left.all().next().map(|row| column(row, 1, "there"));
            match no_row {
                // A row that was waited for and is not locked has gone.
                _ if !wait && there.transpose().map_err(Failure::unknown)? == Some(true) => {
                    return Ok(None);
                }
                Some(no_row) => return Err(Failure::refused(no_row.clone())),
                None => self.make(session, lock).await?,
            }
        }
    }

    async fn unlock(&self, session: &Connection<Self>, _: &LockKey) -> Result<bool, Failure> {
        // Nothing but the end of its transaction takes the row from a session.
        roll_back(session).await
    }

    async fn unlock_all(&self, session: &Connection<Self>) -> Result<(), Failure> {
        roll_back(session).await.map(drop)
    }

    async fn look(&self, session: &Connection<Self>, lock: &LockKey) -> Result<LockState, Failure> {
        let place = &session.found.place;
        view::look(session, &place.holder(lock), &place.locking(lock, true)).await
    }

    async fn names(&self, session: &Connection<Self>, prefix: &str) -> Result<Vec<LockKey>> {
        let Found { place, no_row: None, .. } = &session.found else {
            let message = "which rows of your table are locked would take a look at each; ask for a lock by its name";
            return Err(Error::new(Code::Unsupported, message));
        };
        let answered = session.line.ask(vec![Statement::bare(place.names(prefix))], false).await;
        view::names(&answered.map_err(|fault| fault.failure.error)?)
    }
}

impl Rows {
    /// Makes the row of a lock. Sweeps, if it is time; if that fails, rows stay.
    async fn make(&self, session: &Connection<Self>, lock: &LockKey) -> Result<(), Failure> {
        let made = match session
            .line
            .ask(vec![Statement::bare(session.found.place.insert(lock))], false)
            .await
        {
            Ok(answered) => answered.changed > 0,
            // Somebody else has made it, and has it locked.
            Err(fault) if fault.next == Next::Again => false,
            Err(fault) => return Err(fault.failure),
        };
        let from = if made { self.sweep.lock().row_made() } else { None };
        if let Some(from) = from {
            let swept = sweep(session, &self.tables.rows, &from).await;
            if swept.is_err() {
                session
                    .line
                    .ask(vec![Statement::bare("ROLLBACK")], false)
                    .await
                    .map_err(|fault| fault.failure)?;
            }
            self.sweep.lock().swept(swept.map_err(|fault| fault.failure.error.code()));
        }
        Ok(())
    }
}

/// Whether somebody else had the row for as long as the server waits for it.
fn is_too_short(failure: &Failure) -> bool {
    number(&failure.error) == "1205"
}

/// Ends the transaction, if one is open. Answers whether it was.
async fn roll_back(session: &Connection<Rows>) -> Result<bool, Failure> {
    let open = &session.found.open;
    let was_open = open.load(Ordering::Acquire);
    if was_open {
        session.ask(Statement::bare(ROLL_BACK)).await?;
        // Not before: what was interrupted is to be rolled back yet.
        open.store(false, Ordering::Release);
    }
    Ok(was_open)
}
