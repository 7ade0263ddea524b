//! The catalogue's description of a table of the user's own, and which of its rows a name stands for.

use mysql_async::{Conn, Row};

use super::literal::text;
use super::live::{Statement, ask};
use super::row::column;
use crate::driver::own_table::KeyedTable;
use crate::driver::sql::fault::Fault;
use crate::error::Result;

/// A column as the catalogue describes it.
#[derive(Clone)]
pub(super) struct Column {
    name: String,
    pub(super) kind: String,
    /// It is a key by itself.
    pub(super) is_unique: bool,
    pub(super) is_json: bool,
    /// Its table locks rows for a transaction.
    has_transactions: bool,
}

impl Column {
    fn of(row: &Row) -> Result<Self> {
        Ok(Self {
            name: column(row, 0, "name")?,
            kind: column(row, 1, "type")?,
            is_unique: column::<i64>(row, 2, "unique")? != 0,
            is_json: column::<i64>(row, 3, "json")? != 0,
            has_transactions: column::<i64>(row, 4, "engine")? != 0,
        })
    }
}

/// These columns of a table. Refused if it or one of them is missing.
pub(super) async fn columns(
    conn: &mut Conn,
    table: &KeyedTable<'_>,
    names: &[&str],
    judged: impl Fn(mysql_async::Error) -> Fault,
) -> std::result::Result<Vec<Column>, Fault> {
    let rows = ask(conn, &Statement::Text(shape(table))).await.map_err(judged)?.rows();
    if rows.is_empty() {
        return Err(Fault::refused(table.no_table()));
    }
    let shown: Result<Vec<Column>> = rows.iter().map(Column::of).collect();
    let shown = shown.map_err(Fault::refused)?;
    if shown.iter().any(|column| !column.has_transactions) {
        return Err(Fault::refused(table.no_transactions()));
    }
    let found = names.iter().map(|name| {
        let found = shown.iter().find(|column| column.name.eq_ignore_ascii_case(name));
        found.cloned().ok_or_else(|| Fault::refused(table.no_column(name)))
    });
    found.collect()
}

/// The SQL condition that a row has this name as its key. Text that only begins with a number is no number.
pub(super) fn is_it(key: &str, name: &str) -> String {
    let name = text(name);
    format!("{key} = {name} AND CAST({key} AS CHAR) = {name}")
}

/// The columns of a table: names, types, whether each is a key by itself, whether it holds JSON, whether its table has transactions.
fn shape(table: &KeyedTable<'_>) -> String {
    let schema = table.table.schema.map_or("DATABASE()".to_owned(), text);
    let table = text(table.table.name);
    // Each kind of server reads one of the comments.
    format!(
        "SELECT c.COLUMN_NAME, c.DATA_TYPE, EXISTS (SELECT 1 FROM information_schema.STATISTICS AS s
             WHERE s.TABLE_SCHEMA = c.TABLE_SCHEMA AND s.TABLE_NAME = c.TABLE_NAME AND s.NON_UNIQUE = 0 AND s.SEQ_IN_INDEX = 1
                 AND s.COLUMN_NAME = c.COLUMN_NAME AND s.SUB_PART IS NULL AND NOT EXISTS (SELECT 1 FROM information_schema.STATISTICS AS o
                     WHERE o.TABLE_SCHEMA = s.TABLE_SCHEMA AND o.TABLE_NAME = s.TABLE_NAME AND o.INDEX_NAME = s.INDEX_NAME
                         AND o.SEQ_IN_INDEX = 2)),
             c.DATA_TYPE = 'json' /*M! OR EXISTS (SELECT 1 FROM information_schema.CHECK_CONSTRAINTS AS k
                 WHERE k.CONSTRAINT_SCHEMA = c.TABLE_SCHEMA AND k.TABLE_NAME = c.TABLE_NAME
                     AND k.CHECK_CLAUSE = CONCAT('json_valid(`', c.COLUMN_NAME, '`)')) */,
             NOT EXISTS (SELECT 1 FROM information_schema.TABLES AS t JOIN information_schema.ENGINES AS e ON e.ENGINE = t.ENGINE
                 WHERE t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME AND e.TRANSACTIONS <> 'YES')
         FROM information_schema.COLUMNS AS c WHERE c.TABLE_SCHEMA = {schema} AND c.TABLE_NAME = {table}"
    )
}
