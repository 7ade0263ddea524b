//! A table of the user's own, whose rows are versions or locks: how it is written, what may be wrong with it, what the row of a version
//! shows. The databases' folders have the SQL.

use super::identifier::{Table, check, quoted};
use crate::error::{Code, Error, Result};
use crate::port::{Cell, Look, Mark, OwnerId, Version};

/// A table of the user's own with the column that names its rows.
pub struct KeyedTable<'a> {
    pub(super) table: Table<'a>,
    pub(super) key: &'a str,
}

/// The same with two more columns.
pub struct OwnTable<'a> {
    pub(super) keyed: KeyedTable<'a>,
    pub(super) version: &'a str,
    pub(super) value: &'a str,
}

impl<'a> KeyedTable<'a> {
    /// Reads `table(key)`, whose rows are locks. `most` is how many bytes a name may have on this database.
    pub(super) fn parse(text: &'a str, most: usize) -> Result<Self> {
        let form = || {
            wrong("`on_table` is a table with its key, whose values name the locks: `account(id)`")
        };
        let (table, columns) = split(text).ok_or_else(form)?;
        match columns[..] {
            [key] => Self::of(table, key, most, form),
            [_, _, _] => Err(wrong(
                "a lock by row takes a table with its key only: `account(id)`; a version takes three columns, but on another store: use `postgres://` or `mysql://` for it",
            )),
            _ => Err(form()),
        }
    }

    fn of(table: &'a str, key: &'a str, most: usize, form: impl Fn() -> Error) -> Result<Self> {
        check("on_table", key, most)?;
        Ok(Self { table: Table::parse(table, most).map_err(|_| form())?, key })
    }

    /// The table as it stands in SQL. Names stand between these marks.
    pub(super) fn name(&self, mark: char) -> String {
        format!("{}{}", self.table.place(mark), quoted(mark, self.table.name))
    }

    pub(super) fn no_table(&self) -> Error {
        let message = "there is no table `{}` where this connection looks, or this user may not see it; write it as `schema.table` if it lies elsewhere";
        wrong(message.replace("{}", self.table.name))
    }

    pub(super) fn no_column(&self, column: &str) -> Error {
        wrong(format!("the table `{}` has no column `{column}`", self.table.name))
    }

    /// There is no row with this name.
    pub(super) fn no_row(&self) -> Error {
        let (table, key) = (self.table.name, self.key);
        let message = format!(
            "the table `{table}` has no row whose `{key}` is this name, so there is nothing to lock; insert the row first"
        );
        Error::invalid("name", message)
    }

    /// The column with the key is of this type.
    #[cfg(feature = "postgres")]
    pub(super) fn does_not_name(&self, kind: &str) -> Error {
        let column = self.key;
        wrong(format!(
            "the column `{column}` is of the type {kind}, which cuts what is too long; take another as the key"
        ))
    }

    #[cfg(feature = "mysql")]
    pub(super) fn no_transactions(&self) -> Error {
        let table = self.table.name;
        wrong(format!(
            "`{table}` is no table with transactions, so its rows cannot be locked; make it one (ALTER TABLE … ENGINE=InnoDB)"
        ))
    }

    pub(super) fn not_unique(&self) -> Error {
        let column = self.key;
        wrong(format!(
            "several rows can have the same `{column}`; make that column the primary key, or unique"
        ))
    }
}

impl<'a> OwnTable<'a> {
    /// Reads `table(key, version, value)`. `most` is how many bytes a name may have on this database.
    pub(super) fn parse(text: &'a str, most: usize) -> Result<Self> {
        let form = || {
            wrong(
                "`on_table` is a table with three of its columns, the key, the version and the value: `account(id, version, balance)`",
            )
        };
        let (table, columns) = split(text).ok_or_else(form)?;
        let [key, version, value] = columns[..] else { return Err(form()) };
        let keyed = KeyedTable::of(table, key, most, form)?;
        for column in [version, value] {
            check("on_table", column, most)?;
        }
        if [key, value].iter().any(|column| column.eq_ignore_ascii_case(version)) {
            return Err(form());
        }
        Ok(Self { keyed, version, value })
    }

    /// The columns as they stand in SQL: key, version, value.
    pub(super) fn columns(&self, mark: char) -> [String; 3] {
        [self.keyed.key, self.version, self.value].map(|column| quoted(mark, column))
    }

