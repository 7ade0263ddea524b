//! Entry queues in memory, which actors of one world share by the name in a URL.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fencelock::Queue;
use fencelock::port::RuntimeHandle;
use fencelock_sim::{MemoryQueue, MemoryQueueStore};

use crate::protocol::Options;

static QUEUES: Mutex<BTreeMap<String, MemoryQueue>> = Mutex::new(BTreeMap::new());

/// How long a session lives, and the lease of a lock, if the options do not say.
const TTL: Duration = Duration::from_secs(30);

/// A queue that lasts as long as this value.
pub struct Kept(String);

fn queues() -> MutexGuard<'static, BTreeMap<String, MemoryQueue>> {
    QUEUES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a queue by this clock, if the URL names one.
pub fn keep(url: &str, clock: &RuntimeHandle) -> Option<Kept> {
    let name = url.strip_prefix("queue:")?.to_owned();
    queues().insert(name.clone(), MemoryQueue::new(clock.clone()));
    Some(Kept(name))
}

impl Drop for Kept {
    fn drop(&mut self) {
        queues().remove(&self.0);
    }
}

/// The store of one more client, if the URL names a queue. Its session lives as long as the lease of its locks.
pub fn client_of(
    url: &str,
    options: &Options,
    runtime: &RuntimeHandle,
) -> Option<Queue<MemoryQueueStore>> {
    let name = url.strip_prefix("queue:")?;
    let store = queues().get(name)?.store();
    let ttl = options.get("ttl").and_then(serde_json::Value::as_u64);
    let ttl = ttl.map_or(TTL, Duration::from_millis);
    Some(Queue::new(store, runtime.clone(), ttl))
}
