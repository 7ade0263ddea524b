//! Locks that are rows, each held by a transaction that locks the row. The row is one of fencelock's own, which is made when it is
//! missing, or one of a table of the user's own, whose key is the lock's name.
//!
//! Nothing is written there, so a transaction is rolled back in the end: that waits for no disk. A try leaves a row out that somebody has
//! locked (`SKIP LOCKED`): what `NOWAIT` refuses is an error in the server's log.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::connection::{Connection, second};
use super::{SessionDialect, Way, Wire};
use crate::driver::own_table::KeyedTable;
use crate::driver::sql::dialect::Tables;
use crate::driver::sql::fault::{Fault, Next};
use crate::driver::sql::statement::{Row, Statement, Value, column, name};
use crate::driver::sql::sweep::{KEPT, PART, Sweep};
use crate::error::{Code, Error, Result};
use crate::fence::Token;
use crate::options::Options;
use crate::port::{Failure, LockKey, Mode};
use crate::runtime::sync::Mutex;

/// Locks that are rows.
pub struct Rows<D> {
    /// The user's own table as it was written; empty if there is none.
    on_table: String,
    tables: Tables,
    sweep: Mutex<Sweep>,
    dialect: PhantomData<fn() -> D>,
}

/// Where the rows lie. All of it is SQL.
pub struct Place {
    pub(in crate::driver) table: String,
    /// That a row `t` is the one of the name $1.
    pub(in crate::driver) is_it: String,
    /// The name that whoever has a row `t` locked has taken too, where others do not see who has it otherwise.
    #[cfg_attr(not(feature = "mysql"), allow(dead_code))]
    pub(in crate::driver) mark: String,
    /// The error for a row that does not exist; `None`: the row is fencelock's own, and is made.
    pub(in crate::driver) no_row: Option<Error>,
}

/// The statements, and whether a row is locked.
pub struct Found {
    place: Place,
    take: Arc<str>,
    wait: Arc<str>,
    /// Whether there is such a row.
    exists: Arc<str>,
    insert: Arc<str>,
    /// Whether a transaction is open.
    open: AtomicBool,
}

impl Found {
    fn name(&self, lock: &LockKey) -> Value {
        if self.place.no_row.is_some() { lock.as_str().into() } else { name(lock.as_str()) }
    }
}

impl<D: SessionDialect> Way<D> for Rows<D> {
    type Found = Found;

    const ROWS: bool = true;

    fn new(options: &Options, tables: &Tables) -> Result<Self> {
        let on_table = options.on_table.clone();
        if !on_table.is_empty() {
            KeyedTable::parse(&on_table, D::MOST_BYTES)?;
        }
        let (tables, sweep) = (tables.clone(), Mutex::default());
        Ok(Self { on_table, tables, sweep, dialect: PhantomData })
    }

    fn on_own_table(&self) -> bool {
        !self.on_table.is_empty()
    }

    async fn find(&self, connection: &mut D::Connection) -> Result<Found, Fault> {
        let (tables, known) = (&self.tables, D::known(self.on_own_table()));
        let parse = || KeyedTable::parse(&self.on_table, D::MOST_BYTES).map_err(Fault::refused);
        let own = self.on_own_table().then(parse).transpose()?;
        let place = D::place(connection, tables, own.as_ref(), known).await?;
        let Place { table, is_it, .. } = &place;
        let [take, wait] = D::lock_row(&place, tables, &D::token(connection, tables));
        let exists = format!("{}, EXISTS (SELECT 1 FROM {table} AS t WHERE {is_it})", D::BEAT);
        let insert = format!(
            "INSERT INTO {} (name) VALUES ($1) {}",
            tables.rows,
            D::unless_there(&tables.rows, "name")
        );
        let texts = [take, wait, exists].map(Arc::<str>::from);
        D::prepare(connection, &texts, Some(&place), known).await?;
        let ([take, wait, exists], open) = (texts, AtomicBool::new(false));
        Ok(Found { place, take, wait, exists, insert: insert.into(), open })
    }

    async fn lock(
        &self,
        session: &Connection<D, Self>,
        lock: &LockKey,
        _: Mode,
        wait: bool,
    ) -> Result<Option<Token>, Failure> {
        let found = &session.found;
        let named = |text: &Arc<str>| Statement::kept(text, [found.name(lock)]);
        let text = if wait { &found.wait } else { &found.take };
        loop {
            found.open.store(true, Ordering::Release);
            // Without a transaction the row would not stay locked.
            let answer = match session.ask(vec![Statement::bare(D::BEGIN_ROW), named(text)]).await {
                Err(failure) if wait && D::was_too_short(&failure.error) => {
                    roll_back(session).await?;
                    continue;
                }
                answer => answer?,
            };
            if let Some(token) = second(&answer)? {
                return Ok(Some(Token::new(token as u64)));
            }
            let leave = [named(&found.exists)].into_iter().chain(D::roll_back()).collect();
            let left = session.ask(leave).await?;
            found.open.store(false, Ordering::Release);
            let row = left.all().next().map(|row| column::<bool>(row, 1, "exists"));
            match &found.place.no_row {
                _ if row.transpose().map_err(Failure::unknown)? == Some(true) => {
                    if !wait {
                        return Ok(None);
                    }
                }
                Some(no_row) => return Err(Failure::refused(no_row.clone())),
                None => self.make(session, lock).await?,
            }
        }
    }