    /// The column with the version is of this type.
    pub(super) fn does_not_count(&self, kind: &str) -> Error {
        let column = self.version;
        wrong(format!(
            "the column `{column}` counts versions, so it has to be of a type for whole numbers, not {kind}"
        ))
    }
}

/// The table and its columns.
fn split(text: &str) -> Option<(&str, Vec<&str>)> {
    let (table, columns) = text.split_once('(')?;
    let columns = columns.trim_end().strip_suffix(')')?;
    Some((table.trim(), columns.split(',').map(str::trim).collect()))
}

fn wrong(message: impl Into<String>) -> Error {
    Error::invalid("on_table", message.into())
}

/// The cell that a row shows, with its value as JSON.
pub(super) fn look(version: Option<i64>, value: &str, clock: u64) -> Result<Look> {
    let version = version.and_then(|number| u64::try_from(number).ok());
    let version = Version::new(version.ok_or_else(no_version)?);
    if !keeps_digits(value) {
        let message = "the value has more digits than a JSON number keeps in every language; keep it in a bigint of its smallest unit, or as text";
        return Err(Error::new(Code::Conflict, message));
    }
    // Who made it is not known.
    let mark = Mark { version, writer: OwnerId::NOBODY };
    let cell = Cell { value: Some(value.into()), since: clock, trail: vec![mark] };
    Ok(Look { cell: Some(cell), clock })
}

/// Whether a number is the same when it was read as the nearest float. Whole numbers of 64 bits are read as such.
fn keeps_digits(json: &str) -> bool {
    let is_number = json.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    if !is_number || json.contains(['e', 'E']) || json.parse::<i64>().is_ok() {
        return true;
    }
    let short =
        if json.contains('.') { json.trim_end_matches('0').trim_end_matches('.') } else { json };
    json.parse::<f64>().is_ok_and(|number| number.to_string() == short)
}

/// Says that a value cannot be told.
pub(super) fn no_json() -> Error {
    let message =
        "the column with the value holds bytes, or text that is not the JSON it should be";
    Error::new(Code::Conflict, message)
}

fn no_version() -> Error {
    let message = "this row has no version: the column is NULL or negative; give it the value 0, and the column NOT NULL DEFAULT 0";
    Error::new(Code::Conflict, message)
}

/// Says that a constraint refused a value.
pub(super) const CONSTRAINT: &str = "a constraint or a trigger of your table refused the change";
/// Says that a value is of no use there.
pub(super) const UNFIT: &str =
    "the column with the value does not take this value, or the one with the key this name";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_lose_digits_are_not_told() {
        for kept in [
            "0",
            "-7",
            "12.50",
            "0.30000000000000004",
            "9007199254740993",
            "1e300",
            "-0.0",
            "null",
            "\"1\"",
        ] {
            assert!(keeps_digits(kept), "{kept}");
        }
        for lost in ["0.1234567890123456789", "12345678901234567890.5", "123456789012345678901"] {
            assert!(!keeps_digits(lost), "{lost}");
        }
    }

    #[test]
    fn a_table_has_three_columns() {
        let own = OwnTable::parse(" s.t ( a b , c, d )", 63).unwrap();
        assert_eq!(own.keyed.name('"'), "\"s\".\"t\"");
        assert_eq!(own.columns('`'), ["`a b`", "`c`", "`d`"]);
        for bad in [
            "",
            "t",
            "t()",
            "t(a, b)",
            "t(a, b, c, d)",
            "t(a, a, c)",
            "t(a, b, B)",
            "a.b.t(a, b, c)",
            "t(a, b, c",
        ] {
            assert!(OwnTable::parse(bad, 63).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_table_of_locks_has_a_key_only() {
        let keyed = KeyedTable::parse(" s.t ( a b )", 63).unwrap();
        assert_eq!((keyed.name('"'), keyed.key), ("\"s\".\"t\"".to_owned(), "a b"));
        for bad in ["", "t", "t()", "t(a, b)", "a.b.t(a)", "t(a", "t(a, b, c, d)"] {
            assert!(KeyedTable::parse(bad, 63).is_err(), "{bad}");
        }
        let three = KeyedTable::parse("t(a, b, c)", 63).err().unwrap();
        assert!(three.message().contains("`postgres://`"), "{three}");
    }
}
