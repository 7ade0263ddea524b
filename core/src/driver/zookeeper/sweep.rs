//! The removal of cells that have ended. The server removes none of them: an ephemeral node ends with its writer, and a node with a
//! time to live needs a setting that servers do not come with.
//!
//! A client that gives a cell an end looks at some others of its folder. With eight looks for each cell that ends, those that stay
//! longer than they have to are about a seventh of the others at most.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use zookeeper_client::{Client, Error as Fault};

use super::session::Sessions;
use crate::driver::cell_document::read;

/// How many cells are looked at.
const LOOKS: usize = 8;
/// For how long, in µs, an ended cell stays: clocks of clients differ, and a request may be late.
const REST: u64 = 3_600_000_000;

/// One look at a folder.
pub(super) struct Sweep {
    pub(super) sessions: Arc<Sessions>,
    /// The node whose version counts removals.
    pub(super) counter: String,
    pub(super) folder: String,
    /// Where among its cells to begin: any number.
    pub(super) from: usize,
    /// The asker's clock, in µs.
    pub(super) now: u64,
}

impl Sweep {
    /// Removes ended cells of the folder. One that is not removed now is removed another time, whatever the reason.
    pub(super) async fn run(self, ttl: Duration) {
        let Ok(client) = self.sessions.looker(ttl).await else { return };
        let sessions = self.sessions.clone();
        let swept = sessions.ask(async move { self.remove(&client).await }).await;
        if let Err(failure) = swept {
            tracing::debug!(error = %failure.error, "values that have ended were not removed");
        }
    }

    async fn remove(&self, client: &Client) -> Result<(), Fault> {
        let Self { counter, folder, from, now, .. } = self;
        // In this order: what is read behind the counter is as old as the counter, or newer.
        let (count, names) = (client.check_stat(counter), client.list_children(folder));
        let (count, names) = (count.await?, names.await?);
        let Some(count) = count.filter(|_| !names.is_empty()) else { return Ok(()) };
        let some = names.iter().cycle().skip(from % names.len()).take(LOOKS.min(names.len()));
        let paths: Vec<_> = some.map(|name| format!("{folder}/{name}")).collect();
        let found = join_all(paths.iter().map(|path| client.get_data(path))).await;
        let mut writer = client.new_multi_writer();
        writer.add_set_data(counter, b"", Some(count.version))?;
        let mut any = false;
        for (path, found) in paths.iter().zip(found) {
            // Others may have removed it, or have written there what is none of ours.
            let Some((value, stat)) = found.ok() else { continue };
            let Ok(record) = read(&value, path) else { continue };
            if record.ends.saturating_add(REST) <= *now {
                writer.add_delete(path, Some(stat.version))?;
                any = true;
            }
        }
        if !any {
            return Ok(());
        }
        writer.commit().await.map(drop).map_err(Fault::from)
    }
}
