//! Statements with their values, and the answers, in one form for all databases.

use std::sync::Arc;

use super::fault::bad_column;
use crate::driver::columns::Column;
pub(in crate::driver) use crate::driver::columns::{Row, Value, column, name};
use crate::error::Result;

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
