//! Cells: values with versions, a node each. A change reads the node and replaces it if its data's version is still the one that
//! was read.
//!
//! The model runs in the client. The version of a cell is the number of the change that wrote it (`mzxid`), which rises over all
//! nodes. Its times are those of the asker's clock, since ZooKeeper shows none.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{OptionFuture, join_all};
use zookeeper_client::{Client, CreateMode, Error as Fault, MultiWriteResult, Stat};

use super::layout::Layout;
use super::session::Sessions;
use super::steps::confirm;
use crate::driver::cell::{self, CellRecord};
use crate::driver::cell_document::{read, written};
use crate::error::{Error, Result};
use crate::port::{CellKey, CellStore, Change, Failure, Look, Swap, Version};

/// The cells of one client.
pub(super) struct ZookeeperCells {
    sessions: Arc<Sessions>,
    layout: Layout,
    /// The session of those who ask before one is open.
    ttl: Duration,
}

/// How a cell is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// As the member that is asked knows it, which may be behind the others.
    Here,
    /// As it is when the look begins, or later.
    Newest,
    /// The same, with what tells whether a cell has been removed since.
    Guarded,
}

/// A cell as it was read.
struct Present {
    node: Option<Node>,
    /// The version of the node that counts removals, if it was asked for and is there.
    removals: Option<i32>,
}

struct Node {
    record: CellRecord,
    /// Of its data. It begins anew when the node was removed and made again.
    version: i32,
}

/// The request that replaces a cell.
enum Write {
    Create,
    /// With the version that its data has, and that of the node that counts removals, if that must be the same.
    Replace(i32, Option<i32>),
}

/// A server that comes as it is ends the connection of whoever sends more.
const LONGEST: usize = 1_000_000;

impl ZookeeperCells {
    pub(super) fn new(sessions: Arc<Sessions>, layout: Layout, ttl: Duration) -> Self {
        Self { sessions, layout, ttl }
    }

    async fn ask<T, W>(&self, work: impl FnOnce(Client) -> W) -> Result<T, Failure>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        let client = self.sessions.looker(self.ttl).await.map_err(Failure::refused)?;
        self.sessions.ask(work(client)).await
    }

    async fn present(&self, path: &str, way: Way) -> Result<Present, Failure> {
        let (at, counter) = (path.to_owned(), self.layout.cells());
        let found = self.ask(|client| async move {
            // Sent in one piece, and carried out in this order.
            let newest = way != Way::Here;
            let confirming = newest.then(|| confirm(&client));
            let removals = (way == Way::Guarded).then(|| client.check_stat(&counter));
            let data = client.get_data(&at);
            OptionFuture::from(confirming).await.transpose()?;
            let removals = OptionFuture::from(removals).await.transpose()?;
            let data = match data.await {
                Err(Fault::NoNode) => None,
                data => Some(data?),
            };
            Ok((data, removals.flatten()))
        });
        let (data, removals) = found.await?;
        let node = data.map(|(value, stat)| node(&value, &stat, path)).transpose();
        let node = node.map_err(Failure::refused)?;
        Ok(Present { node, removals: removals.map(|stat| stat.version) })
    }

    /// Writes if nobody was faster. The number of the change; `None`: somebody was.
    async fn write(
        &self,
        folder: &str,
        path: &str,
        value: Vec<u8>,
        write: Write,
    ) -> Result<Option<u64>, Failure> {
        let (sessions, layout) = (self.sessions.clone(), self.layout.clone());
        let (folder, path) = (folder.to_owned(), path.to_owned());
        let done = self.ask(|client| async move {
            let done = match write {
                Write::Create => loop {
                    let options = sessions.options(CreateMode::Persistent);
                    match client.create(&path, &value, &options).await {
                        Err(Fault::NoNode) => make(&client, &sessions, &layout, &folder).await?,
                        done => break done.map(|(stat, _)| stat.mzxid),
                    }
                },
                Write::Replace(version, None) => {
                    client.set_data(&path, &value, Some(version)).await.map(|stat| stat.mzxid)
                }
                Write::Replace(version, Some(removals)) => {
                    let mut writer = client.new_multi_writer();
                    writer.add_check_version(&layout.cells(), removals)?;
                    writer.add_set_data(&path, &value, Some(version))?;
                    let done = writer.commit().await.map_err(Fault::from);
                    done.map(|results| results.iter().find_map(changed).unwrap_or_default())
                }
            };
            match done {
                Err(Fault::NodeExists | Fault::NoNode | Fault::BadVersion) => Ok(None),
                done => Ok(Some(done?.unsigned_abs())),
            }
        });
        done.await
    }
}

impl CellStore for ZookeeperCells {
    async fn read(&self, key: &CellKey) -> Result<Look> {
        let (_, path) = self.layout.cell(key);
        let present = self.present(&path, Way::Newest).await.map_err(|failed| failed.error)?;
        let record = present.node.map(|node| node.record);
        Ok(cell::look(record.as_ref(), self.sessions.runtime.wall()))
    }

