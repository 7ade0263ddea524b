//! The catalogue's description of a table of the user's own, and how a name becomes a value of its key.

use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::row::column;
use crate::driver::own_table::KeyedTable;
use crate::driver::sql::fault::Fault;
use crate::error::Result;

/// The types of the columns, and whether the first is a key by itself. Table, columns.
const SHAPE: &str = "WITH t AS (SELECT to_regclass($1) AS oid), c AS (
        SELECT a.attname, a.attnum, format_type(a.atttypid, -1) AS type FROM pg_attribute AS a, t
        WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped)
    SELECT t.oid IS NOT NULL,
        ARRAY(SELECT (SELECT type FROM c WHERE attname = n.name) FROM unnest($2::text[]) WITH ORDINALITY AS n(name, at) ORDER BY n.at),
        EXISTS (SELECT FROM pg_index AS i, c WHERE i.indrelid = t.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
            AND i.indnkeyatts = 1 AND i.indkey[0] = c.attnum AND c.attname = ($2::text[])[1])
        AND NOT EXISTS (SELECT FROM pg_inherits AS h, pg_class AS p WHERE h.inhparent = t.oid AND p.oid = t.oid AND p.relkind = 'r')
    FROM t";

/// The types of these columns, of which the first is the key. Refused if one is missing, or the key is of no use as such.
pub(super) async fn types(
    client: &Client,
    table: &KeyedTable<'_>,
    columns: &[&str],
    judged: impl Fn(tokio_postgres::Error) -> Fault,
) -> Result<Vec<String>, Fault> {
    let name = table.name('"');
    let rows =
        client.query_typed(SHAPE, &[(&name, Type::TEXT), (&columns, Type::TEXT_ARRAY)]).await;
    let rows = rows.map_err(judged)?;
    let row = rows.first().ok_or_else(Fault::vanished)?;
    let told = || {
        if !column::<bool>(row, 0, "table")? {
            return Err(table.no_table());
        }
        let types = column::<Vec<Option<String>>>(row, 1, "types")?.into_iter().zip(columns);
        let types: Vec<String> = types
            .map(|(kind, name)| kind.ok_or_else(|| table.no_column(name)))
            .collect::<Result<_>>()?;
        if types.first().is_some_and(|key| ["name", "\"char\""].contains(&key.as_str())) {
            return Err(table.does_not_name(&types[0]));
        }
        if column(row, 2, "unique")? { Ok(types) } else { Err(table.not_unique()) }
    };
    told().map_err(Fault::refused)
}

/// A parameter as a value of this type, by the input of the type: a cast would cut what is too long.
pub(super) fn of_type(parameter: &str, kind: &str) -> String {
    format!(
        "(SELECT x.it FROM jsonb_to_record(jsonb_build_object('it', {parameter})) AS x(it {kind}))"
    )
}
