//! A line to a queue store that can be tampered with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::port::{
    BoxFuture, Capabilities, Entry, EntryView, Failure, Joined, LockKey, OwnerId, QueueSink,
    QueueStore, Rank, RuntimeHandle, SessionId, Standing,
};
use fencelock::{Code, Error, Result};
use fencelock_sim::MemoryQueueStore;

/// A call of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Call {
    Open,
    Beat,
    Join,
    Watch,
    Leave,
    List,
    End,
}

#[derive(Clone)]
pub(crate) struct Line {
    store: Arc<MemoryQueueStore>,
    node: RuntimeHandle,
    ways: Arc<Mutex<Ways>>,
}

#[derive(Default)]
struct Ways {
    /// Calls that do not arrive.
    lost: BTreeSet<Call>,
    /// Calls that are carried out, but not answered.
    unanswered: BTreeSet<Call>,
    /// Calls that arrive late.
    late: BTreeMap<Call, Duration>,
    /// Calls that are answered late.
    answered_late: BTreeMap<Call, Duration>,
    /// Whether notices are lost.
    deaf: bool,
    counts: BTreeMap<Call, usize>,
    /// The newest session.
    session: Option<SessionId>,
}

/// After this long a call without an answer fails.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(100);

impl Line {
    pub(crate) fn of(store: MemoryQueueStore, node: RuntimeHandle) -> Self {
        Self { store: Arc::new(store), node, ways: Arc::default() }
    }

    pub(crate) fn lose(&self, calls: &[Call]) {
        self.ways.lock().unwrap().lost = calls.iter().copied().collect();
    }

    pub(crate) fn lose_answers(&self, calls: &[Call]) {
        self.ways.lock().unwrap().unanswered = calls.iter().copied().collect();
    }

    pub(crate) fn delay(&self, call: Call, by: Duration) {
        self.ways.lock().unwrap().late.insert(call, by);
    }

    pub(crate) fn delay_answers(&self, call: Call, by: Duration) {
        self.ways.lock().unwrap().answered_late.insert(call, by);
    }

    pub(crate) fn deafen(&self, deaf: bool) {
        self.ways.lock().unwrap().deaf = deaf;
    }

    /// Nothing is lost or late any more.
    pub(crate) fn heal(&self) {
        let mut ways = self.ways.lock().unwrap();
        let (counts, session) = (std::mem::take(&mut ways.counts), ways.session);
        *ways = Ways { counts, session, ..Ways::default() };
    }

    pub(crate) fn count(&self, call: Call) -> usize {
        self.ways.lock().unwrap().counts.get(&call).copied().unwrap_or_default()
    }

    pub(crate) fn session(&self) -> Option<SessionId> {
        self.ways.lock().unwrap().session
    }

    /// Passes a call on in a task of its own: it runs to its end, whether or not anybody waits for the answer.
    async fn pass<T: Send + 'static>(
        &self,
        call: Call,
        work: impl FnOnce(Arc<MemoryQueueStore>) -> BoxFuture<'static, Result<T, Failure>>
        + Send
        + 'static,
    ) -> Result<T, Failure> {
        let line = self.clone();
        let (sender, answer) = futures_channel::oneshot::channel();
        let (lost, unanswered, late, answered_late) = {
            let mut ways = self.ways.lock().unwrap();
            *ways.counts.entry(call).or_default() += 1;
            let late = |times: &BTreeMap<Call, Duration>| times.get(&call).copied();
            let (late, answered_late) = (late(&ways.late), late(&ways.answered_late));
            (ways.lost.contains(&call), ways.unanswered.contains(&call), late, answered_late)
        };
        self.node.spawn(Box::pin(async move {
            if lost {
                line.sleep(TIMEOUT).await;
                let _ = sender.send(Err(unanswered_call()));
                return;
            }
            line.sleep(late.unwrap_or_default()).await;
            let answer = work(line.store.clone()).await;
            line.sleep(answered_late.unwrap_or_default()).await;
            let answer = if unanswered { Err(unanswered_call()) } else { answer };
            let _ = sender.send(answer);
        }));
        answer.await.unwrap_or_else(|_| Err(unanswered_call()))
    }

    async fn sleep(&self, time: Duration) {
        self.node.sleep_until(self.node.now() + time).await;
    }
}

fn unanswered_call() -> Failure {
    Failure::unknown(Error::new(Code::Unavailable, "the store does not answer"))
}

impl QueueStore for Line {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    async fn open(&self, ttl: Duration, sink: QueueSink) -> Result<SessionId> {
        let ways = self.ways.clone();
        let heard: QueueSink = Arc::new(move |notice| {
            if !ways.lock().unwrap().deaf {
                sink(notice);
            }
        });
        let open = move |store: Arc<MemoryQueueStore>| -> BoxFuture<'static, _> {
            Box::pin(async move { store.open(ttl, heard).await.map_err(Failure::unknown) })
        };
        let opened = self.pass(Call::Open, open).await.map_err(|failure| failure.error);
        if let Ok(session) = opened {
            self.ways.lock().unwrap().session = Some(session);
        }
        opened
    }

    async fn beat(&self, of: SessionId) -> Result<Duration, Failure> {
        self.pass(Call::Beat, move |store| Box::pin(async move { store.beat(of).await })).await
    }

    async fn join(
        &self,
        of: SessionId,
        lock: &LockKey,
        entry: &Entry,
    ) -> Result<Option<Joined>, Failure> {
        let (lock, entry) = (lock.clone(), entry.clone());
        let join = move |store: Arc<MemoryQueueStore>| -> BoxFuture<'static, _> {
            Box::pin(async move { store.join(of, &lock, &entry).await })
        };
        self.pass(Call::Join, join).await
    }

    async fn watch(
        &self,
        of: SessionId,
        lock: &LockKey,
        known: &[Standing],
    ) -> Result<Vec<Rank>, Failure> {
        let (lock, known) = (lock.clone(), known.to_vec());
        let watch = move |store: Arc<MemoryQueueStore>| -> BoxFuture<'static, _> {
            Box::pin(async move { store.watch(of, &lock, &known).await })
        };
        self.pass(Call::Watch, watch).await
    }

    async fn leave(
        &self,
        of: SessionId,
        lock: &LockKey,
        owner: OwnerId,
        at: Option<&Rank>,
    ) -> Result<bool, Failure> {
        let (lock, at) = (lock.clone(), at.cloned());
        let leave = move |store: Arc<MemoryQueueStore>| -> BoxFuture<'static, _> {
            Box::pin(async move { store.leave(of, &lock, owner, at.as_ref()).await })
        };
        self.pass(Call::Leave, leave).await
    }

    async fn list(&self, lock: &LockKey) -> Result<Vec<EntryView>> {
        let lock = lock.clone();
        let list = move |store: Arc<MemoryQueueStore>| -> BoxFuture<'static, _> {
            Box::pin(async move { store.list(&lock).await.map_err(Failure::refused) })
        };
        self.pass(Call::List, list).await.map_err(|failure| failure.error)
    }

    async fn end(&self, of: SessionId) -> Result<(), Failure> {
        let end = move |store: Arc<MemoryQueueStore>| -> BoxFuture<'static, _> {
            Box::pin(async move { store.end(of).await })
        };
        self.pass(Call::End, end).await
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        self.store.names(prefix).await
    }

    async fn close(&self) {
        self.store.close().await;
    }
}
