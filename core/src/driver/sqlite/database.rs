//! The file and its one connection: opened with care, changed in short transactions.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};

use super::cell;
use super::description::opening;
use super::fault::{Fault, NEEDS_LOCAL_DISK};
use super::identity::{Identity, gone, identity, only_name};
use super::log::{Log, WriteBack};
use super::row;
use super::rows::Rows;
use crate::driver::record::{Record, Scene};
use crate::error::{Code, Error};
use crate::port::{Answer, CellKey, Change, LockKey, Look, Notice, Step, Swap};

/// The layout of our tables. A file of a newer one is not touched.
const SCHEMA_VERSION: i64 = 3;
/// With its first step and after so many more a connection looks at so many rows, and those nobody needs any more go. More
/// rows than steps, so that a file that forgets names stays small; few enough that no step is slow.
const SWEEP_EVERY: u64 = 128;
const SWEEP_ROWS: i64 = 256;

/// Whether a file has to be there already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// It was there before.
    Before,
    /// It is made if there is none.
    OrMade,
}

/// An open database.
pub(super) struct Database {
    connection: Connection,
    path: PathBuf,
    /// Which file it is, whatever lies under its path now.
    identity: Identity,
    steps: u64,
    log: Log,
}

/// The world a batch runs in.
pub(super) struct Surroundings<'a> {
    /// The store's clock.
    pub(super) clock: &'a dyn Fn() -> u64,
    /// Where the client that asks listens.
    pub(super) channel: &'a Arc<str>,
    /// Whether anybody listens on a channel.
    pub(super) reachable: &'a dyn Fn(&str) -> bool,
}

/// The result of a batch.
pub(super) struct Done {
    /// One answer per step.
    pub(super) answers: Vec<Answer>,
    /// The notices to send, each with the channel of the client that gets it.
    pub(super) notices: Vec<(Arc<str>, Notice)>,
    /// The work on the log that is done separately, where waiting is allowed.
    pub(super) write_back: Option<WriteBack>,
}

impl Database {
    /// Opens the file, making our tables if they are not there.
    pub(super) fn open(path: &Path, found: Found) -> Result<Self, Fault> {
        check_path(path)?;
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        match found {
            Found::OrMade => flags |= OpenFlags::SQLITE_OPEN_CREATE,
            Found::Before if !path.exists() => return Err(gone()),
            Found::Before => {}
        }
        let _ours = opening();
        let mut connection = Connection::open_with_flags(absolute(path)?, flags)?;
        connection.busy_timeout(Duration::ZERO)?;
        if connection.is_readonly("main")? {
            return Err(Fault::Failed(Error::new(
                Code::Auth,
                "this user may only read the file; locks have to be written",
            )));
        }
        // A step writes the page its lock lies on into the log: on small ones a pair takes 29 µs instead of 32. On
        // smaller ones a row with two waiters has no room. Means nothing to a file that has pages already.
        connection.pragma_update(None, "page_size", 2048)?;
        let journal: String =
            connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        if journal != "wal" {
            return Err(Fault::Failed(Error::new(Code::Unsupported, NEEDS_LOCAL_DISK)));
        }
        // A power failure may undo the newest commits, never damage the file; every process that held a lock then
        // ended with it, and tokens go on by the clock.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        prepare_tables(&connection)?;
        // The file exists by now, so its path has no links left to follow.
        let path = fs::canonicalize(path).map_err(|_| gone())?;
        let identity = only_name(&path)?;
        let log = Log::watch(&mut connection, path.clone())?;
        Ok(Self { connection, path, identity, steps: SWEEP_EVERY - 1, log })
    }

    /// The file's absolute path, without links.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Which file it is.
    pub(super) fn identity(&self) -> Identity {
        self.identity
    }

    /// Makes sure that this is still the file it was.
    pub(super) fn check_is(&self, before: Identity) -> Result<(), Fault> {
        if self.identity == before { Ok(()) } else { Err(gone()) }
    }

