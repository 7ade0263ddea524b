//! Where fencing tokens come from.
//!
//! MariaDB has sequences. What is drawn stays drawn, whatever becomes of the transaction. A crash may lose some that were drawn in the
//! milliseconds before it. So a sequence is set two minutes ahead of the clock, if it is behind it or not so far ahead of the moment the
//! server started.
//!
//! On MySQL a token is the server's clock, read behind the grant. Whoever is granted the lock next reads it later.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};

use super::way::Judge;
use crate::driver::mysql::row::column;
use crate::driver::mysql::statement::CLOCK;
use crate::driver::mysql::version::Version;
use crate::driver::sql::fault::bad_column;
use crate::driver::sql::tables::Tables;
use crate::error::Result;

/// A second, in microseconds as tokens are.
const SECOND: u64 = 1_000_000;

/// How far ahead of the clock a sequence is set.
const LEAD: u64 = 120 * SECOND;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tokens {
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
            Self::Clock => CLOCK.to_owned(),
        }
    }

    /// Makes sure that tokens rise, before a session locks.
    pub(super) async fn advance(&self, conn: &mut Conn, judged: Judge<'_>) -> Result<()> {
        let Self::Sequence(name) = self else { return Ok(()) };
        let asked = format!(
            "SELECT CAST(next_not_cached_value AS SIGNED) - CAST(cache_size * increment AS SIGNED), {CLOCK}, (SELECT CAST(VARIABLE_VALUE AS UNSIGNED)
                 FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'UPTIME') FROM {name}"
        );
        let row: Option<Row> = conn.query_first(asked).await.map_err(judged)?;
        let row = row.ok_or_else(|| bad_column("token"))?;
        if let Some(ahead) = ahead(&row)? {
            // It takes a number and no expression, and none that is less than the last.
            let set = format!("DO SETVAL({name}, {ahead})");
            conn.query_drop(set).await.map_err(judged)?;
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
