//! The server's named locks, `GET_LOCK`. A session gets again what it has, so it is asked for each name once.

use std::sync::Arc;

use super::connection::Connection;
use super::guarantees;
use super::key::key;
use super::tokens::Tokens;
use super::view;
use super::way::Way;
use crate::driver::mysql::connection::Connection as Live;
use crate::driver::mysql::literal::bytes;
use crate::driver::sql::fault::{Fault, bad_column, lost};
use crate::driver::sql::statement::{Answer, Statement, column, name};
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
            Mode::Read | Mode::Write => {
                Some("named locks of MySQL have no readers; for readers and writers use `mysql://`")
            }
            Mode::Permit => Some("named locks of MySQL do not count; for permits use `mysql://`"),
        }
    }

    async fn find(&self, _: &mut Live, tokens: Tokens) -> Result<Statements, Fault> {
        let take = self.take(&tokens).into();
        let free = format!("SELECT CONNECTION_ID(), RELEASE_LOCK({})", self.key("$1")).into();
        Ok(Statements { take, free, tokens })
    }

    async fn lock(
        &self,
        session: &Connection<Self>,
        lock: &LockKey,
        wait: bool,
    ) -> Result<Option<Token>, Failure> {
        let Statements { take, tokens, .. } = &session.found;
        if wait {
            let waited = session.ask(Statement::bare(self.waiting(lock))).await?;
            if told(&waited)? != Some(1) {
                // The server has given it up.
                return Ok(None);
            }
        }
        let statement = if wait {
            Statement::bare(format!("SELECT CONNECTION_ID(), {}", tokens.next()))
        } else {
            Statement::kept(take, [name(lock.as_str())])
        };
        match told(&session.ask(statement).await?)? {
            None => Err(lost(&"MySQL", "the server gave the statement up", true).failure),
            Some(0) => Ok(None),
            Some(token) => Ok(u64::try_from(token).ok().map(Token::new)),
        }
    }

    async fn unlock(&self, session: &Connection<Self>, lock: &LockKey) -> Result<bool, Failure> {
        let asked = Statement::kept(&session.found.free, [name(lock.as_str())]);
        let answered = session.ask(asked).await?;
        Ok(told(&answered)? == Some(1))
    }

    async fn unlock_all(&self, session: &Connection<Self>) -> Result<(), Failure> {
        let all = "SELECT CONNECTION_ID(), RELEASE_ALL_LOCKS()";
        session.ask(Statement::bare(all)).await.map(drop)
    }

    async fn look(&self, session: &Connection<Self>, lock: &LockKey) -> Result<LockState, Failure> {
        let holder = format!("IS_USED_LOCK({})", self.key(&bytes(lock.as_str())));
        view::look(session, &holder, &self.waiting(lock)).await
    }

    async fn names(&self, _: &Connection<Self>, _: &str) -> Result<Vec<LockKey>> {
        Err(names_unknown())
    }
}

impl Named {
    fn key(&self, name: &str) -> String {
        key(&self.tables, name)
    }

    /// Takes a lock, and draws a token only then. Answers 0 if somebody else has it.
    fn take(&self, tokens: &Tokens) -> String {
        let (key, next) = (self.key("$1"), tokens.next());
        format!(
            "SELECT CONNECTION_ID(), CASE GET_LOCK({key}, 0) WHEN 1 THEN {next} WHEN 0 THEN 0 END"
        )
    }

    /// Waits for a lock, with the name in the text, by which others see who waits for what. It opens no table: a statement that does holds
    /// up whoever wants the whole server read-only, as a backup does. So the token is drawn in another one.
    fn waiting(&self, lock: &LockKey) -> String {
        format!("SELECT CONNECTION_ID(), GET_LOCK({}, {LONG})", self.key(&bytes(lock.as_str())))
    }
}

/// The second of what is answered.
fn told(answered: &Answer) -> Result<Option<i64>, Failure> {
    let row = answered.row();
    let told = row.ok_or_else(|| bad_column("GET_LOCK")).and_then(|row| column(row, 1, "GET_LOCK"));
    told.map_err(Failure::unknown)
}
