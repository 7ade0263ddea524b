//! Values with a version.

use fencelock::Swapped;
use fencelock::port::Version;
use serde_json::Value;

use crate::Result;
use crate::process::ask;

/// A value by name that is replaced only if nobody was faster.
#[derive(uniffi::Object)]
pub struct Versioned(pub(crate) fencelock::Versioned);

/// A value and the version it was read at.
#[derive(Clone, Debug, uniffi::Record)]
pub struct Snapshot {
    /// The value, as JSON.
    pub value: String,
    /// Its version.
    pub version: u64,
}

#[uniffi::export]
impl Versioned {
    /// The value and its version, if there is one.
    pub async fn read(&self) -> Result<Option<Snapshot>> {
        let read = ask!(self.0, version => version.read::<Value>().await)?;
        Ok(read.map(|read| Snapshot { value: read.value.to_string(), version: read.version.get() }))
    }

    /// Writes a value, given as JSON, if its version is still `expected`; without one, if there is no value. Answers the new version, or
    /// nothing if somebody was faster.
    pub async fn compare_and_set(
        &self,
        expected: Option<u64>,
        value: String,
    ) -> Result<Option<u64>> {
        // Text that is no JSON is a text.
        let value = serde_json::from_str(&value).unwrap_or(Value::String(value));
        let expected = expected.map(Version::new);
        ask!(self.0, version => version.compare_and_set(expected, &value).await.map(|swapped| done(&swapped)))
    }

    /// Deletes the value if its version is still `expected`, as `compare_and_set` writes it.
    pub async fn delete(&self, expected: u64) -> Result<Option<u64>> {
        ask!(self.0, version => version.delete::<Value>(Version::new(expected)).await.map(|swapped| done(&swapped)))
    }
}

fn done(swapped: &Swapped<Value>) -> Option<u64> {
    if let Swapped::Done(version) = swapped { Some(version.get()) } else { None }
}