    async fn compare_and_set(&self, change: &Change) -> Result<Swap, Failure> {
        let (folder, path) = self.layout.cell(&change.key);
        // First as the asked member knows it: if that is old, the write compares a version that is gone.
        let mut way = Way::Here;
        loop {
            let Present { node, removals } = self.present(&path, way).await?;
            let now = self.sessions.runtime.wall();
            let (record, version) = node.map(|node| (node.record, node.version)).unzip();
            if let Some(failure) = cell::refusal(record.as_ref(), now, 0) {
                return Err(failure);
            }
            let mut next = record.clone();
            let swap = cell::swap_above(&mut next, change, now, 0);
            let since = match &swap {
                Swap::Done { since, .. } => *since,
                Swap::Other(_) if way == Way::Here => {
                    way = Way::Newest;
                    continue;
                }
                Swap::Other(_) => return Ok(swap),
            };
            let has_ended = record.as_ref().is_some_and(|record| record.ends <= now);
            // Whoever removes what has ended may make way for another cell, whose versions begin anew.
            if has_ended && way != Way::Guarded {
                way = Way::Guarded;
                continue;
            }
            let Some(next) = next else { return Ok(swap) };
            let value = document(&next, change).map_err(Failure::refused)?;
            let write = version.map_or(Write::Create, |known| Write::Replace(known, removals));
            let Some(number) = self.write(&folder, &path, value, write).await? else {
                way = way.max(Way::Newest);
                continue;
            };
            let had_end = record.is_some_and(|record| record.ends != u64::MAX);
            if !had_end && next.ends != u64::MAX {
                self.sweep(folder, now);
            }
            return Ok(Swap::Done { version: Version::new(number), since });
        }
    }
}

impl ZookeeperCells {
    /// There is one more cell with an end in this folder: some of its others are looked at, in the background.
    fn sweep(&self, folder: String, now: u64) {
        let mut random = [0; 4];
        self.sessions.runtime.random(&mut random);
        let from = u32::from_le_bytes(random) as usize;
        let (sessions, counter) = (self.sessions.clone(), self.layout.cells());
        let sweep = Sweep { sessions, counter, folder, from, now };
        self.sessions.runtime.spawn(Box::pin(sweep.run(self.ttl)));
    }
}

/// The value to write for this record; fails if it is too long.
fn document(record: &CellRecord, change: &Change) -> Result<Vec<u8>> {
    let value = written(record)?;
    if value.len() > LONGEST {
        let message = format!(
            "a value on ZooKeeper has at most {LONGEST} bytes, with its marks: keep it elsewhere, and its place here"
        );
        return Err(Error::invalid("value", message).with("name", &*change.key.name));
    }
    Ok(value)
}

/// The record that a node holds, with the version of its data.
fn node(value: &[u8], stat: &Stat, path: &str) -> Result<Node> {
    let mut record = read(value, path)?;
    // Whoever wrote it could not know the number of its change.
    if let Some(mark) = record.cell.trail.first_mut() {
        mark.version = Version::new(stat.mzxid.unsigned_abs());
    }
    Ok(Node { record, version: stat.version })
}

/// The number of a change of data.
fn changed(result: &MultiWriteResult) -> Option<i64> {
    match result {
        MultiWriteResult::SetData { stat } => Some(stat.mzxid),
        _ => None,
    }
}

/// Makes a folder of cells, and the node above it, which is never removed: its version may not begin anew.
async fn make(
    client: &Client,
    sessions: &Sessions,
    layout: &Layout,
    folder: &str,
) -> Result<(), Fault> {
    let (counter, container) = (layout.cells(), sessions.options(CreateMode::Container));
    let stays = sessions.options(CreateMode::Persistent);
    let made = match client.create(&counter, b"", &stays).await {
        Err(Fault::NoNode) => client.mkdir(layout.root(), &container).await,
        Ok(_) | Err(Fault::NodeExists) => client.create(folder, b"", &container).await.map(drop),
        Err(fault) => Err(fault),
    };
    match made {
        // One above it was removed meanwhile; whoever needs it asks again.
        Ok(()) | Err(Fault::NodeExists | Fault::NoNode) => Ok(()),
        Err(fault) => Err(fault),
    }
}

/// How many cells are looked at.
const LOOKS: usize = 8;
/// For how long, in µs, an ended cell stays: clocks of clients differ, and a request may be late.
const REST: u64 = 3_600_000_000;

/// One look at a folder for cells that have ended. The server removes none of them: an ephemeral node ends with its writer, and a node with a
/// time to live needs a setting that servers do not come with.
///
/// A client that gives a cell an end looks at some others of its folder. With eight looks for each cell that ends, those that stay longer
/// than they have to are about a seventh of the others at most.
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
