//! The value of an option, where options are set by name.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The value of an option: text as a URL has it, a number (of a time: milliseconds), a time, `true` or `false`. `None` is without end.
/// Read from JSON it may be texts by name too.
///
/// ```
/// # fn example(client: &fencelock::Client) {
/// client.lock("orders:42").option("ttl", "10s").option("fair", false).option("wait", std::time::Duration::from_secs(5));
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OptionValue(pub(crate) Value);

macro_rules! from {
    ($($type:ty),+) => {$(
        impl From<$type> for OptionValue {
            fn from(value: $type) -> Self {
                Self(value.into())
            }
        }
    )+};
}

from!(&str, String, bool, i32, u32, i64, u64, f64);

impl From<&String> for OptionValue {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<Duration> for OptionValue {
    fn from(time: Duration) -> Self {
        Self::from(time.as_secs_f64() * 1000.0)
    }
}

impl<T: Into<Self>> From<Option<T>> for OptionValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self(Value::Null), Into::into)
    }
}
