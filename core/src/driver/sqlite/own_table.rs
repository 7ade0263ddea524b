//! Versions in a table of the user's own, in the same file. Each call looks at the table anew: that is no way to a server.

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, ErrorCode, OptionalExtension, params};
use serde_json::Value as Json;

use super::fault::Fault;
use crate::driver::own_table::{self, CONSTRAINT, OwnTable, UNFIT};
use crate::error::{Code, Error, Result as Outcome};
use crate::port::{CellKey, Change, Look, Swap, Version};

/// SQLite has no limit of its own.
const MOST_BYTES: usize = 255;
/// How a column was declared. Table, schema, column.
const TYPE: &str = "SELECT type FROM pragma_table_info(?1, ?2) WHERE name = ?3 COLLATE NOCASE";
/// Whether a column is a key by itself.
const UNIQUE: &str = r#"SELECT EXISTS (SELECT 1 FROM pragma_table_info(?1, ?2) WHERE name = ?3 COLLATE NOCASE AND pk = 1
        AND (SELECT count(*) FROM pragma_table_info(?1, ?2) WHERE pk > 0) = 1)
    OR EXISTS (SELECT 1 FROM pragma_index_list(?1, ?2) AS l WHERE l."unique" AND NOT l.partial
        AND (SELECT group_concat(name) FROM pragma_index_info(l.name, ?2)) = ?3 COLLATE NOCASE)"#;

/// A table that was found.
struct Found<'a> {
    own: OwnTable<'a>,
    /// The value is JSON as text, by the column's type.
    is_document: bool,
    /// Its numbers 0 and 1 are truth values, by the column's type.
    is_truth: bool,
}

impl<'a> Found<'a> {
    fn of(connection: &Connection, key: &'a CellKey) -> Result<Self, Fault> {
        let text = key.table.as_deref().unwrap_or_default();
        let own = OwnTable::parse(text, MOST_BYTES).map_err(Fault::Row)?;
        let (table, schema) = (own.keyed.table.name, own.keyed.table.schema.unwrap_or("main"));
        let typed = |column: &str| {
            let mut statement = connection.prepare_cached(TYPE)?;
            let found = statement.query_row([table, schema, column], |row| row.get::<_, String>(0));
            let kind = found.optional()?.ok_or_else(|| Fault::Row(own.keyed.no_column(column)))?;
            Ok::<_, Fault>(kind.to_ascii_uppercase())
        };
        // No other database is attached here.
        if !schema.eq_ignore_ascii_case("main") {
            return Err(Fault::Row(own.keyed.no_table()));
        }
        let is_there = "SELECT 1 FROM pragma_table_info(?1, ?2)";
        let is_there = connection.prepare_cached(is_there)?.exists([table, schema])?;
        if !is_there {
            return Err(Fault::Row(own.keyed.no_table()));
        }
        typed(own.keyed.key)?;
        let (version, value) = (typed(own.version)?, typed(own.value)?);
        if !version.contains("INT") {
            return Err(Fault::Row(own.does_not_count(&version)));
        }
        let mut unique = connection.prepare_cached(UNIQUE)?;
        if !unique.query_row([table, schema, own.keyed.key], |row| row.get(0))? {
            return Err(Fault::Row(own.keyed.not_unique()));
        }
        let (is_document, is_truth) = (value.contains("JSON"), value.contains("BOOL"));
        Ok(Self { own, is_document, is_truth })
    }

    /// The SQL condition for the row of this key. Text that is no number is none either for a column of numbers.
    fn is_it(&self) -> String {
        let [key, ..] = self.own.columns('"');
        format!("{key} = ?1 AND CAST({key} AS TEXT) = ?1")
    }

    fn json(&self, value: ValueRef<'_>) -> Outcome<String> {
        Ok(match value {
            ValueRef::Null => "null".to_owned(),
            ValueRef::Integer(number @ 0..=1) if self.is_truth => (number == 1).to_string(),
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Real(number) => {
                serde_json::Number::from_f64(number).ok_or_else(own_table::no_json)?.to_string()
            }
            ValueRef::Text(text) => {
                let text = std::str::from_utf8(text).map_err(|_| own_table::no_json())?;
                if self.is_document {
                    serde_json::from_str::<Json>(text).map_err(|_| own_table::no_json())?;
                    return Ok(text.to_owned());
                }
                Json::from(text).to_string()
            }
            ValueRef::Blob(_) => return Err(own_table::no_json()),
        })
    }

    fn value(&self, json: &str) -> Outcome<Value> {
        let unfit = || Error::invalid("value", UNFIT);
        let value: Json = serde_json::from_str(json).map_err(|_| unfit())?;
        Ok(match value {
            Json::Null => Value::Null,
            _ if self.is_document => Value::Text(json.to_owned()),
            Json::Bool(truth) => Value::Integer(truth.into()),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(number), _) => Value::Integer(number),
                (None, Some(real)) if !number.is_u64() => Value::Real(real),
                _ => return Err(unfit()),
            },
            Json::String(text) => Value::Text(text),
            Json::Array(_) | Json::Object(_) => Value::Text(json.to_owned()),
        })
    }

    fn look(&self, connection: &Connection, key: &CellKey, now: u64) -> Result<Look, Fault> {
        let [_, version, value] = self.own.columns('"');
        let table = self.own.keyed.name('"');
        let text = format!("SELECT {version}, {value} FROM {table} WHERE {}", self.is_it());
        let mut statement = connection.prepare_cached(&text)?;
        let mut rows = statement.query([&*key.name])?;
        let Some(row) = rows.next()? else { return Ok(Look { cell: None, clock: now }) };
        let json = self.json(row.get_ref(1)?).map_err(Fault::Row)?;
        let version = row.get_ref(0)?.as_i64().ok();
        own_table::look(version, &json, now).map_err(Fault::Row)
    }
}

/// The cell at `now`.
pub(super) fn look(connection: &Connection, key: &CellKey, now: u64) -> Result<Look, Fault> {
    Found::of(connection, key)?.look(connection, key, now)
}

/// Carries a change out, within a transaction.
pub(super) fn swap(connection: &Connection, change: &Change, now: u64) -> Result<Swap, Fault> {
    let Change { key, expected, value, .. } = change;
    let found = Found::of(connection, key)?;
    let look = found.look(connection, key, now)?;
    let (Some(version), Some(value)) =
        (look.version().filter(|_| look.version() == *expected), value)
    else {
        return Ok(Swap::Other(look));
    };
    let value = found.value(value).map_err(Fault::Row)?;
    let [_, counts, holds] = found.own.columns('"');
    let text = format!(
        "UPDATE {} SET {counts} = {counts} + 1, {holds} = ?2 WHERE {}",
        found.own.keyed.name('"'),
        found.is_it()
    );
    let refused = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => {
            let refused = Error::new(Code::Conflict, CONSTRAINT).with("sqlite", error.to_string());
            Fault::Row(refused)
        }
        Some(ErrorCode::TypeMismatch) => Fault::Row(Error::invalid("value", UNFIT)),
        _ => error.into(),
    };
    connection.prepare_cached(&text)?.execute(params![&*key.name, value]).map_err(refused)?;
    Ok(Swap::Done { version: Version::new(version.get() + 1), since: now })
}
