//! The clients of one environment, behind numbers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fencelock::facade::Facade;
use futures_util::future::join_all;

use crate::feed::Feed;

/// A client with its guards, and what happens to its locks.
pub(crate) struct Connected {
    pub facade: Facade,
    pub feed: Arc<Feed>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Clients(Mutex<Table>);

#[derive(Default)]
struct Table {
    numbers: u64,
    connected: BTreeMap<u64, Connected>,
    /// The environment has ended: nobody would ever use or close a client.
    ended: bool,
}

impl Clients {
    /// Gives a client a number; it is dropped if the environment has ended meanwhile.
    pub(crate) fn add(&self, connected: Connected) -> u64 {
        let mut table = self.table();
        if table.ended {
            return 0;
        }
        table.numbers += 1;
        let number = table.numbers;
        table.connected.insert(number, connected);
        number
    }

    /// Does something with a client, if it is there.
    pub(crate) fn with<T>(&self, number: u64, act: impl FnOnce(&Connected) -> T) -> Option<T> {
        self.table().connected.get(&number).map(act)
    }

    /// Gives up a client with all it holds and does.
    pub(crate) fn remove(&self, number: u64) {
        let connected = self.table().connected.remove(&number);
        drop(connected);
    }

    /// Takes all of them for good and closes them, for at most so long; what is not confirmed by then is left to its lease.
    pub(crate) fn end(&self, most: Duration) {
        let connected = {
            let mut table = self.table();
            table.ended = true;
            std::mem::take(&mut table.connected)
        };
        if connected.is_empty() {
            return;
        }
        if let Ok(runtime) = crate::runtime::handle() {
            let closing = connected.values().map(|connected| connected.facade.client().close());
            let closing = join_all(closing);
            let _ = runtime.block_on(async { tokio::time::timeout(most, closing).await });
        }
        drop(connected);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
