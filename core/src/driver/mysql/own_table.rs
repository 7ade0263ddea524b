//! Tables of the user's own: their description in the catalogue, and the statements for their versions.

use super::connection::Connection;
use super::dialect::Mysql;
use super::fault::{Number, OWN_TABLE};
use super::literal::text;
use crate::driver::own_table::{KeyedTable, OwnTable};
use crate::driver::sql::dialect::{Connection as _, Dialect};
use crate::driver::sql::fault::Fault;
use crate::driver::sql::own_table::{Kind, Layout};
use crate::driver::sql::statement::{Row, Statement, column};
use crate::error::{Error, Result};

const WHOLE: &[&str] = &["tinyint", "smallint", "mediumint", "int", "bigint"];
const NUMERIC: &[&str] = &["decimal", "float", "double", "year"];
/// The types of columns whose values cannot be converted to text.
const BYTES: &[&str] =
    &["bit", "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "geometry"];

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
            name: column::<&str>(row, 0, "name")?.to_owned(),
            kind: column::<&str>(row, 1, "type")?.to_owned(),
            is_unique: column::<i64>(row, 2, "unique")? != 0,
            is_json: column::<i64>(row, 3, "json")? != 0,
            has_transactions: column::<i64>(row, 4, "engine")? != 0,
        })
    }
}

/// These columns of a table. Refused if it or one of them is missing.
pub(super) async fn columns(
    connection: &mut Connection,
    table: &KeyedTable<'_>,
    names: &[&str],
    known: &'static [Number],
) -> Result<Vec<Column>, Fault> {
    let rows = connection.ask_of(&[Statement::bare(shape(table))], false, known).await?.rows();
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

/// The statements for the versions in a table.
pub(super) async fn layout(
    connection: &mut Connection,
    own: &OwnTable<'_>,
) -> Result<Layout, Fault> {
    let names = [own.keyed.key, own.version, own.value];
    let found = columns(connection, &own.keyed, &names, OWN_TABLE).await?;
    let [key, version, value] = &found[..] else { return Err(Fault::vanished()) };
    if !WHOLE.contains(&&*version.kind) {
        return Err(Fault::refused(own.does_not_count(&version.kind)));
    }
    if !key.is_unique {
        return Err(Fault::refused(own.keyed.not_unique()));
    }
    let kind = match &*value.kind {
        _ if value.is_json => Kind::Document,
        kind if WHOLE.contains(&kind) || NUMERIC.contains(&kind) => Kind::Number,
        kind if BYTES.contains(&kind) => {
            let message = format!("a column of the type {kind} holds no value that JSON knows");
            return Err(Fault::refused(Error::invalid("on_table", message)));
        }
        _ => Kind::Text,
    };
    let ([key, version, value], table, clock) =
        (own.columns('`'), own.keyed.name('`'), Mysql::CLOCK);
    let is_it = is_it(&key, "$1");
    Ok(Layout {
        look: vec![
            format!("SELECT TRUE, {version}, {value} FROM {table} WHERE {is_it}"),
            format!("SELECT {clock}"),
        ],
        lock: format!("SELECT {version}, {clock} FROM {table} WHERE {is_it} FOR UPDATE"),
        replace: format!(
            "UPDATE {table} SET {version} = {version} + 1, {value} = $2 WHERE {is_it}"
        ),
        kind,
    })
}

/// The SQL condition that a row has this name, which is SQL too, as its key. Text that only begins with a number is no number.
pub(super) fn is_it(key: &str, name: &str) -> String {
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
