//! Values of options, read from text or JSON.

use std::time::Duration;

use serde_json::Value;

use crate::error::{Error, Result};

const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_hours(30 * 24);

pub(crate) fn check_ttl(name: &'static str, value: Duration) -> Result<Duration> {
    if value < SHORTEST || value > LONGEST {
        return Err(Error::invalid(
            name,
            format!(
                "`{name}` must be between 10 ms and 30 days, not {}",
                humantime::format_duration(value)
            ),
        ));
    }
    Ok(value)
}

/// A lease, or how long something may take: from 10 ms to 30 days.
pub(super) fn bounded(name: &'static str, value: &Value) -> Result<Duration> {
    check_ttl(name, duration(name, value)?)
}

fn duration(name: &'static str, value: &Value) -> Result<Duration> {
    let complaint = || {
        let message = format!(
            "`{name}` must be a time, not below zero; as text with its unit, such as `30s` or `500ms`"
        );
        Error::invalid(name, message)
    };
    match value {
        Value::String(text) => humantime::parse_duration(text).map_err(|_| complaint()),
        Value::Number(number) => {
            let millis = number.as_f64().filter(|millis| *millis >= 0.0).ok_or_else(complaint)?;
            Duration::try_from_secs_f64(millis / 1000.0).map_err(|_| complaint())
        }
        _ => Err(complaint()),
    }
}

pub(super) fn optional(name: &'static str, value: &Value) -> Result<Option<Duration>> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) if text == "forever" || text == "none" => Ok(None),
        // Beyond a century a wait is for ever, whatever its number.
        _ => Ok(Some(duration(name, value)?).filter(|wait| wait.as_secs() < 100 * 365 * 86_400)),
    }
}

pub(super) fn positive(name: &'static str, value: &Value) -> Result<Option<Duration>> {
    match optional(name, value)? {
        Some(Duration::ZERO) => Err(zero(name)),
        other => Ok(other),
    }
}

pub(super) fn zero(name: &'static str) -> Error {
    Error::invalid(name, format!("`{name}` must be longer than zero"))
}

pub(super) fn pause(name: &'static str, value: &Value) -> Result<Duration> {
    check_pause(name, duration(name, value)?)
}

pub(super) fn check_pause(name: &'static str, value: Duration) -> Result<Duration> {
    if value > Duration::from_mins(1) {
        return Err(Error::invalid(name, format!("`{name}` must be at most a minute")));
    }
    Ok(value)
}

pub(super) fn boolean_or_auto(name: &'static str, value: &Value) -> Result<Option<bool>> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) if text == "auto" => Ok(None),
        _ => boolean(name, value).map(Some),
    }
}

pub(super) fn boolean(name: &'static str, value: &Value) -> Result<bool> {
    match value {
        Value::Bool(value) => Ok(*value),
        Value::String(text) if text == "true" => Ok(true),
        Value::String(text) if text == "false" => Ok(false),
        _ => Err(Error::invalid(name, format!("`{name}` must be `true` or `false`"))),
    }
}

pub(super) fn integer(name: &'static str, value: &Value) -> Result<u32> {
    let number = match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.as_u64(),
        _ => None,
    };
    check_count(name, number.and_then(|number| u32::try_from(number).ok()).unwrap_or(u32::MAX))
}

pub(super) fn check_count(name: &'static str, number: u32) -> Result<u32> {
    let complaint = || format!("`{name}` must be a whole number from 0 to 10000");
    if number <= 10_000 { Ok(number) } else { Err(Error::invalid(name, complaint())) }
}

pub(super) fn text(name: &'static str, value: &Value) -> Result<String> {
    let text = value.as_str().unwrap_or("\0");
    check_text(name, text)?;
    Ok(text.to_owned())
}

pub(super) fn check_text(name: &'static str, text: &str) -> Result<()> {
    if text.len() <= 1024 && !text.chars().any(char::is_control) {
        return Ok(());
    }
    let most = "text of at most 1024 bytes without control characters";
    Err(Error::invalid(name, format!("`{name}` must be {most}")))
}

pub(super) fn check_prefix(name: &'static str, prefix: &str) -> Result<()> {
    check_text(name, prefix)?;
    if prefix.len() <= 256 {
        return Ok(());
    }
    Err(Error::invalid(name, "the prefix of a dialect must not be longer than 256 bytes"))
}

/// Texts by name become JSON.
pub(super) fn info(name: &'static str, value: &Value) -> Result<String> {
    let info = match value {
        Value::Object(texts) if texts.values().all(Value::is_string) => value.to_string(),
        _ => value.as_str().unwrap_or("\0").to_owned(),
    };
    check_info(name, &info)?;
    Ok(info)
}

pub(super) fn check_info(name: &'static str, text: &str) -> Result<()> {
    if text.len() <= 4096 && !text.chars().any(char::is_control) {
        return Ok(());
    }
    let most = "text, or texts by name, of at most 4096 bytes without control characters";
    Err(Error::invalid(name, format!("`{name}` must be {most}")))
}