    /// Carries a batch out in one transaction; `all`: it consists of Takes of different locks, and all are granted or none.
    pub(super) fn carry_out(
        &mut self,
        batch: &[Step],
        all: bool,
        around: &Surroundings<'_>,
    ) -> Result<Done, Fault> {
        let done = self.transact(|database| {
            let done = if all {
                database.apply_all(batch, around)
            } else {
                database.apply(batch, around)
            }?;
            database.sweep(batch.len() as u64, (around.clock)())?;
            Ok(done)
        })?;
        Ok(Done { write_back: self.log.due(), ..done })
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
    pub(super) fn swap(
        &mut self,
        change: &Change,
        clock: &dyn Fn() -> u64,
    ) -> Result<(Swap, Option<WriteBack>), Fault> {
        let swap = self.transact(|database| cell::swap(&database.connection, change, clock()))?;
        Ok((swap, self.log.due()))
    }

    /// The cell under this key at `now`.
    pub(super) fn look_at(&self, key: &CellKey, now: u64) -> Result<Look, Fault> {
        cell::look(&self.connection, key, now)
    }

    /// Carries out a batch that only reads. Each row is read as one commit left it: no transaction, and no writer is
    /// waited for.
    pub(super) fn look(&self, batch: &[Step], around: &Surroundings<'_>) -> Result<Done, Fault> {
        self.apply(batch, around)
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

    /// Makes sure that whoever opens the path opens this file.
    pub(super) fn check_file(&self) -> Result<(), Fault> {
        if identity(&self.path)? == self.identity { Ok(()) } else { Err(gone()) }
    }

    /// Closing is not to write the log back, nor to delete what lies under its name: these are not the others' files.
    pub(super) fn leave_the_log(&self) {
        let left = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        if let Err(error) = left {
            tracing::warn!(%error, "a log that was deleted may be written back");
        }
    }

    /// The length of the log, in pages.
    #[cfg(test)]
    pub(super) fn log_pages(&self) -> i32 {
        self.log.pages()
    }

    /// Lets the file grow no further, as on a full disk.
    #[cfg(test)]
    pub(super) fn limit_pages(&self) -> Result<(), Fault> {
        let pages: i64 = self.connection.query_row("PRAGMA page_count", [], |row| row.get(0))?;
        let limit = format!("PRAGMA max_page_count = {}", pages + 2);
        self.connection.query_row(&limit, [], |_| Ok(()))?;
        Ok(())
    }

    fn apply(&self, batch: &[Step], around: &Surroundings<'_>) -> Result<Done, Fault> {
        let Surroundings { clock, channel, reachable } = *around;
        let mut scene = Scene::new(clock(), channel, reachable);
        let mut answers = Vec::with_capacity(batch.len());
        let mut rows = Rows::of(&self.connection);
        for step in batch {
            match rows.record(&step.lock) {
                Ok(record) => answers.push(record.answer(step, &mut scene)),
                Err(fault @ Fault::Row(_)) => answers.push(Err(fault.into_failure())),
                Err(fault) => return Err(fault),
            }
        }
        rows.store()?;
        Ok(Done { answers, notices: scene.notices, write_back: None })
    }

    fn apply_all<'a>(&self, batch: &'a [Step], around: &Surroundings<'_>) -> Result<Done, Fault> {
        let Surroundings { clock, channel, reachable } = *around;
        let mut scene = Scene::new(clock(), channel, reachable);
        let load =
            |step: &'a Step| Ok::<_, Fault>((step, row::load(&self.connection, &step.lock)?));
        let mut records = batch.iter().map(load).collect::<Result<Vec<_>, _>>()?;
        let (answers, granted) = Record::answer_all(&mut records, &mut scene);
        for (step, record) in records.iter().filter(|_| granted) {
            row::store(&self.connection, &step.lock, record)?;
        }
        Ok(Done { answers, notices: scene.notices, write_back: None })
    }

    fn commit(&self) -> Result<(), Fault> {
        let Err(error) = self.run("COMMIT") else { return Ok(()) };
        let reason = error.sqlite_error_code();
        self.undo();
        // Of these two it is certain that the mark which makes a transaction count was not written.
        let counts_not = matches!(reason, Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy));
        let fault = Fault::from(error);
        Err(if counts_not { fault } else { Fault::Unknown(fault.into_error()) })
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

/// Says what is wrong with a path before SQLite says less.
fn check_path(path: &Path) -> Result<(), Fault> {
    let invalid = |message| Err(Fault::Failed(Error::invalid("path", message)));
    if path.as_os_str().is_empty() || path == Path::new(":memory:") {
        return invalid("give the path of a file; locks in memory are `memory:`");
    }
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            return invalid("the path is a directory; give the path of a file in it");
        }
        Ok(found) if !found.is_file() => return invalid("the path is not a regular file"),
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let message = "this user may not look into the file's directory";
            return Err(Fault::Failed(Error::new(Code::Auth, message)));
        }
        Err(_) => {}
    }
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() || parent.is_dir() => Ok(()),
        _ => invalid("the file's directory does not exist; make it first"),
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Fault> {
    std::path::absolute(path).map_err(|error| {
        let message = "the path is relative, and the working directory cannot be told";
        Fault::Failed(Error::invalid("path", message).with_source(error))
    })
}

fn prepare_tables(connection: &Connection) -> Result<(), Fault> {
    const KNOWN: &str = "SELECT 1 FROM sqlite_schema WHERE name = 'fencelock_meta'";
    const VERSION: &str = "SELECT value FROM fencelock_meta WHERE key = 'schema_version'";
    const META: &str = "CREATE TABLE IF NOT EXISTS fencelock_meta (key TEXT PRIMARY KEY NOT NULL, value) WITHOUT ROWID";
    const MARK: &str = "INSERT OR IGNORE INTO fencelock_meta VALUES ('schema_version', ?1)";
    if connection.query_row(KNOWN, [], |_| Ok(())).optional()?.is_none() {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        connection.execute(META, [])?;
        connection.execute(MARK, [SCHEMA_VERSION])?;
        connection.execute(row::TABLE, [])?;
        connection.execute_batch("COMMIT")?;
    }
    let version: Option<i64> = connection
        .query_row(VERSION, [], |row| Ok(row.get_ref(0)?.as_i64().ok()))
        .optional()?
        .flatten();
    if version != Some(SCHEMA_VERSION) {
        let found = version.map_or("none".into(), |version| version.to_string());
        let message = "the file's locks were laid out by another version of fencelock; use that version, or another file";
        let error = Error::new(Code::Conflict, message).with("schema_version", found);
        return Err(Fault::Failed(error));
    }
    cell::prepare(connection)?;
    row::check(connection)
}
