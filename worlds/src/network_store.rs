//! One client's store behind the network: asks, waits no longer than its timeout, and tells what it cannot know.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use fencelock::port::{
    Answer, Capabilities, CellKey, CellStore, Cells, Change, Entry, EntryView, Failure, Fence,
    Instant, Joined, LeaseStore, LockKey, Look, Notice, NoticeSink, OwnerId, QueueNotice,
    QueueSink, QueueStore, Rank, Runtime, SessionId, Standing, Step, Swap,
};
use fencelock::{Code, Result};
use fencelock_sim::SimNode;
use futures_util::future::{Either, select};
use tokio::sync::oneshot;

use super::network::{Act, Network, Reply, State, refused, unknown};
use super::server::Entries;

/// One client's view of the store behind the network.
#[derive(Clone, Debug)]
pub struct NetworkStore {
    network: Network,
    node: Arc<SimNode>,
    channel: Arc<str>,
    timeout: Duration,
}

impl NetworkStore {
    pub(super) fn new(
        network: Network,
        node: Arc<SimNode>,
        channel: Arc<str>,
        timeout: Duration,
    ) -> Self {
        Self { network, node, channel, timeout }
    }

    /// The answer to a request, or why there is none.
    async fn ask<T: Send + 'static>(&self, doubles: bool, act: Act<T>) -> Result<T, Failure> {
        if let Some(error) = self.network.refuses(&self.channel) {
            if error.code() != Code::Closed {
                self.travel().await;
            }
            return Err(Failure::refused(error));
        }
        let (reply, answer) = oneshot::channel();
        let timeout = self.node.sleep_until(self.node.now() + self.timeout);
        self.network.send(&self.channel, doubles, &act, reply);
        match select(answer, timeout).await {
            Either::Left((Ok(Reply::Answer(answer)), _)) => return Ok(answer),
            Either::Left((Ok(Reply::Refused), _)) => return Err(refused("the store is loading")),
            Either::Left((Ok(Reply::Reset), _)) | Either::Right(_) => {}
            // The network lost it: only the own timeout tells.
            Either::Left((Err(_), timeout)) => timeout.await,
        }
        Err(unknown("the store did not answer"))
    }

    async fn exchange(&self, batch: &[Step], all: bool) -> Vec<Answer> {
        let (channel, steps) = (self.channel.clone(), batch.to_vec());
        let act = move |state: &mut State| {
            let (answers, pushes) = state.carry_out(&channel, &steps, all);
            (Reply::Answer(answers), pushes)
        };
        match self.ask(true, Arc::new(act)).await {
            Ok(answers) => answers,
            Err(failure) => batch.iter().map(|_| Err(failure.clone())).collect(),
        }
    }

    /// Does something to the store's entries.
    async fn act_on_entries<T: Send + 'static>(
        &self,
        act: impl Fn(&mut Entries, Instant) -> Result<T, Failure> + Send + Sync + 'static,
    ) -> Result<T, Failure> {
        let act = move |state: &mut State| {
            let torn = state.breaks();
            let (answer, pushes) = state.act_on_entries(&act);
            (if torn { Reply::Reset } else { Reply::Answer(answer) }, pushes)
        };
        self.ask(false, Arc::new(act)).await?
    }

    async fn travel(&self) {
        self.node.sleep_until(self.node.now() + self.network.travel()).await;
    }
}

impl LeaseStore for NetworkStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("simulated", Fence::ClockBounded)
    }

    async fn step(&self, batch: &[Step]) -> Vec<Answer> {
        self.exchange(batch, false).await
    }

    async fn step_all(&self, batch: &[Step]) -> Vec<Answer> {
        self.exchange(batch, true).await
    }

    async fn listen(&self, sink: NoticeSink) -> Result<()> {
        if let Some(error) = self.network.refuses(&self.channel) {
            return Err(error);
        }
        self.travel().await;
        self.network.subscribed(&self.channel, sink);
        Ok(())
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        if let Some(error) = self.network.refuses(&self.channel) {
            return Err(error);
        }
        self.travel().await;
        Ok(self.network.store(|store| store.names(prefix)))
    }

    fn cells(&self) -> Option<Cells<'_>> {
        Some(Cells::of(self))
    }

    fn close(&self) -> impl Future<Output = ()> + Send {
        self.network.hang_up(&self.channel);
        std::future::ready(())
    }
}

