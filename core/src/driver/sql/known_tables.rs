//! The facts found out about tables of the user's own, each by how it was written in the option.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::fault::Fault;
use crate::port::CellKey;
use crate::runtime::sync::Mutex;

/// Says which rights are needed there.
pub(in crate::driver) const RIGHTS: &str =
    "the user may not do this; grant it SELECT and UPDATE on your table";

/// Says that a table cannot be used in the way it was found.
pub(in crate::driver) const CHANGED: &str = "your table is not as it was when fencelock looked at it, or its key cannot be compared; see `reply`, and try again";

/// See the module.
pub(in crate::driver) struct KnownTables<T>(Mutex<BTreeMap<Arc<str>, Arc<T>>>);

impl<T> Default for KnownTables<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> KnownTables<T> {
    /// The table of a key, or what finds it.
    pub(in crate::driver) async fn of(
        &self,
        key: &CellKey,
        find: impl AsyncFnOnce(&str) -> Result<T, Fault>,
    ) -> Result<Arc<T>, Fault> {
        let written = key.table.clone().unwrap_or_default();
        let known = self.0.lock().get(&written).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let found = Arc::new(find(&written).await?);
        self.0.lock().insert(written, found.clone());
        Ok(found)
    }

    /// Passes an answer on. After a failure the table is looked for again: it may have become another.
    pub(in crate::driver) fn passed<R>(
        &self,
        key: &CellKey,
        answer: Result<R, Fault>,
    ) -> Result<R, Fault> {
        if answer.is_err() {
            self.0.lock().remove(key.table.as_deref().unwrap_or_default());
        }
        answer
    }
}
