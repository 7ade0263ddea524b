//! The last run of a job, as its cell and its lock show it together.

use std::time::Duration;

use super::record::{Record, Status};
use crate::engine::Engine;
use crate::engine::LockId;
use crate::error::Result;
use crate::fence::Token;
use crate::port::{CellKey, Look};

impl Engine {
    /// The last run as its cell records it; of one in progress, whether it still has the lock.
    pub(super) async fn last_run(&self, key: &CellKey) -> Result<(Look, Option<Record>)> {
        let mut look = self.look(key).await?;
        loop {
            let Some(mut record) = Record::of(&look, key)? else { return Ok((look, None)) };
            if record.status != Status::InProgress {
                return Ok((look, Some(record)));
            }
            record.left = self.left_of_run(key, record.token).await?;
            if record.left.is_some() {
                return Ok((look, Some(record)));
            }
            // A run is marked as over before its lock is free. Only one that is still marked as in progress has died.
            let again = self.look(key).await?;
            if again.version() == look.version() {
                return Ok((again, Some(record)));
            }
            look = again;
        }
    }

    /// The time left of the lease of the run with this token; `None` if it does not have the lock.
    async fn left_of_run(&self, key: &CellKey, token: Token) -> Result<Option<Duration>> {
        let state = self.inspect(&LockId::of_job(&key.name)).await?;
        let holder = state.holders.into_iter().find(|holder| holder.token == Some(token));
        Ok(holder.map(|holder| holder.left.unwrap_or_default()))
    }
}
