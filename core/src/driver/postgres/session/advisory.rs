//! Advisory locks: the number of a lock is 64 bits of a hash of its name. That is a function of the printed migration, so that a user's
//! own transaction takes the same locks.

use std::sync::Arc;

use super::connection::Connection;
use super::guarantees;
use super::view;
use super::way::Way;
use crate::driver::postgres::connection::Connection as Live;
use crate::driver::sql::fault::Fault;
use crate::driver::sql::statement::{Statement, column, name};
use crate::driver::sql::tables::Tables;
use crate::error::Result;
use crate::fence::Token;
use crate::options::Options;
use crate::port::{Failure, Guarantee, LockKey, LockState, Mode, names_unknown};

/// See the module.
pub struct Advisory {
    tables: Tables,
}

/// Of each, the one for a lock that is held alone, and the one for readers.
pub struct Statements {
    take: [Arc<str>; 2],
    wait: [Arc<str>; 2],
    free: [Arc<str>; 2],
    free_all: Arc<str>,
    look: Arc<str>,
}

impl Way for Advisory {
    type Found = Statements;

    const GUARANTEES: &'static [Guarantee] = guarantees::ADVISORY;
    const IN_TRANSACTION: bool = false;

    fn new(_: &Options, tables: &Tables) -> Result<Self> {
        Ok(Self { tables: tables.clone() })
    }

    fn advance(&self) -> String {
        format!("SELECT {}_advance()", self.tables.word)
    }

    fn refusal(mode: Mode) -> Option<&'static str> {
        match mode {
            Mode::Exclusive | Mode::Read | Mode::Write => None,
            Mode::Permit => {
                Some("advisory locks of PostgreSQL do not count; for permits use `postgres://`")
            }
        }
    }

    async fn prepare(&self, live: &Live) -> Result<Statements, Fault> {
        let tables = &self.tables;
        let take = ["pg_try_advisory_lock", "pg_try_advisory_lock_shared"];
        let wait = ["pg_advisory_lock", "pg_advisory_lock_shared"];
        let free = ["pg_advisory_unlock", "pg_advisory_unlock_shared"];
        let found = Statements {
            take: take.map(|function| self::take(tables, function).into()),
            wait: wait.map(|function| self::wait(tables, function).into()),
            free: free.map(|function| self::free(tables, function).into()),
            free_all: "SELECT pg_backend_pid(), pg_advisory_unlock_all()::text".into(),
            look: look(tables).into(),
        };
        let Statements { take, wait, free, free_all, look } = &found;
        let each = take.iter().chain(wait).chain(free).chain([free_all, look]);
        live.prepare(&each.cloned().collect::<Vec<_>>(), &[]).await.map(|()| found)
    }

    async fn lock(
        &self,
        session: &Connection<Self>,
        lock: &LockKey,
        mode: Mode,
        wait: bool,
    ) -> Result<Option<Token>, Failure> {
        let Statements { take, wait: waiting, .. } = &session.found;
        let text = &(if wait { waiting } else { take })[usize::from(mode == Mode::Read)];
        loop {
            let row = session.ask(&[Statement::kept(text, [name(lock.as_str())])]).await?;
            let token = Connection::<Self>::token(&row)?;
            if token.is_some() || !wait {
                return Ok(token);
            }
        }
    }

    async fn unlock(
        &self,
        session: &Connection<Self>,
        lock: &LockKey,
        mode: Mode,
    ) -> Result<bool, Failure> {
        let text = &session.found.free[usize::from(mode == Mode::Read)];
        let row = session.ask(&[Statement::kept(text, [name(lock.as_str())])]).await?;
        column(&row, 1, "pg_advisory_unlock").map_err(Failure::unknown)
    }

    async fn unlock_all(&self, session: &Connection<Self>) -> Result<(), Failure> {
        session.ask(&[Statement::kept(&session.found.free_all, [])]).await.map(drop)
    }

    async fn look(&self, session: &Connection<Self>, lock: &LockKey) -> Result<LockState, Failure> {
        view::look(session, &session.found.look, lock).await
    }

    async fn names(&self, _: &Connection<Self>, _: &str) -> Result<Vec<LockKey>> {
        Err(names_unknown())
    }
}

/// Takes a lock that nobody has and nobody waits for. Only then a token is drawn.
fn take(Tables { word, tokens, .. }: &Tables, function: &str) -> String {
    format!(
        "SELECT pg_backend_pid(), CASE WHEN {function}({word}_key($1)) THEN nextval('{tokens}') END"
    )
}

/// The same, but it waits, for a second at most.
fn wait(Tables { word, tokens, .. }: &Tables, function: &str) -> String {
    let waits = format!("'SELECT {function}({word}_key($1))'");
    format!(
        "SELECT pg_backend_pid(), CASE WHEN {word}_wait({waits}, $1) > 0 THEN nextval('{tokens}') END"
    )
}

fn free(Tables { word, .. }: &Tables, function: &str) -> String {
    format!("SELECT pg_backend_pid(), {function}({word}_key($1))")
}

/// The query for the holders of a lock and those who wait for it, in order of arrival as far as the server shows it.
fn look(Tables { word, .. }: &Tables) -> String {
    format!(
        "SELECT l.granted, l.mode, a.application_name,
             (extract(epoch FROM clock_timestamp() - l.waitstart) * 1000)::bigint, l.pid
         FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
         WHERE l.locktype = 'advisory' AND l.objsubid = 1
             AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
             AND (l.classid::bigint << 32 | l.objid::bigint) = {word}_key($1)
         ORDER BY l.granted DESC, l.waitstart, l.pid"
    )
}
