//! Cells: values with versions, a key each. A change reads the key and replaces it in a transaction that compares the revision
//! that was read.
//!
//! The model runs in the client. Its versions follow the store's revision, which never falls, instead of a clock. Its times are
//! those of the asker's clock, since etcd shows none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::layout::Layout;
use super::link::Link;
use super::message::{Compare, DeleteRange, LeaseGrant, Operation, Put, Txn, one};
use crate::driver::cell::{self, CellRecord};
use crate::driver::cell_document::{read, written};
use crate::error::{Code, Result};
use crate::port::{CellKey, CellStore, Change, Failure, Instant, Look, Swap};
use crate::runtime::sync::Mutex;

/// The leases are longer than the cells need them by this much.
const MARGIN: Duration = Duration::from_secs(60);

/// The cells of one client.
pub(super) struct EtcdCells {
    link: Arc<Link>,
    layout: Layout,
    /// By how long they last for a new cell, the leases that remove cells: each is used for as long as it outlasts those.
    leases: Mutex<BTreeMap<Duration, (i64, Instant)>>,
}

/// A cell as it was read.
struct Present {
    record: Option<CellRecord>,
    /// The revision that wrote it; 0 if there is nothing.
    modified: i64,
    /// The store's revision at that moment.
    revision: u64,
}

impl EtcdCells {
    pub(super) fn new(link: Arc<Link>, layout: Layout) -> Self {
        Self { link, layout, leases: Mutex::default() }
    }

    async fn present(&self, key: &str) -> Result<Present, Failure> {
        let answer = self.link.call(Txn::default().then(vec![one(key)])).await?;
        let revision = answer.revision().unsigned_abs();
        let found = answer.found().next().and_then(|mut found| found.pop());
        let Some(kv) = found else { return Ok(Present { record: None, modified: 0, revision }) };
        let record = Some(read(&kv.value, key).map_err(Failure::refused)?);
        Ok(Present { record, modified: kv.mod_revision, revision })
    }

    /// A lease that outlasts `life`.
    async fn lease(&self, life: Duration) -> Result<i64, Failure> {
        let now = self.link.runtime.now();
        // Shared by all cells of this life: a job that runs every minute would leave a lease for each run.
        let known = self.leases.lock().get(&life).copied();
        if let Some((id, ends)) = known
            && ends >= now + life
        {
            return Ok(id);
        }
        // Used for one `life`, after which it lasts another one.
        let ttl = life * 2 + MARGIN;
        let seconds = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX);
        let granted = self.link.call(LeaseGrant { ttl: seconds }).await;
        // A lease of which nobody knows removes nothing.
        let granted = granted.map_err(|failure| Failure::refused(failure.error))?;
        self.leases.lock().insert(life, (granted.id, now + ttl));
        Ok(granted.id)
    }

    /// The operation that has `record` lie under `key`.
    async fn put(
        &self,
        key: &str,
        record: Option<&CellRecord>,
        life: Option<Duration>,
    ) -> Result<Operation, Failure> {
        let key = key.into();
        let Some(record) = record else { return Ok(Operation::Delete(DeleteRange { key })) };
        let value = written(record).map_err(Failure::refused)?;
        let lease = match life {
            Some(life) => self.lease(life).await?,
            None => 0,
        };
        Ok(Operation::Put(Put { key, value, lease }))
    }
}

impl CellStore for EtcdCells {
    async fn read(&self, key: &CellKey) -> Result<Look> {
        let present = self.present(&self.layout.cell(key)).await.map_err(|failed| failed.error)?;
        Ok(cell::look(present.record.as_ref(), self.link.runtime.wall()))
    }

    async fn compare_and_set(&self, change: &Change) -> Result<Swap, Failure> {
        let key = self.layout.cell(&change.key);
        loop {
            let Present { mut record, modified, revision } = self.present(&key).await?;
            let (now, floor) = (self.link.runtime.wall(), revision + 1);
            if let Some(failure) = cell::refusal(record.as_ref(), now, floor) {
                return Err(failure);
            }
            let swap = cell::swap_above(&mut record, change, now, floor);
            if let Swap::Other(_) = swap {
                return Ok(swap);
            }
            let put = self.put(&key, record.as_ref(), change.life()).await?;
            let same = vec![Compare::modified(&key, modified)];
            match self.link.call(Txn::when(same).then(vec![put])).await {
                Ok(answer) if answer.succeeded => return Ok(swap),
                // Somebody was faster.
                Ok(_) => {}
                // Its lease has gone, with the store's data or by somebody's hand.
                Err(failure) if failure.error.code() == Code::Lost => self.leases.lock().clear(),
                Err(failure) => return Err(failure),
            }
        }
    }
}
