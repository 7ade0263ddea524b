//! Tables of the user's own: their description in the catalogue, and the statements for their versions.

use super::connection::Connection;
use super::dialect::Postgres;
use super::fault::{OWN_TABLE, State};
use crate::driver::own_table::{KeyedTable, OwnTable};
use crate::driver::sql::dialect::Dialect;
use crate::driver::sql::fault::Fault;
use crate::driver::sql::own_table::{Kind, Layout};
use crate::driver::sql::statement::{Row, Statement, Value, column};
use crate::error::Result;

/// For each of the columns $2: whether the table $1 is there, the column's type, and whether it is a key by itself.
const SHAPE: &str = "WITH t AS (SELECT to_regclass($1) AS oid), c AS (
        SELECT a.attname, a.attnum, format_type(a.atttypid, -1) AS type FROM pg_attribute AS a, t
        WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped)
    SELECT t.oid IS NOT NULL, c.type,
        EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = t.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
            AND i.indnkeyatts = 1 AND i.indkey[0] = c.attnum)
        AND NOT EXISTS (SELECT FROM pg_inherits AS h, pg_class AS p WHERE h.inhparent = t.oid AND p.oid = t.oid AND p.relkind = 'r')
    FROM t, unnest($2::text[]) WITH ORDINALITY AS n(name, at) LEFT JOIN c ON c.attname = n.name ORDER BY n.at";

/// The types of these columns, of which the first is the key. Refused if one is missing, or the key is of no use as such.
pub(super) async fn types(
    connection: &Connection,
    table: &KeyedTable<'_>,
    columns: &[&str],
    known: &[State],
) -> Result<Vec<String>, Fault> {
    let names = columns.iter().map(|&name| name.to_owned()).collect();
    let asked = Statement::once(SHAPE, [table.name('"').into(), Value::Names(names)]);
    let rows = connection.send(&[asked], false, known).await?.rows();
    let shown = |(row, name): (&Row, &&str)| {
        if !column::<bool>(row, 0, "table")? {
            return Err(table.no_table());
        }
        let kind = column::<Option<&str>>(row, 1, "type")?;
        Ok((kind.ok_or_else(|| table.no_column(name))?.to_owned(), column(row, 2, "unique")?))
    };
    let shown: Result<Vec<(String, bool)>> = rows.iter().zip(columns).map(shown).collect();
    let shown = shown.map_err(Fault::refused)?;
    let (key, is_unique) = shown.first().ok_or_else(Fault::vanished)?;
    if ["name", "\"char\""].contains(&key.as_str()) {
        return Err(Fault::refused(table.does_not_name(key)));
    }
    if !is_unique {
        return Err(Fault::refused(table.not_unique()));
    }
    Ok(shown.into_iter().map(|(kind, _)| kind).collect())
}

/// The statements for the versions in a table.
pub(super) async fn layout(connection: &Connection, own: &OwnTable<'_>) -> Result<Layout, Fault> {
    let columns = [own.keyed.key, own.version, own.value];
    let types = types(connection, &own.keyed, &columns, OWN_TABLE).await?;
    let [key_type, version_type, value_type] = &types[..] else { return Err(Fault::vanished()) };
    if !["smallint", "integer", "bigint"].contains(&version_type.as_str()) {
        return Err(Fault::refused(own.does_not_count(version_type)));
    }
    let (table, clock) = (own.keyed.name('"'), Postgres::CLOCK);
    let [key, version, value] = own.columns('"');
    let is_it = format!("t.{key} = {}", of_type("$1::text", key_type));
    Ok(Layout {
        look: vec![format!(
            "SELECT t.{key} IS NOT NULL, t.{version}::bigint, to_jsonb(t.{value})::text, c.now
             FROM (SELECT {clock} AS now) AS c LEFT JOIN {table} AS t ON {is_it}"
        )],
        lock: format!(
            "SELECT t.{version}::bigint, {clock} FROM {table} AS t WHERE {is_it} FOR UPDATE"
        ),
        replace: format!(
            "UPDATE {table} AS t SET {version} = t.{version} + 1, {value} = {}
             WHERE {is_it} AND t.{version} = $3 RETURNING t.{version}::bigint, {clock}",
            of_type("$2::jsonb", value_type)
        ),
        kind: Kind::Json,
    })
}

/// A parameter as a value of this type, by the input of the type: a cast would cut what is too long.
pub(super) fn of_type(parameter: &str, kind: &str) -> String {
    format!(
        "(SELECT x.it FROM jsonb_to_record(jsonb_build_object('it', {parameter})) AS x(it {kind}))"
    )
}
