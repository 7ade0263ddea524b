//! Options by name, as the core's one table has them.

use std::collections::HashMap;
use std::time::Duration;

use fencelock::options::{OptionValue, TABLE};
use serde_json::json;

/// Options of a client or a lock by name. Names, defaults and limits are in the table of options; what is left out is the default,
/// for a lock that of its client.
pub type Options = Option<HashMap<String, Setting>>;

/// The value of an option.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum Setting {
    /// A text, or any value as a URL has it.
    Text(String),
    /// A time.
    Time(Duration),
    /// Any value as JSON, in which a time is a text or milliseconds: for languages without types.
    Json(String),
}

impl From<Setting> for OptionValue {
    fn from(setting: Setting) -> Self {
        match setting {
            Setting::Text(text) => text.into(),
            Setting::Time(time) => time.into(),
            Setting::Json(text) => serde_json::from_str(&text).unwrap_or_else(|_| text.into()),
        }
    }
}

/// Sets options on a lock, a job or the like.
pub(crate) fn with<T>(made: T, options: Options, set: impl Fn(T, &str, OptionValue) -> T) -> T {
    options
        .into_iter()
        .flatten()
        .fold(made, |made, (name, setting)| set(made, &name, setting.into()))
}

/// The table of options, as JSON.
#[uniffi::export]
pub fn options_table() -> String {
    json!(TABLE).to_string()
}