    async fn unlock(
        &self,
        session: &Connection<D, Self>,
        _: &LockKey,
        _: Mode,
    ) -> Result<bool, Failure> {
        // Nothing but the end of its transaction takes the row from a session.
        roll_back(session).await
    }

    async fn unlock_all(&self, session: &Connection<D, Self>) -> Result<(), Failure> {
        roll_back(session).await.map(drop)
    }

    fn look(&self, session: &Connection<D, Self>, lock: &LockKey) -> Vec<Statement> {
        let Found { place, wait, .. } = &session.found;
        D::look_row(place, wait, session.found.name(lock))
    }

    async fn names(&self, session: &Connection<D, Self>, prefix: &str) -> Result<Vec<LockKey>> {
        let place = &session.found.place;
        if place.no_row.is_some() {
            let message = "which rows of your table are locked would take a look at each; ask for a lock by its name";
            return Err(Error::new(Code::Unsupported, message));
        }
        let asked = Statement::once(D::locked_names(place), [name(prefix)]);
        let answer = session.wire.ask(vec![asked], false).await;
        let answer = answer.map_err(|fault| fault.failure.error)?;
        answer.all().map(|row| column::<&str>(row, 0, "name").map(LockKey::new)).collect()
    }
}

impl<D: SessionDialect> Rows<D> {
    /// Makes the row of a lock. Sweeps, if it is time; if that fails, rows stay.
    async fn make(&self, session: &Connection<D, Self>, lock: &LockKey) -> Result<(), Failure> {
        let insert = Statement::kept(&session.found.insert, [name(lock.as_str())]);
        let made = match session.wire.ask(vec![insert], false).await {
            Ok(answer) => answer.changed > 0,
            // Somebody else has made it, and has it locked.
            Err(fault) if fault.next == Next::Again => false,
            Err(fault) => return Err(fault.failure),
        };
        let from = if made { self.sweep.lock().row_made() } else { None };
        if let Some(from) = from {
            let swept = self.sweep_behind(&session.wire, from).await;
            if swept.is_err() {
                let rolled_back = session.wire.ask(vec![Statement::bare("ROLLBACK")], false).await;
                rolled_back.map_err(|fault| fault.failure)?;
            }
            self.sweep.lock().swept(swept.map_err(|fault| fault.failure.error.code()));
        }
        Ok(())
    }

    /// Deletes rows behind a name that were made long ago, but for those that somebody has locked. They tell nothing: who needs one makes it
    /// anew. Answers how far it came.
    async fn sweep_behind(&self, wire: &D::Wire, from: String) -> Result<Option<String>, Fault> {
        let (rows, old) = (&self.tables.rows, D::is_old(KEPT.as_secs()));
        let text = |row: &Row| column::<&str>(row, 0, "name").ok().map(str::to_owned);
        // By itself: within a statement that locks, or sets something, it would wait for rows that others have locked.
        let part = format!("SELECT name FROM {rows} WHERE name > $1 ORDER BY name LIMIT {PART}");
        let answer = wire.ask(vec![Statement::once(part, [name(&*from)])], false).await?;
        let Some(last) = answer.all().last().and_then(text) else { return Ok(None) };
        let part = format!(
            "SELECT name FROM {rows} WHERE name > $1 AND name <= $2 AND {old} FOR UPDATE SKIP LOCKED"
        );
        let values = [name(from), name(&*last)];
        let asked = vec![Statement::bare("BEGIN"), Statement::once(part, values)];
        let answer = wire.ask(asked, false).await?;
        // Each by itself: a list may be carried out as a look at all rows, which waits for those that are locked.
        let delete: Arc<str> = format!("DELETE FROM {rows} WHERE name = $1").into();
        let delete = |row| Some(Statement::once(delete.clone(), [name(text(row)?)]));
        let asked = answer.all().filter_map(delete).chain([Statement::bare("COMMIT")]).collect();
        wire.ask(asked, false).await?;
        Ok(Some(last))
    }
}

/// Ends the transaction, if one is open. Answers whether it was.
async fn roll_back<D: SessionDialect>(session: &Connection<D, Rows<D>>) -> Result<bool, Failure> {
    let open = &session.found.open;
    let was_open = open.load(Ordering::Acquire);
    if was_open {
        session.ask(D::roll_back()).await?;
        // Not before: what was interrupted is to be rolled back yet.
        open.store(false, Ordering::Release);
    }
    Ok(was_open)
}
