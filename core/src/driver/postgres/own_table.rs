//! Versions in a table of the user's own. The row is locked before it is changed: whoever waits for it in vain has
//! changed nothing.

use futures_util::future::join;
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

use super::fault::{State, judge_as};
use super::link::Link;
use super::live::Live;
use super::row::column;
use super::schema::MOST_BYTES;
use super::shape::{self, of_type};
use super::statement::{CLOCK, Several};
use super::transaction::BEGIN;
use crate::driver::own_table::{self, CONSTRAINT, UNFIT};
use crate::driver::sql::fault::{Fault, Next};
use crate::driver::sql::known_tables::{CHANGED, RIGHTS};
use crate::driver::sql::row::number;
use crate::driver::sql::signed;
use crate::driver::sql::transaction::{Progress, Work};
use crate::error::{Code, Error};
use crate::port::{CellKey, Change, Failure, Look, Swap, Version};

/// The statements for one table.
pub(super) struct OwnTable {
    /// Name.
    look: String,
    /// Name. It waits for whoever has the row locked.
    lock: String,
    /// Name, value, version.
    replace: String,
}

/// The server's errors on a user's own table.
const STATES: &[State] = &[
    ("42501", Code::Auth, Next::Keep, RIGHTS),
    ("42", Code::Conflict, Next::Keep, CHANGED),
    ("23", Code::Conflict, Next::Keep, CONSTRAINT),
    ("P0001", Code::Conflict, Next::Keep, CONSTRAINT),
    ("22", Code::Invalid, Next::Keep, UNFIT),
];

impl OwnTable {
    /// Finds a table that was written as `table(key, version, value)`.
    async fn find(link: &Link, client: &Client, text: &str) -> Result<Self, Fault> {
        let own = own_table::OwnTable::parse(text, MOST_BYTES).map_err(Fault::refused)?;
        let columns = [own.keyed.key, own.version, own.value];
        let types = shape::types(client, &own.keyed, &columns, judged(link, false)).await?;
        let [key, version, value] = &types[..] else { return Err(Fault::vanished()) };
        if !["smallint", "integer", "bigint"].contains(&version.as_str()) {
            return Err(Fault::refused(own.does_not_count(version)));
        }
        Ok(Self::of(&own.keyed.name('"'), own.columns('"'), key, value))
    }

    fn of(
        table: &str,
        [key, version, value]: [String; 3],
        key_type: &str,
        value_type: &str,
    ) -> Self {
        let is_it = format!("t.{key} = {}", of_type("$1::text", key_type));
        Self {
            look: format!(
                "SELECT t.{key} IS NOT NULL, t.{version}::bigint, to_jsonb(t.{value})::text, c.now
                 FROM (SELECT {CLOCK} AS now) AS c LEFT JOIN {table} AS t ON {is_it}"
            ),
            lock: format!("SELECT t.{version}::bigint FROM {table} AS t WHERE {is_it} FOR UPDATE"),
            replace: format!(
                "UPDATE {table} AS t SET {version} = t.{version} + 1, {value} = {}
                 WHERE {is_it} AND t.{version} = $3 RETURNING t.{version}::bigint, {CLOCK}",
                of_type("$2::jsonb", value_type)
            ),
        }
    }

    async fn look(&self, link: &Link, client: &Client, key: &CellKey) -> Result<Look, Fault> {
        let rows = client.query_typed(&self.look, &[(&&*key.name, Type::TEXT)]).await;
        let rows = rows.map_err(judged(link, false))?;
        let row = rows.first().ok_or_else(Fault::vanished)?;
        let read = || {
            let clock = number(column(row, 3, "now")?, "now")?;
            if !column::<bool>(row, 0, "key")? {
                return Ok(Look { cell: None, clock });
            }
            let value: Option<&str> = column(row, 2, "value")?;
            own_table::look(column(row, 1, "version")?, value.unwrap_or("null"), clock)
        };
        read().map_err(Fault::refused)
    }
}

/// Reads such a version.
pub(super) struct Read(pub(super) CellKey);

impl Work<Link> for Read {
    type Done = Look;

    async fn attempt(
        &self,
        link: &Link,
        live: &mut Live<Several>,
        _: &Progress,
    ) -> Result<Look, Fault> {
        let find = async |written: &str| OwnTable::find(link, &live.client, written).await;
        let table = link.own_tables.of(&self.0, find).await?;
        let look = table.look(link, &live.client, &self.0).await;
        link.own_tables.passed(&self.0, look)
    }
}

/// Replaces such a version if nobody was faster.
pub(super) struct Replace(pub(super) Change);

impl Work<Link> for Replace {
    type Done = Swap;

    fn turns<'p>(&self, link: &'p Link) -> &'p tokio::sync::Semaphore {
        &link.own_turns
    }

    async fn attempt(
        &self,
        link: &Link,
        live: &mut Live<Several>,
        progress: &Progress,
    ) -> Result<Swap, Fault> {
        let Self(Change { key, expected, value, .. }) = self;
        let Live { client, .. } = live;
        let find = async |written: &str| OwnTable::find(link, client, written).await;
        let table = link.own_tables.of(key, find).await?;
        let (name, value, expected) = (&*key.name, value.as_deref(), expected.map(Version::get));
        // One flight: what is polled first is sent first.
        let named: [(&(dyn ToSql + Sync), Type); 1] = [(&name, Type::TEXT)];
        let (begun, rows) =
            join(client.batch_execute(BEGIN), client.query_typed(&table.lock, &named)).await;
        begun.map_err(judged(link, false))?;
        let rows = link.own_tables.passed(key, rows.map_err(judged(link, false)))?;
        let present: Option<i64> = match rows.first() {
            Some(row) => column(row, 0, "version").map_err(Fault::refused)?,
            None => None,
        };
        let expected = signed(expected.unwrap_or_default());
        if present != Some(expected) {
            client.batch_execute("ROLLBACK").await.map_err(judged(link, false))?;
            return Ok(Swap::Other(table.look(link, client, key).await?));
        }
        progress.decides();
        let values: [(&(dyn ToSql + Sync), Type); 3] =
            [(&name, Type::TEXT), (&value, Type::TEXT), (&expected, Type::INT8)];
        let (rows, committed) =
            join(client.query_typed(&table.replace, &values), client.batch_execute("COMMIT")).await;
        let rows = link.own_tables.passed(key, rows.map_err(judged(link, true)))?;
        committed.map_err(judged(link, true))?;
        let told = rows.first().map(|row| {
            let version: i64 = column(row, 0, "version")?;
            let risen = u64::try_from(version).ok().filter(|_| version > expected);
            Ok((risen.ok_or_else(not_risen)?, number(column(row, 1, "now")?, "now")?))
        });
        match told.unwrap_or_else(|| Err(not_risen())) {
            Ok((version, since)) => Ok(Swap::Done { version: Version::new(version), since }),
            Err(error) => Err(Fault { failure: Failure::unknown(error), next: Next::Keep }),
        }
    }
}

/// The fault that a failed statement on such a table amounts to.
fn judged(link: &Link, decides: bool) -> impl Fn(tokio_postgres::Error) -> Fault {
    move |error| judge_as(&link.address, &error, decides, STATES)
}

fn not_risen() -> Error {
    let message =
        "the row was changed, but its version did not rise; look at the triggers of your table";
    Error::new(Code::Conflict, message)
}
