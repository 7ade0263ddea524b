//! Columns of a row and values for them, in one form for all databases.

use std::fmt;

use crate::error::{Code, Error, Result};

/// A value in a statement or in a row. It may prove a hold, so no log shows it.
#[derive(Clone, PartialEq)]
#[cfg_attr(not(any(feature = "mysql", feature = "postgres")), allow(unreachable_pub))]
pub enum Value {
    Null,
    /// Also a moment, in µs since 1970, and a truth.
    Int(i64),
    Text(String),
    /// Text that is compared by its bytes.
    Name(String),
    /// A number as it is written.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    Digits(String),
    #[cfg(any(feature = "mysql", feature = "postgres"))]
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

/// A row that a statement answers.
#[derive(Debug)]
#[cfg_attr(not(any(feature = "mysql", feature = "postgres")), allow(unreachable_pub))]
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

/// Says that the row of a lock cannot be read.
pub(in crate::driver) fn bad_column(column: &'static str) -> Error {
    let message = "the row of this lock is not one fencelock wrote; look at it, then delete it while nobody holds it";
    Error::new(Code::Conflict, message).with("column", column)
}

/// SQL's numbers have a sign. What they cannot hold is never reached.
pub(in crate::driver) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A column that is there and not negative.
pub(in crate::driver) fn number(value: Option<i64>, name: &'static str) -> Result<u64> {
    value.and_then(|value| u64::try_from(value).ok()).ok_or_else(|| bad_column(name))
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
