//! Ends of operations as they cross.

use fencelock::facade::{Completion, Operation};
use fencelock::{Code, Error, Result};
use serde::Serialize;
use serde_json::Value;

/// An operation's number and what it came to.
#[derive(Serialize)]
#[serde(untagged)]
enum End {
    Well(u64, Value),
    Badly(u64, (), Error),
}

/// Ends as JSON: `[[number, value], [number, null, error]]`.
pub(crate) fn told(done: Vec<Completion>) -> String {
    let ends: Vec<End> = done
        .into_iter()
        .map(|Completion { operation, result }| match result {
            Ok(value) => End::Well(operation, value),
            Err(error) => End::Badly(operation, (), error),
        })
        .collect();
    serde_json::to_string(&ends).unwrap_or_default()
}

/// An operation from its JSON.
pub(crate) fn operation(text: &str) -> Result<Operation> {
    serde_json::from_str(text).map_err(|error| {
        Error::new(Code::Invalid, format!("this operation cannot be read: {error}"))
    })
}
