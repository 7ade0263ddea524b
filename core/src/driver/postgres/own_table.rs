//! Versions in a table of the user's own. Nothing there is fencelock's, so a change is one statement that names the version it expects.

use std::sync::Arc;

use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

use super::fault::{State, judge_as};
use super::link::Link;
use super::live::Live;
use super::row::column;
use super::schema::MOST_BYTES;
use super::statement::{CLOCK, Several};
use crate::driver::identifier::{self, quoted};
use crate::driver::sql::fault::{Fault, Next};
use crate::driver::sql::row::number;
use crate::driver::sql::signed;
use crate::driver::sql::transaction::{Progress, Work};
use crate::error::{Code, Error};
use crate::port::{Cell, CellKey, Change, Look, Mark, OwnerId, Swap, Version};

/// The statements for one table.
pub(super) struct OwnTable {
    /// Name.
    look: String,
    /// Name, value, version.
    replace: String,
}

/// What the server says of somebody else's table.
const STATES: &[State] = &[
    (
        "42501",
        Code::Auth,
        Next::Keep,
        "the user may not do this; grant it SELECT and UPDATE on your table",
    ),
    (
        "23",
        Code::Conflict,
        Next::Keep,
        "a constraint of your table does not take this value; see `reply`",
    ),
    (
        "22",
        Code::Invalid,
        Next::Keep,
        "the column with the value does not take this value, or the one with the key this name; see `reply`",
    ),
    (
        "P0001",
        Code::Conflict,
        Next::Keep,
        "a trigger of your table refused the change; see `reply`",
    ),
];

/// The types of the three columns, and whether the first is a key by itself. Table, key, version, value.
const SHAPE: &str = "WITH t AS (SELECT to_regclass($1) AS oid), c AS (
        SELECT a.attname, a.attnum, format_type(a.atttypid, -1) AS type FROM pg_attribute AS a, t
        WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped)
    SELECT t.oid IS NOT NULL, (SELECT type FROM c WHERE attname = $2), (SELECT type FROM c WHERE attname = $3),
        (SELECT type FROM c WHERE attname = $4), EXISTS (SELECT FROM pg_index AS i, c WHERE i.indrelid = t.oid AND i.indisunique
            AND i.indpred IS NULL AND i.indnkeyatts = 1 AND i.indkey[0] = c.attnum AND c.attname = $2)
    FROM t";

impl OwnTable {
    /// Finds a table that was written as `table(key, version, value)`.
    async fn find(link: &Link, client: &Client, text: &str) -> Result<Self, Fault> {
        let own = identifier::OwnTable::parse(text, MOST_BYTES).map_err(Fault::refused)?;
        let table = format!("{}{}", own.table.place('"'), quoted('"', own.table.name));
        let judged = |error: tokio_postgres::Error| judge_as(&link.address, &error, false, STATES);
        let names = [&*table, own.key, own.version, own.value];
        let names = names.each_ref().map(|name| (name as &(dyn ToSql + Sync), Type::TEXT));
        let rows = client.query_typed(SHAPE, &names).await.map_err(judged)?;
        let row = rows.first().ok_or_else(Fault::vanished)?;
        let text = |at, name| column::<Option<&str>>(row, at, name).map_err(Fault::refused);
        let truth = |at, name| column::<bool>(row, at, name).map_err(Fault::refused);
        let wrong = |message: String| Fault::refused(Error::invalid("on_table", message));
        if !truth(0, "table")? {
            return Err(wrong(format!(
                "there is no table {table} where this session looks (`schema`, or the user's `search_path`); write it as `schema.table`"
            )));
        }
        let typed = |at, column: &str| {
            let missing = || wrong(format!("the table {table} has no column `{column}`"));
            text(at, "type")?.ok_or_else(missing)
        };
        let key = typed(1, own.key)?;
        let version = typed(2, own.version)?;
        let value = typed(3, own.value)?;
        if !["smallint", "integer", "bigint"].contains(&version) {
            return Err(wrong(format!(
                "the column `{}` counts versions and has to be of the type smallint, integer or bigint, not {version}",
                own.version
            )));
        }
        if !truth(4, "unique")? {
            return Err(wrong(format!(
                "several rows can have the same `{}`; make that column the primary key, or unique",
                own.key
            )));
        }
        Ok(Self::of(
            &table,
            [own.key, own.version, own.value].map(|name| quoted('"', name)),
            key,
            value,
        ))
    }

