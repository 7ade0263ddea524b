//! The server's named locks, `GET_LOCK`. A session gets again what it has, so it is asked for each name once.

use std::sync::Arc;

use mysql_async::Conn;

use super::connection::Connection;
use super::guarantees;
use super::key::key;
use super::tokens::Tokens;
use super::view;
use super::way::{Judge, Way};
use crate::driver::mysql::literal::bytes;
use crate::driver::mysql::live::{Answered, Statement};
use crate::driver::mysql::row::column;
use crate::driver::mysql::version::Version;
use crate::driver::sql::fault::{bad_column, lost};
use crate::driver::sql::tables::Tables;
use crate::error::Result;
use crate::fence::Token;
use crate::options::Options;
use crate::port::{Failure, Guarantee, LockKey, LockState, Mode, names_unknown};

/// How long a wait may take, in seconds: a year.
const LONG: u32 = 31_536_000;

/// See the module.
pub struct Named {
    tables: Tables,
}

/// The statements.
pub struct Statements {
    take: Arc<str>,
    free: Arc<str>,
    tokens: Tokens,
}

impl Way for Named {
    type Found = Statements;

    const GUARANTEES: &'static [Guarantee] = guarantees::NAMED;
    const IN_TRANSACTION: bool = false;

    fn new(_: &Options, tables: &Tables) -> Result<Self> {
        Ok(Self { tables: tables.clone() })
    }

    fn refusal(mode: Mode) -> Option<&'static str> {
        match mode {
            Mode::Exclusive => None,
            Mode::Read | Mode::Write | Mode::Upgradeable => {
                Some("named locks of MySQL have no readers; for readers and writers use `mysql://`")
            }
            Mode::Permit => Some("named locks of MySQL do not count; for permits use `mysql://`"),
        }
    }

    async fn find(
        &self,
        _: &mut Conn,
        _: Version,
        tokens: Tokens,
        _: Judge<'_>,
    ) -> Result<Statements> {
        let take = self.wish(&tokens, "?", 0).into();
        let free = format!("SELECT CONNECTION_ID(), RELEASE_LOCK({})", self.key("?")).into();
        Ok(Statements { take, free, tokens })
    }

    async fn lock(
        &self,
        session: &Connection<Self>,
        lock: &LockKey,
        wait: bool,
    ) -> Result<Option<Token>, Failure> {
        let Statements { take, tokens, .. } = &session.found;
        let statement = if wait {
            // With the name in its text, by which others see who waits for what.
            Statement::Text(self.waiting(tokens, lock))
        } else {
            Statement::Prepared(take.clone(), vec![lock.as_str().as_bytes().into()])
        };
        let answered = session.ask(statement).await?;
        match told(&answered)? {
            // Nobody has it, and it is not there: the server has given it up.
            None if wait => Ok(None),
            None => Err(lost(&"MySQL", "the server gave the statement up", true).failure),
            Some(0) => Ok(None),
            Some(token) => Ok(u64::try_from(token).ok().map(Token::new)),
        }
    }

    async fn unlock(&self, session: &Connection<Self>, lock: &LockKey) -> Result<bool, Failure> {
        let free = session.found.free.clone();
        let asked = Statement::Prepared(free, vec![lock.as_str().as_bytes().into()]);
        let answered = session.ask(asked).await?;
        Ok(told(&answered)? == Some(1))
    }

    async fn unlock_all(&self, session: &Connection<Self>) -> Result<(), Failure> {
        let all = "SELECT CONNECTION_ID(), RELEASE_ALL_LOCKS()".to_owned();
        session.ask(Statement::Text(all)).await.map(drop)
    }

    async fn look(&self, session: &Connection<Self>, lock: &LockKey) -> Result<LockState, Failure> {
        let holder = format!("IS_USED_LOCK({})", self.key(&bytes(lock.as_str())));
        view::look(session, &holder, &self.waiting(&session.found.tokens, lock)).await
    }

    async fn names(&self, _: &Connection<Self>, _: &str) -> Result<Vec<LockKey>> {
        Err(names_unknown())
    }
}

impl Named {
    fn key(&self, name: &str) -> String {
        key(&self.tables, name)
    }

    /// Takes a lock, and draws a token only then. Answers 0 if somebody else has it, nothing if it was interrupted.
    fn wish(&self, tokens: &Tokens, name: &str, wait: u32) -> String {
        let (key, next) = (self.key(name), tokens.next());
        format!(
            "SELECT CONNECTION_ID(), CASE GET_LOCK({key}, {wait}) WHEN 1 THEN {next} WHEN 0 THEN 0 END"
        )
    }

    fn waiting(&self, tokens: &Tokens, lock: &LockKey) -> String {
        self.wish(tokens, &bytes(lock.as_str()), LONG)
    }
}

/// The second of what is answered.
fn told(answered: &Answered) -> Result<Option<i64>, Failure> {
    let row = answered.sets.iter().flatten().next();
    let told = row.ok_or_else(|| bad_column("GET_LOCK")).and_then(|row| column(row, 1, "GET_LOCK"));
    told.map_err(Failure::unknown)
}
