//! Values with versions, for threads.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Result;
use crate::options::OptionValue;
use crate::port::Version;
use crate::runtime::InlineRuntime;
use crate::version::{Snapshot, Swapped};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value by name, for threads; see [`fencelock::Versioned`](crate::Versioned).
///
/// ```
/// let client = fencelock::blocking::connect("memory:")?;
/// let visits = client.version("visits");
/// visits.update(|seen: Option<u64>| Some(seen.unwrap_or(0) + 1))?;
/// assert_eq!(visits.read::<u64>()?.expect("it was written").value, 1);
/// # Ok::<(), fencelock::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Versioned {
    pub(super) inner: crate::Versioned,
    pub(super) runtime: Arc<InlineRuntime>,
}

impl Versioned {
    setters! {
        /// How often [`Versioned::update`] tries again when another writer was faster; 16 by default.
        retries(retries: u32);
        /// How long the store keeps the value after its last change; for ever by default.
        keep(keep: Duration);
        /// Keeps the value in a row of your own table; see [`fencelock::Versioned::on_table`](crate::Versioned::on_table).
        on_table(table: &str);
        /// Sets any option by its name in the [table](crate::options::TABLE).
        option(name: &str, value: impl Into<OptionValue>);
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// The value and its version; `None` if there is none.
    pub fn read<T: DeserializeOwned>(&self) -> Result<Option<Snapshot<T>>> {
        self.runtime.run(self.inner.read())?
    }

    /// Writes the value if its version is still `expected`; with `None`, if there is no value.
    pub fn compare_and_set<T>(&self, expected: Option<Version>, value: &T) -> Result<Swapped<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        self.runtime.run(self.inner.compare_and_set(expected, value))?
    }

    /// Deletes the value if its version is still `expected`.
    pub fn delete<T: DeserializeOwned>(&self, expected: Version) -> Result<Swapped<T>> {
        self.runtime.run(self.inner.delete(expected))?
    }

    /// Replaces the value by what `change` makes of it, asked again whenever somebody was faster.
    pub fn update<T, F>(&self, change: F) -> Result<Option<Snapshot<T>>>
    where
        T: Serialize + DeserializeOwned,
        F: FnMut(Option<T>) -> Option<T>,
    {
        self.runtime.run(self.inner.update(change))?
    }
}