    fn of(
        table: &str,
        [key, version, value]: [String; 3],
        key_type: &str,
        value_type: &str,
    ) -> Self {
        let is_it = format!("t.{key} = CAST($1 AS {key_type})");
        Self {
            look: format!(
                "SELECT t.{key} IS NOT NULL, t.{version}::bigint, to_jsonb(t.{value})::text, c.now
                 FROM (SELECT {CLOCK} AS now) AS c LEFT JOIN {table} AS t ON {is_it}"
            ),
            replace: format!(
                "UPDATE {table} AS t SET {version} = t.{version} + 1, {value} = (SELECT x.value
                     FROM jsonb_to_record(jsonb_build_object('value', $2::jsonb)) AS x(value {value_type}))
                 WHERE {is_it} AND t.{version} = $3 RETURNING t.{version}::bigint, {CLOCK}"
            ),
        }
    }

    async fn look(&self, link: &Link, client: &Client, key: &CellKey) -> Result<Look, Fault> {
        let judged = |error: tokio_postgres::Error| judge_as(&link.address, &error, false, STATES);
        let rows = client.query_typed(&self.look, &[(&&*key.name, Type::TEXT)]).await;
        let rows = rows.map_err(judged)?;
        let row = rows.first().ok_or_else(Fault::vanished)?;
        let read = || {
            let clock = number(column(row, 3, "now")?, "now")?;
            if !column::<bool>(row, 0, "key")? {
                return Ok(Look { cell: None, clock });
            }
            let number: Option<i64> = column(row, 1, "version")?;
            let counted = number.and_then(|number| u64::try_from(number).ok());
            let version = counted.map(Version::new).ok_or_else(no_version)?;
            let value: Option<&str> = column(row, 2, "value")?;
            let mark = Mark { version, writer: OwnerId::NOBODY };
            let value = Some(value.unwrap_or("null").into());
            Ok(Look { cell: Some(Cell { value, since: clock, trail: vec![mark] }), clock })
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
        let table = known(link, &live.client, &self.0).await?;
        forgetting(link, &self.0, table.look(link, &live.client, &self.0).await)
    }
}

/// Replaces such a version if nobody was faster.
pub(super) struct Replace(pub(super) Change);

impl Work<Link> for Replace {
    type Done = Swap;

    async fn attempt(
        &self,
        link: &Link,
        live: &mut Live<Several>,
        progress: &Progress,
    ) -> Result<Swap, Fault> {
        let Self(Change { key, expected, value, .. }) = self;
        let table = known(link, &live.client, key).await?;
        let (name, expected) = (&*key.name, signed(expected.map_or(0, Version::get)));
        progress.decides();
        let value = value.as_deref();
        let values: [(&(dyn ToSql + Sync), Type); 3] =
            [(&name, Type::TEXT), (&value, Type::TEXT), (&expected, Type::INT8)];
        let replaced = live.client.query_typed(&table.replace, &values).await;
        let judged = |error: tokio_postgres::Error| judge_as(&link.address, &error, true, STATES);
        let rows = forgetting(link, key, replaced.map_err(judged))?;
        let Some(row) = rows.first() else {
            return Ok(Swap::Other(table.look(link, &live.client, key).await?));
        };
        let read = || {
            let version = Version::new(number(column(row, 0, "version")?, "version")?);
            Ok(Swap::Done { version, since: number(column(row, 1, "now")?, "now")? })
        };
        read().map_err(Fault::refused)
    }
}

/// The statements for the table of a key. They are kept.
async fn known(link: &Link, client: &Client, key: &CellKey) -> Result<Arc<OwnTable>, Fault> {
    let text = key.table.clone().unwrap_or_default();
    let known = link.own_tables.lock().get(&text).cloned();
    if let Some(known) = known {
        return Ok(known);
    }
    let found = Arc::new(OwnTable::find(link, client, &text).await?);
    link.own_tables.lock().insert(text, found.clone());
    Ok(found)
}

/// After a failure the table is looked at again: it may have become another.
fn forgetting<T>(link: &Link, key: &CellKey, answer: Result<T, Fault>) -> Result<T, Fault> {
    if answer.is_err() {
        link.own_tables.lock().retain(|text, _| Some(text) != key.table.as_ref());
    }
    answer
}

fn no_version() -> Error {
    let message = "this row has no version: the column is NULL or negative; give it the value 0, and the column NOT NULL DEFAULT 0";
    Error::new(Code::Conflict, message)
}
