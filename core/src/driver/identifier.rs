//! The names of tables and columns, as they stand in SQL: always quoted, so that no name is read as anything else.

use crate::error::{Error, Result};

/// A table, with the schema it lies in if that is named.
pub(super) struct Table<'a> {
    pub(super) schema: Option<&'a str>,
    pub(super) name: &'a str,
}

impl<'a> Table<'a> {
    /// Reads `table` or `schema.table`. `most` is how many bytes a name may have on this database.
    pub(super) fn parse(table: &'a str, most: usize) -> Result<Self> {
        let (schema, name) = match table.split_once('.') {
            Some((schema, name)) => (Some(schema), name),
            None => (None, table),
        };
        if name.contains('.') {
            let message = "a table is written `table` or `schema.table`; a name with a dot in it cannot be given here";
            return Err(Error::invalid("table", message));
        }
        for part in schema.into_iter().chain([name]) {
            check("table", part, most)?;
        }
        Ok(Self { schema, name })
    }

    /// The schema with a dot behind it, or nothing. Names stand between these marks.
    pub(super) fn place(&self, mark: char) -> String {
        self.schema.map(|schema| format!("{}.", quoted(mark, schema))).unwrap_or_default()
    }
}

/// Refuses what no database takes as a name, and what is longer than `most` bytes: a database may cut that.
pub(super) fn check(argument: &'static str, name: &str, most: usize) -> Result<()> {
    if name.is_empty() || name.contains('\0') || name.len() > most {
        let message = format!("a name must have 1 to {most} bytes, none of them zero");
        return Err(Error::invalid(argument, message));
    }
    Ok(())
}

/// A name as it stands in a statement, between these marks.
pub(super) fn quoted(mark: char, name: &str) -> String {
    let inside = name.replace(mark, &format!("{mark}{mark}"));
    format!("{mark}{inside}{mark}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_where_it_ends() {
        assert_eq!(quoted('"', "a\"; DROP TABLE b; --"), "\"a\"\"; DROP TABLE b; --\"");
        let table = Table::parse("s\"1.t 2", 63).unwrap();
        assert_eq!((table.place('"').as_str(), table.name), ("\"s\"\"1\".", "t 2"));
        assert_eq!(Table::parse("t", 63).unwrap().place('`'), "");
        for bad in ["", ".", "s.", ".t", "a.b.c", "a\0", &"a".repeat(64)] {
            assert!(Table::parse(bad, 63).is_err(), "{bad}");
        }
    }
}
