//! Statements with their values, and the answers, in one form for all databases.

use std::fmt;
use std::sync::Arc;

use super::fault::bad_column;
use crate::error::Result;

/// A value in a statement or in a row. It may prove a hold, so no log shows it.
#[derive(Clone, PartialEq)]
pub enum Value {
    Null,
    /// Also a moment, in µs since 1970, and a truth.
    Int(i64),
    Text(String),
    /// Text that is compared by its bytes.
    Name(String),
    /// A number as it is written.
    Digits(String),
    Names(Vec<String>),
    #[cfg(feature = "postgres")]
    Ints(Vec<i64>),
    /// A column of a type that fencelock does not read.
    Unread,
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// The name of a row.
pub(in crate::driver) fn name(text: impl Into<String>) -> Value {
    Value::Name(text.into())
}

/// How a statement is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::driver) enum Kind {
    /// It is asked again and again, so a connection may prepare it.
    Kept,
    Once,
    /// It has neither values nor rows, and may be several.
    Bare,
}

/// A statement. Its values stand in it as `$1` and so on.
#[derive(Clone, Debug)]
pub struct Statement {
    pub(in crate::driver) text: Arc<str>,
    pub(in crate::driver) values: Vec<Value>,
    pub(in crate::driver) kind: Kind,
}

impl Statement {
    pub(in crate::driver) fn kept(text: &Arc<str>, values: impl Into<Vec<Value>>) -> Self {
        Self { text: text.clone(), values: values.into(), kind: Kind::Kept }
    }

    pub(in crate::driver) fn once(
        text: impl Into<Arc<str>>,
        values: impl Into<Vec<Value>>,
    ) -> Self {
        Self { text: text.into(), values: values.into(), kind: Kind::Once }
    }

    pub(in crate::driver) fn bare(text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into(), values: Vec::new(), kind: Kind::Bare }
    }
}

/// The answer to statements that were sent together.
#[derive(Debug, Default)]
pub struct Answer {
    /// The rows of each statement.
    pub(in crate::driver) sets: Vec<Vec<Row>>,
    /// How many rows the last one has changed.
    pub(in crate::driver) changed: u64,
    /// The id that the last one has drawn, on a database that tells it so.
    pub(in crate::driver) last_id: Option<u64>,
}

impl Answer {
    /// The rows of the last statement that answers any.
    pub(in crate::driver) fn rows(self) -> Vec<Row> {
        self.sets.into_iter().rev().find(|rows| !rows.is_empty()).unwrap_or_default()
    }

    /// The first of these rows.
    pub(in crate::driver) fn row(&self) -> Option<&Row> {
        self.sets.iter().rev().find_map(|rows| rows.first())
    }

    /// The rows of all statements.
    pub(in crate::driver) fn all(&self) -> impl Iterator<Item = &Row> + Clone {
        self.sets.iter().flatten()
    }

    /// The server's clock. It is the last column of the last statement's rows, read behind each; the last reading counts.
    pub(in crate::driver) fn clock(&self) -> Result<u64> {
        let clock = |row: &Row| row.0.last().and_then(u64::of);
        let read = self.sets.last().and_then(|rows| rows.iter().filter_map(clock).max());
        read.ok_or_else(|| bad_column("now"))
    }
}

/// A row that a statement answers.
#[derive(Debug)]
pub struct Row(pub(in crate::driver) Vec<Value>);

/// A column's value.
pub(in crate::driver) fn column<'a, T: Column<'a>>(
    row: &'a Row,
    at: usize,
    name: &'static str,
) -> Result<T> {
    row.0.get(at).and_then(T::of).ok_or_else(|| bad_column(name))
}

/// A type that a value can be read as. A number may come as text.
pub(in crate::driver) trait Column<'a>: Sized {
    fn of(value: &'a Value) -> Option<Self>;
}

impl Column<'_> for i64 {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Int(number) => Some(*number),
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }
}

impl Column<'_> for u64 {
    fn of(value: &Value) -> Option<Self> {
        Self::try_from(i64::of(value)?).ok()
    }
}

impl Column<'_> for f64 {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Int(number) => Some(*number as Self),
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }
}

impl Column<'_> for bool {
    fn of(value: &Value) -> Option<Self> {
        Some(i64::of(value)? != 0)
    }
}

impl<'a> Column<'a> for &'a str {
    fn of(value: &'a Value) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl<'a, T: Column<'a>> Column<'a> for Option<T> {
    fn of(value: &'a Value) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::of(value).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_read_as_what_they_are_and_values_are_not_shown() {
        let row = Row(vec![Value::Int(7), Value::Text("8".into()), Value::Null, Value::Unread]);
        assert_eq!(
            (column(&row, 0, "a").ok(), column(&row, 1, "b").ok()),
            (Some(7_i64), Some(8_u64))
        );
        assert_eq!(column::<Option<&str>>(&row, 2, "c").unwrap(), None);
        assert!(
            column::<i64>(&row, 2, "c").is_err() && column::<Option<i64>>(&row, 3, "d").is_err()
        );
        assert!(column::<&str>(&row, 0, "a").is_err() && column::<i64>(&row, 9, "e").is_err());
        assert_eq!(format!("{:?}", Value::from("0011")), "(hidden)");
    }
}
