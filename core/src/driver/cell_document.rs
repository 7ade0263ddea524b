//! A cell as one value, for stores that replace a value only if nobody was faster and know no more of it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::cell::CellRecord;
use crate::error::{Code, Error, Result};
use crate::port::{Cell, Mark};

/// A cell as JSON. Times are µs since 1970.
#[derive(Serialize, Deserialize)]
struct Document {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<Arc<str>>,
    since: u64,
    /// The newest changes, newest first.
    trail: Vec<Mark>,
    /// From then on it counts as absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ends: Option<u64>,
}

/// The value that holds this.
pub(super) fn written(record: &CellRecord) -> Result<Vec<u8>> {
    let CellRecord { cell: Cell { value, since, trail }, ends } = record.clone();
    let document = Document { value, since, trail, ends: (ends != u64::MAX).then_some(ends) };
    serde_json::to_vec(&document).map_err(|error| Error::internal(error.to_string()))
}

/// Reads the record of a cell from the value under its key.
pub(super) fn read(value: &[u8], key: &str) -> Result<CellRecord> {
    let foreign = |reason: String| {
        let message = "what lies under the key of this value is not as fencelock wrote it; find out who changed it, or choose another name";
        Error::new(Code::Conflict, message).with("key", key).with("reason", reason)
    };
    let document: Document =
        serde_json::from_slice(value).map_err(|error| foreign(error.to_string()))?;
    let Document { value, since, trail, ends } = document;
    if trail.is_empty() {
        return Err(foreign("it has no version".to_owned()));
    }
    Ok(CellRecord { cell: Cell { value, since, trail }, ends: ends.unwrap_or(u64::MAX) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::{OwnerId, Version};

    #[test]
    fn a_cell_is_read_as_it_was_written() {
        let mark = Mark {
            version: Version::new(7),
            writer: OwnerId::parse("0123456789abcdef0123456789abcdef").unwrap(),
        };
        for (value, ends) in [(Some("x"), u64::MAX), (None, 5)] {
            let cell = Cell { value: value.map(Into::into), since: 3, trail: vec![mark] };
            let record = CellRecord { cell, ends };
            assert_eq!(read(&written(&record).unwrap(), "k").unwrap(), record);
        }
        for foreign in ["", "{}", r#"{"since":1,"trail":[]}"#] {
            let error = read(foreign.as_bytes(), "k").unwrap_err();
            assert_eq!(error.code(), Code::Conflict, "{foreign}");
        }
    }
}
