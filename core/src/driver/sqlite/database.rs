//! The file's one connection, changed in short transactions. While another connection writes, it is waited for: first awake, within SQLite, then
//! asleep.

use std::fs;
use std::path::{Path, absolute};
use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rusqlite::hooks::Wal;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};

use super::cell;
use super::fault::{Fault, FaultKind, NEEDS_LOCAL_DISK};
use super::file::{self, Identity, check_ours, make_ours};
use super::fork::{OpenMark, mark_open, no_fork};
use super::row::{self, Rows};
use crate::driver::record::{Record, StepContext};
use crate::error::{Code, Error};
use crate::port::{
    Answer, CellKey, Change, Instant, LockKey, Look, Notice, RuntimeHandle, Step, Swap,
};
use crate::runtime::sync::Mutex;

/// With its first step and after so many more a connection looks at so many rows, and those nobody needs any more go. More
/// rows than steps, so that a file that forgets names stays small; few enough that no step is slow.
const SWEEP_EVERY: u64 = 128;
const SWEEP_ROWS: i64 = 256;
/// A log of so many pages is written back. A step adds one page, nearly always the same, and takes longer the more copies
/// of it the log holds: so it is kept short.
const LONG: i32 = 1000;

/// The file that a store has open; `None` once the store is closed.
pub(super) type Opened = Mutex<Option<Open>>;

pub(super) struct Open {
    /// `None` since the process has forked, until the next step.
    pub(super) database: Option<Database>,
    /// The file's absolute path without links, and which file it was at first.
    pub(super) path: Arc<Path>,
    identity: Identity,
}

impl Open {
    pub(super) fn of(path: &Path) -> Result<Self, Fault> {
        file::check_path(path)?;
        // What is absolute is no URI, which SQLite would also take.
        let whole = absolute(path).unwrap_or_else(|_| path.to_owned());
        let database = Some(Database::open(&whole, true)?);
        let path: Arc<Path> = fs::canonicalize(path).map_err(|_| file::gone())?.into();
        Ok(Self { database, identity: file::identity(&path)?, path })
    }

    /// The file, whatever lies under its path now.
    pub(super) fn database(&mut self) -> Result<&mut Database, Fault> {
        if self.database.is_none() {
            self.check_path()?;
            self.database = Some(Database::open(&self.path, false)?);
        }
        self.database.as_mut().ok_or_else(|| Error::closed().into())
    }

    /// The file, if whoever opens its path opens this one too.
    pub(super) fn current(&mut self) -> Result<&mut Database, Fault> {
        self.check_path()?;
        self.database()
    }

    fn check_path(&self) -> Result<(), Fault> {
        if file::identity(&self.path)? == self.identity { Ok(()) } else { Err(file::gone()) }
    }
}

/// An open database.
pub(super) struct Database {
    pub(super) connection: Connection,
    steps: u64,
    /// The log's length after the newest commit of this connection, in pages.
    pub(super) log: Arc<AtomicI32>,
    /// From which length on it is written back.
    long: i32,
    _mark: OpenMark,
}

/// One answer per step, and the notices to send, each with the channel of the client that gets it.
pub(super) type Done = (Vec<Answer>, Vec<(Arc<str>, Notice)>);

impl Database {
    /// Opens the file. `made`: it is made if there is none. Called by whoever keeps forks away.
    pub(super) fn open(path: &Path, made: bool) -> Result<Self, Fault> {
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags.set(OpenFlags::SQLITE_OPEN_CREATE, made);
        let mut connection = Connection::open_with_flags(path, flags)?;
        let mark = mark_open();
        connection.busy_handler(Some(try_again))?;
        if connection.is_readonly("main")? {
            let message = "this user may only read the file; locks have to be written";
            return Err(Error::new(Code::Auth, message).into());
        }
        check_ours(&connection)?;
        // A step writes the page its lock lies on into the log: on small ones a pair takes 29 µs instead of 32. On
        // smaller ones a row with two waiters has no room. Means nothing to a file that has pages already.
        connection.pragma_update(None, "page_size", 2048)?;
        let journal: String =
            connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        if journal != "wal" {
            return Err(Error::new(Code::Unsupported, NEEDS_LOCAL_DISK).into());
        }
        // A power failure may undo the newest commits, never damage the file; every process that held a lock then
        // ended with it, and tokens go on by the clock.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        make_ours(&connection)?;
        let log = Arc::new(AtomicI32::new(0));
        let written = log.clone();
        // Instead of SQLite's own hook, which writes a long log back within the commit and waits for the disk there.
        connection.wal_hook(Some(move |_: &mut Wal, pages| {
            written.store(pages, Relaxed);
            Ok(())
        }))?;
        Ok(Self { connection, steps: SWEEP_EVERY - 1, log, long: LONG, _mark: mark })
    }

