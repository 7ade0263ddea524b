//! Versions, jobs and elections: calls as operations of the facade.

use fencelock::facade::Operation;
use fencelock::options::OptionValue;
use fencelock::{Client, Code, Error, Result, Versioned};
use serde::de::Error as _;
use serde_json::{Value, json};

use crate::protocol::{Call, Options};

/// The operation a call stands for.
pub(super) fn operation(call: Call) -> Result<Operation> {
    let operation = match call {
        Call::Campaign { lock: name, options } => Operation::Campaign { name, options },
        Call::TryCampaign { lock: name, options } => {
            Operation::TryCampaign { name, options, wait: None }
        }
        Call::Leader { lock: name } => Operation::Leader { name, options: Options::new() },
        Call::Observe { lock: name, options, seen } => {
            let seen = serde_json::from_value(seen).map_err(|error| unreadable(&error))?;
            Operation::Observe { name, options, seen: Some(seen) }
        }
        Call::StartJob { lock: name, options, times, at } => {
            Operation::StartJob { name, times: *times, at, options }
        }
        Call::InspectJob { lock: name } => Operation::InspectJob { name },
        Call::ReadVersion { lock: name } => {
            Operation::ReadVersion { name, options: Options::new() }
        }
        Call::CompareAndSet { lock: name, options, expected, value } => {
            Operation::CompareAndSet { name, options, expected, value }
        }
        Call::DeleteVersion { lock: name, options, expected } => {
            Operation::DeleteVersion { name, options, expected }
        }
        other => return Err(unreadable(&serde_json::Error::custom(format!("{other:?}")))),
    };
    Ok(operation)
}

fn unreadable(error: &serde_json::Error) -> Error {
    Error::new(Code::Invalid, format!("this call cannot be read: {error}"))
}

/// An option's value, out of JSON.
pub(super) fn option(value: Value) -> OptionValue {
    serde_json::from_value(value).expect("it takes any JSON")
}

/// A value with these options.
pub(super) fn version(client: &Client, name: &str, options: Options) -> Versioned {
    options
        .into_iter()
        .fold(client.version(name), |version, (name, value)| version.option(&name, option(value)))
}

/// Adds to a number; null if that would make it negative, so that it is left as it is.
pub(super) async fn add(version: Versioned, by: i64) -> Result<Value> {
    let sum = |seen: Option<i64>| Some(seen.unwrap_or(0) + by).filter(|sum| *sum >= 0);
    Ok(json!(version.update(sum).await?))
}