impl Drop for NetworkStore {
    fn drop(&mut self) {
        self.network.hang_up(&self.channel);
    }
}

impl CellStore for NetworkStore {
    async fn read(&self, key: &CellKey) -> Result<Look> {
        let key = key.clone();
        let look = move |state: &mut State| (Reply::Answer(state.store.look(&key)), Vec::new());
        self.ask(true, Arc::new(look)).await.map_err(|failure| failure.error)
    }

    async fn compare_and_set(&self, change: &Change) -> Result<Swap, Failure> {
        let change = change.clone();
        let swap = move |state: &mut State| {
            let swap = state.store.swap(&change);
            // Carried out, and then the connection breaks.
            (if state.breaks() { Reply::Reset } else { Reply::Answer(swap) }, Vec::new())
        };
        self.ask(true, Arc::new(swap)).await
    }
}

/// One client's view of a store with sessions behind the network.
#[derive(Debug)]
pub struct EntryStore(NetworkStore);

impl EntryStore {
    pub(crate) fn new(store: NetworkStore) -> Self {
        Self(store)
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
            entries.opened(id, of.clone(), sink.clone());
            store.watch_session(id);
            Ok(id)
        };
        let id = self.0.act_on_entries(open).await.map_err(|failure| failure.error)?;
        let gap = move |notice: Notice| {
            if notice == Notice::Gap {
                heard(QueueNotice::Gap);
            }
        };
        network.subscribed(channel, Arc::new(gap));
        Ok(id)
    }

    async fn beat(&self, of: SessionId) -> Result<Duration, Failure> {
        self.0.act_on_entries(move |entries, now| entries.model.beat(of, now)).await
    }

    async fn join(
        &self,
        of: SessionId,
        lock: &LockKey,
        entry: &Entry,
    ) -> Result<Option<Joined>, Failure> {
        let (lock, entry) = (lock.clone(), entry.clone());
        self.0.act_on_entries(move |entries, now| entries.join(of, &lock, &entry, now)).await
    }

    async fn watch(
        &self,
        of: SessionId,
        lock: &LockKey,
        known: &[Standing],
    ) -> Result<Vec<Rank>, Failure> {
        let (lock, known) = (lock.clone(), known.to_vec());
        self.0.act_on_entries(move |entries, _| entries.model.watch(of, &lock, &known)).await
    }

    async fn leave(
        &self,
        of: SessionId,
        lock: &LockKey,
        owner: OwnerId,
        at: Option<&Rank>,
    ) -> Result<bool, Failure> {
        let (lock, at) = (lock.clone(), at.cloned());
        self.0
            .act_on_entries(move |entries, _| entries.model.leave(of, &lock, owner, at.as_ref()))
            .await
    }

    async fn list(&self, lock: &LockKey) -> Result<Vec<EntryView>> {
        let lock = lock.clone();
        let list = move |entries: &mut Entries, now| Ok(entries.model.list(&lock, now));
        self.0.act_on_entries(list).await.map_err(|failure| failure.error)
    }

    async fn end(&self, of: SessionId) -> Result<(), Failure> {
        let end = move |entries: &mut Entries, _| {
            entries.model.end(of);
            Ok(())
        };
        self.0.act_on_entries(end).await
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        let prefix = prefix.to_owned();
        let names = move |entries: &mut Entries, _| Ok(entries.model.names(&prefix));
        self.0.act_on_entries(names).await.map_err(|failure| failure.error)
    }

    fn cells(&self) -> Option<Cells<'_>> {
        Some(Cells::of(&self.0))
    }

    async fn close(&self) {
        self.0.network.hang_up(&self.0.channel);
    }
}