    /// Whether it is time to write the log back: once for each so many pages more.
    pub(super) fn has_long_log(&mut self) -> bool {
        let pages = self.log.load(Relaxed);
        let long = self.long.min(pages.saturating_add(LONG));
        self.long = if pages < long { long } else { pages.saturating_add(LONG) };
        pages >= long
    }

    /// Carries a batch out in one transaction; `all`: it consists of Takes of different locks, and all are granted or none.
    pub(super) fn carry_out<'a>(
        &mut self,
        batch: &[Step],
        all: bool,
        context: impl FnOnce() -> StepContext<'a>,
    ) -> Result<Done, Fault> {
        self.transact(|database| {
            let context = context();
            database.sweep(batch.len() as u64, context.now)?;
            if all { database.apply_all(batch, context) } else { database.apply(batch, context) }
        })
    }

    /// Does something in one transaction, which counts if that went well.
    fn transact<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        if !self.connection.is_autocommit() {
            // An earlier batch could not even be rolled back, or a defect cut it off.
            self.run("ROLLBACK")?;
        }
        self.run("BEGIN IMMEDIATE")?;
        let done = act(self);
        if done.is_err() {
            self.undo();
            return done;
        }
        self.commit()?;
        done
    }

    /// Carries a change of a cell out in one transaction.
    pub(super) fn swap(&mut self, change: &Change, clock: &dyn Fn() -> u64) -> Result<Swap, Fault> {
        self.transact(|database| cell::swap(&database.connection, change, clock()))
    }

    /// The cell under this key at `now`.
    pub(super) fn look_at(&self, key: &CellKey, now: u64) -> Result<Look, Fault> {
        cell::look(&self.connection, key, now)
    }

    /// Carries out a batch. One that only reads needs no transaction and waits for no writer: each row is read as one commit
    /// left it.
    pub(super) fn apply(
        &self,
        batch: &[Step],
        mut context: StepContext<'_>,
    ) -> Result<Done, Fault> {
        let mut answers = Vec::with_capacity(batch.len());
        let mut rows = Rows::of(&self.connection);
        for step in batch {
            match rows.record(&step.lock) {
                Ok(record) => answers.push(record.answer(step, &mut context)),
                Err(fault) if fault.kind == FaultKind::Row => {
                    answers.push(Err(fault.into_failure()));
                }
                Err(fault) => return Err(fault),
            }
        }
        rows.store()?;
        Ok((answers, context.notices))
    }

    /// The names of the locks that begin with `prefix`, in order.
    pub(super) fn names(&self, prefix: &str) -> Result<Vec<LockKey>, Fault> {
        const NAMES: &str = "SELECT name FROM fencelock_lock WHERE name >= ?1 ORDER BY name";
        let mut statement = self.connection.prepare_cached(NAMES)?;
        let mut rows = statement.query([prefix])?;
        let mut names = Vec::new();
        while let Some(row) = rows.next()? {
            match row.get_ref(0)?.as_str() {
                Ok(name) if name.starts_with(prefix) => names.push(LockKey::new(name)),
                _ => break,
            }
        }
        Ok(names)
    }

    fn apply_all<'a>(
        &self,
        batch: &'a [Step],
        mut context: StepContext<'_>,
    ) -> Result<Done, Fault> {
        let load =
            |step: &'a Step| Ok::<_, Fault>((step, row::load(&self.connection, &step.lock)?));
        let mut records = batch.iter().map(load).collect::<Result<Vec<_>, _>>()?;
        let (answers, granted) = Record::answer_all(&mut records, &mut context);
        for (step, record) in records.iter().filter(|_| granted) {
            row::store(&self.connection, &step.lock, record)?;
        }
        Ok((answers, context.notices))
    }

    fn commit(&self) -> Result<(), Fault> {
        let Err(error) = self.run("COMMIT") else { return Ok(()) };
        let reason = error.sqlite_error_code();
        self.undo();
        // Of these two it is certain that the mark which makes a transaction count was not written.
        let counts_not = matches!(reason, Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy));
        let fault = Fault::from(error);
        Err(if counts_not { fault } else { Fault { kind: FaultKind::Unknown, ..fault } })
    }

    fn undo(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.run("ROLLBACK")
        {
            tracing::warn!(%error, "a transaction could not be rolled back; the next step tries again");
        }
    }

    fn run(&self, statement: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(statement)?.execute([]).map(drop)
    }

    /// Drops a few of the rows nobody needs any more, where the last sweep of any connection left off: many make few steps.
    fn sweep(&mut self, steps: u64, now: u64) -> Result<(), Fault> {
        const FROM: &str = "SELECT value FROM fencelock_meta WHERE key = 'swept_up_to'";
        const UP_TO: &str = "SELECT max(name), count(*) FROM
            (SELECT name FROM fencelock_lock WHERE name > ?1 ORDER BY name LIMIT ?2)";
        const FORGET: &str = "DELETE FROM fencelock_lock
            WHERE name > ?1 AND name <= ?2 AND forget_after <= ?3";
        const LEFT_OFF: &str = "REPLACE INTO fencelock_meta VALUES ('swept_up_to', ?1)";
        let before = self.steps;
        self.steps += steps;
        if before / SWEEP_EVERY == self.steps / SWEEP_EVERY {
            return Ok(());
        }
        // What is no text was written by somebody else, and is no name.
        let name = |row: &rusqlite::Row<'_>| {
            row.get_ref(0).map(|name| name.as_str().unwrap_or_default().to_owned())
        };
        let from = self.connection.prepare_cached(FROM)?.query_row([], name).optional()?;
        let from = from.unwrap_or_default();
        let (up_to, rows): (String, i64) = self
            .connection
            .prepare_cached(UP_TO)?
            .query_row((&from, SWEEP_ROWS), |row| Ok((name(row)?, row.get(1)?)))?;
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        self.connection.prepare_cached(FORGET)?.execute((&from, &up_to, now))?;
        // At the end the next one starts over, or new names in ascending order would keep it there.
        let left_off = if rows < SWEEP_ROWS { "" } else { &up_to };
        if left_off != from {
            self.connection.prepare_cached(LEFT_OFF)?.execute([left_off])?;
        }
        Ok(())
    }
}

