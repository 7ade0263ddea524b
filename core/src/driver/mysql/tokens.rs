//! Where fencing tokens come from.
//!
//! MariaDB has sequences. What is drawn stays drawn, whatever becomes of the transaction. A crash may lose some that were drawn in the
//! milliseconds before it. So a sequence is set two minutes ahead of the clock, if it is behind it or not so far ahead of the moment the
//! server started.
//!
//! On MySQL a token is the server's clock, read behind the grant. Whoever is granted the lock next reads it later.

use super::session::NUMBERS;
use crate::driver::mysql::connection::Connection;
use crate::driver::mysql::dialect::Mysql;
use crate::driver::mysql::version::Version;
use crate::driver::sql::dialect::{Connection as _, Dialect};
use crate::driver::sql::fault::{Fault, bad_column};
use crate::driver::sql::statement::{Row, Statement, column};
use crate::driver::sql::tables::Tables;
use crate::error::Result;

/// A second, in microseconds as tokens are.
const SECOND: u64 = 1_000_000;

/// How far ahead of the clock a sequence is set.
const LEAD: u64 = 120 * SECOND;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tokens {
    /// The sequence of this name.
    Sequence(String),
    Clock,
}

impl Tokens {
    pub(super) fn of(version: Version, tables: &Tables) -> Self {
        if version.is_mariadb { Self::Sequence(tables.tokens.clone()) } else { Self::Clock }
    }

    /// A new one, in SQL.
    pub(super) fn next(&self) -> String {
        match self {
            Self::Sequence(name) => format!("NEXTVAL({name})"),
            Self::Clock => Mysql::CLOCK.to_owned(),
        }
    }

    /// Makes sure that tokens rise, before a session locks.
    pub(super) async fn advance(&self, connection: &mut Connection) -> Result<(), Fault> {
        let (Self::Sequence(name), clock) = (self, Mysql::CLOCK) else { return Ok(()) };
        let asked = format!(
            "SELECT CAST(next_not_cached_value AS SIGNED) - CAST(cache_size * increment AS SIGNED), {clock}, (SELECT CAST(VARIABLE_VALUE AS UNSIGNED)
                 FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'UPTIME') FROM {name}"
        );
        let answer = connection.ask_of(&[Statement::bare(asked)], false, NUMBERS).await?;
        let read = answer.row().ok_or_else(|| bad_column("token")).and_then(ahead);
        if let Some(ahead) = read.map_err(Fault::refused)? {
            // It takes a number and no expression, and none that is less than the last.
            let set = format!("DO SETVAL({name}, {ahead})");
            connection.ask_of(&[Statement::bare(set)], false, NUMBERS).await?;
        }
        Ok(())
    }
}

/// To what the sequence is to be set, if it is behind. That is more than was drawn before this moment: nothing was ever set further
/// ahead, and fewer than 31,250 are drawn in a second, each 32 more than the last. So tokens rise over a restart, also if the database was
/// restored meanwhile. A backup that is loaded while the server runs is not noticed: see docs/reference/session-guarantees.md.
fn ahead(row: &Row) -> Result<Option<u64>> {
    let next = column::<i64>(row, 0, "next_not_cached_value")?;
    let (now, uptime) = (column::<u64>(row, 1, "now")?, column::<u64>(row, 2, "uptime")?);
    // The uptime is counted in whole seconds, so the server may have started a second later than it says.
    let started = now.saturating_sub(uptime.saturating_mul(SECOND)) + SECOND;
    let least = now.max(started + LEAD);
    let is_behind = u64::try_from(next).is_ok_and(|next| next < least) || next < 0;
    Ok(is_behind.then_some(now + LEAD))
}
