//! The entries of the store behind the network.

use std::sync::Arc;
use std::time::Duration;

use fencelock::Result;
use fencelock::port::{
    Capabilities, Cells, Entry, EntryView, Failure, Fence, Instant, Joined, LockKey, Notice,
    OwnerId, QueueNotice, QueueSink, QueueStore, Rank, Runtime, SessionId, Standing,
};
use futures_util::future::{Either, select};
use tokio::sync::oneshot;

use super::NetworkStore;
use crate::entries::Entries;
use crate::network::entries::Told;
use crate::network::{refused, unknown};

/// One client's view of a store with sessions behind the network.
#[derive(Debug)]
pub struct EntryStore(NetworkStore);

impl EntryStore {
    pub(crate) fn new(store: NetworkStore) -> Self {
        Self(store)
    }

    async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut Entries, Instant) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let NetworkStore { network, node, channel, timeout } = &self.0;
        self.0.hindered().await?;
        let (reply, told) = oneshot::channel();
        let timeout = node.sleep_until(node.now() + *timeout);
        network.ask_entries(channel, Box::new(ask), reply);
        match select(told, timeout).await {
            Either::Left((Ok(Told::Answer(answer)), _)) => answer,
            Either::Left((Ok(Told::Refused), _)) => Err(refused("the store is loading")),
            Either::Left((Ok(Told::Reset), _)) | Either::Right(_) => {
                Err(unknown("the store did not answer"))
            }
            Either::Left((Err(_), timeout)) => {
                // The network lost it: only the own timeout tells.
                timeout.await;
                Err(unknown("the store did not answer"))
            }
        }
    }
}

impl QueueStore for EntryStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("simulated", Fence::ClockBounded).with_sessions()
    }

    async fn open(&self, ttl: Duration, sink: QueueSink) -> Result<SessionId> {
        let NetworkStore { network, channel, .. } = &self.0;
        let (heard, store, of) = (sink.clone(), network.clone(), channel.clone());
        let open = move |entries: &mut Entries, now| {
            let id = entries.model.open(ttl, now);
            entries.opened(id, of, sink);
            store.watch_session(id);
            Ok(id)
        };
        let id = self.ask(open).await.map_err(|failure| failure.error)?;
        let gap = move |notice: Notice| {
            if notice == Notice::Gap {
                heard(QueueNotice::Gap);
            }
        };
        network.subscribed(channel, Arc::new(gap));
        Ok(id)
    }

    async fn beat(&self, of: SessionId) -> Result<Duration, Failure> {
        self.ask(move |entries, now| entries.model.beat(of, now)).await
    }

    async fn join(
        &self,
        of: SessionId,
        lock: &LockKey,
        entry: &Entry,
    ) -> Result<Option<Joined>, Failure> {
        let (lock, entry) = (lock.clone(), entry.clone());
        self.ask(move |entries, now| entries.join(of, &lock, &entry, now)).await
    }

    async fn watch(
        &self,
        of: SessionId,
        lock: &LockKey,
        known: &[Standing],
    ) -> Result<Vec<Rank>, Failure> {
        let (lock, known) = (lock.clone(), known.to_vec());
        self.ask(move |entries, _| entries.model.watch(of, &lock, &known)).await
    }

    async fn leave(
        &self,
        of: SessionId,
        lock: &LockKey,
        owner: OwnerId,
        at: Option<&Rank>,
    ) -> Result<bool, Failure> {
        let (lock, at) = (lock.clone(), at.cloned());
        self.ask(move |entries, _| entries.model.leave(of, &lock, owner, at.as_ref())).await
    }

    async fn list(&self, lock: &LockKey) -> Result<Vec<EntryView>> {
        let lock = lock.clone();
        let list = move |entries: &mut Entries, now| Ok(entries.model.list(&lock, now));
        self.ask(list).await.map_err(|failure| failure.error)
    }

    async fn end(&self, of: SessionId) -> Result<(), Failure> {
        let end = move |entries: &mut Entries, _| {
            entries.model.end(of);
            Ok(())
        };
        self.ask(end).await
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        let prefix = prefix.to_owned();
        let names = move |entries: &mut Entries, _| Ok(entries.model.names(&prefix));
        self.ask(names).await.map_err(|failure| failure.error)
    }

    fn cells(&self) -> Option<Cells<'_>> {
        Some(Cells::of(&self.0))
    }

    async fn close(&self) {
        self.0.network.hang_up(&self.0.channel);
    }
}
