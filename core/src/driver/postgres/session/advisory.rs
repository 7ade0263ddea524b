//! Advisory locks: the number of a lock is 64 bits of a hash of its name. That is a function of the printed migration, so that a user's
//! own transaction takes the same locks.

use tokio_postgres::{Client, Statement};

use super::connection::Connection;
use super::guarantees;
use super::view;
use super::way::{Judge, Way};
use crate::driver::postgres::row::column;
use crate::driver::postgres::statement::prepare;
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
    take: [Statement; 2],
    wait: [Statement; 2],
    free: [Statement; 2],
    free_all: Statement,
    look: Statement,
}

impl Way for Advisory {
    type Statements = Statements;

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

    async fn prepare(&self, client: &Client, judged: Judge<'_>) -> Result<Statements> {
        let tables = &self.tables;
        let texts = [
            take(tables, "pg_try_advisory_lock"),
            take(tables, "pg_try_advisory_lock_shared"),
            wait(tables, "pg_advisory_lock"),
            wait(tables, "pg_advisory_lock_shared"),
            free(tables, "pg_advisory_unlock"),
            free(tables, "pg_advisory_unlock_shared"),
            "SELECT pg_backend_pid(), pg_advisory_unlock_all()::text".to_owned(),
            look(tables),
        ];
        let prepared = prepare(client, &texts).await;
        let [take, take_shared, wait, wait_shared, free, free_shared, free_all, look] =
            prepared.map_err(judged)?;
        let (take, wait) = ([take, take_shared], [wait, wait_shared]);
        Ok(Statements { take, wait, free: [free, free_shared], free_all, look })
    }

    async fn lock(
        &self,
        session: &Connection<Self>,
        lock: &LockKey,
        mode: Mode,
        wait: bool,
    ) -> Result<Option<Token>, Failure> {
        let live = session.live()?;
        let Statements { take, wait: waiting, .. } = &live.statements.locking;
        let statement = &(if wait { waiting } else { take })[usize::from(mode == Mode::Read)];
        loop {
            let row = session.ask(&live, statement, &[&lock.as_str()]).await?;
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
        let live = session.live()?;
        let statement = &live.statements.locking.free[usize::from(mode == Mode::Read)];
        let row = session.ask(&live, statement, &[&lock.as_str()]).await?;
        column(&row, 1, "pg_advisory_unlock").map_err(Failure::unknown)
    }

    async fn unlock_all(&self, session: &Connection<Self>) -> Result<(), Failure> {
        let live = session.live()?;
        session.ask(&live, &live.statements.locking.free_all, &[]).await.map(drop)
    }

    async fn look(&self, session: &Connection<Self>, lock: &LockKey) -> Result<LockState, Failure> {
        let live = session.live()?;
        view::look(session, &live, &live.statements.locking.look, lock).await
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
