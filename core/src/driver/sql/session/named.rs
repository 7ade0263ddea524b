//! The server's own locks of names, by numbers or hashes of them.

use std::marker::PhantomData;
use std::sync::Arc;

use super::connection::{Connection, second};
use super::{SessionDialect, Way};
use crate::driver::sql::dialect::Tables;
use crate::driver::sql::fault::{Fault, lost};
use crate::driver::sql::statement::{Statement, name};
use crate::error::Result;
use crate::fence::Token;
use crate::options::Options;
use crate::port::{Failure, LockKey, Mode, names_unknown};

/// Locks of names, which the server itself keeps.
pub struct Named<D> {
    tables: Tables,
    dialect: PhantomData<fn() -> D>,
}

/// The statements: for a lock that is held alone, and for readers.
pub struct Statements {
    take: [Arc<str>; 2],
    wait: [Arc<str>; 2],
    free: [Arc<str>; 2],
    /// Draws a token.
    draw: Arc<str>,
}

impl<D: SessionDialect> Way<D> for Named<D> {
    type Found = Statements;

    const ROWS: bool = false;

    fn new(_: &Options, tables: &Tables) -> Result<Self> {
        Ok(Self { tables: tables.clone(), dialect: PhantomData })
    }

    async fn find(&self, connection: &mut D::Connection) -> Result<Statements, Fault> {
        let token = D::token(connection, &self.tables);
        let of = |shared| D::named(&self.tables, &token, shared).map(Arc::<str>::from);
        let ([take, wait, free], [take_shared, wait_shared, free_shared]) = (of(false), of(true));
        let (take, wait, free) = ([take, take_shared], [wait, wait_shared], [free, free_shared]);
        let each: Vec<_> = take.iter().chain(&wait).chain(&free).cloned().collect();
        D::prepare(connection, &each, None, D::known(false)).await?;
        let draw = format!("{}, {token}", D::BEAT).into();
        Ok(Statements { take, wait, free, draw })
    }

    async fn lock(
        &self,
        session: &Connection<D, Self>,
        lock: &LockKey,
        mode: Mode,
        wait: bool,
    ) -> Result<Option<Token>, Failure> {
        let (Statements { take, wait: waiting, draw, .. }, shared) =
            (&session.found, usize::from(mode == Mode::Read));
        let values = [name(lock.as_str())];
        let asked = if !wait {
            Statement::kept(&take[shared], values)
        } else if D::WAITS_SHORTLY {
            Statement::kept(&waiting[shared], values)
        } else {
            // Others see in its text who waits for what.
            Statement::once(waiting[shared].clone(), values)
        };
        loop {
            match second(&session.ask(vec![asked.clone()]).await?)? {
                None if wait && D::WAITS_SHORTLY => {}
                // The server has given it up.
                None if wait => return Ok(None),
                None => {
                    return Err(lost(&D::NAME, "the server gave the statement up", true).failure);
                }
                Some(0) => return Ok(None),
                Some(_) if wait && !D::WAITS_SHORTLY => {
                    // It opens a table, and a statement that does holds up whoever wants the whole server read-only, as a backup does. So it is not
                    // in the one that waits.
                    let drawn = session.ask(vec![Statement::once(draw.clone(), [])]).await?;
                    return Ok(second(&drawn)?.map(|token| Token::new(token as u64)));
                }
                Some(token) => return Ok(Some(Token::new(token as u64))),
            }
        }
    }

    async fn unlock(
        &self,
        session: &Connection<D, Self>,
        lock: &LockKey,
        mode: Mode,
    ) -> Result<bool, Failure> {
        let free = &session.found.free[usize::from(mode == Mode::Read)];
        let answer = session.ask(vec![Statement::kept(free, [name(lock.as_str())])]).await?;
        Ok(second(&answer)? == Some(1))
    }

    async fn unlock_all(&self, session: &Connection<D, Self>) -> Result<(), Failure> {
        session.ask(vec![Statement::once(D::FREE_ALL, [])]).await.map(drop)
    }

    fn look(&self, session: &Connection<D, Self>, lock: &LockKey) -> Vec<Statement> {
        D::look_named(&self.tables, &session.found.wait[0], lock)
    }

    async fn names(&self, _: &Connection<D, Self>, _: &str) -> Result<Vec<LockKey>> {
        Err(names_unknown())
    }
}