/// Writes a log back into the file, by a connection of its own. Waits for the disk, so it is not for a thread that serves tasks.
pub(super) fn write_back(path: &Path, log: &AtomicI32) -> Result<(), Fault> {
    let _fork = no_fork()?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    let before = log.load(Relaxed);
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
    if log.load(Relaxed) > before {
        // Somebody writes without a pause: no writer would ever find the log complete and begin it anew. The rest is
        // written back with the writers shut out.
        connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(()))?;
    }
    Ok(())
}

/// How often SQLite tries at once: for some 100 µs, many times as long as a step holds the file.
const TRIES: i32 = 16;
const SHORTEST_NAP: Duration = Duration::from_millis(1);
const LONGEST_NAP: Duration = Duration::from_millis(64);

/// SQLite's busy handler: whether it is to try again.
pub(super) fn try_again(tried: i32) -> bool {
    // Whoever has the file may be waiting for this processor.
    std::thread::yield_now();
    tried < TRIES
}

/// Tries until the file is not busy, or until `timeout` after the first time it was. `until` keeps that end from one part of an
/// operation to the next.
pub(super) async fn keep_trying<T>(
    runtime: &RuntimeHandle,
    timeout: Duration,
    until: &mut Option<Instant>,
    attempt: impl Fn() -> Result<T, Fault>,
) -> Result<T, Fault> {
    let mut nap = SHORTEST_NAP;
    loop {
        let error = match attempt() {
            Err(Fault { kind: FaultKind::Busy, error }) => error,
            other => return other,
        };
        let now = runtime.now();
        let until = *until.get_or_insert(now + timeout);
        if now >= until {
            return Err(error.into());
        }
        // Those who collided are not to meet again.
        let mut byte = [0];
        runtime.random(&mut byte);
        let shorter = nap * (512 - u32::from(byte[0])) / 512;
        runtime.sleep_until(until.min(now + shorter)).await;
        nap = LONGEST_NAP.min(nap * 2);
    }
}
