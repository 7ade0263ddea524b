//! Worlds in virtual time over an entry queue, for the clauses of that queue.

pub(crate) mod late;
pub(crate) mod line;
pub(crate) mod modes;
pub(crate) mod order;
pub(crate) mod random;
pub(crate) mod sessions;
pub(crate) mod unknown;

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use fencelock::driver::queue::{MemoryQueue, MemoryQueueStore};
use fencelock::port::{EntryView, Instant, LockKey, OwnerId, QueueStore, Runtime, SessionId};
use fencelock::{Client, Guard, Queue};
use fencelock_sim::{Sim, SimNode};

pub(crate) use self::line::Call;

/// A line to the store of a world.
pub(crate) type Line = line::Line<MemoryQueueStore>;

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const S: Duration = Duration::from_secs(1);
/// How long a session lives, and the lease that a lock has by default.
pub(crate) const TTL: Duration = Duration::from_secs(30);

/// A world with one store.
pub(crate) struct World {
    pub(crate) sim: Sim,
    /// The machine of the store.
    pub(crate) node: Arc<SimNode>,
    memory: MemoryQueue,
}

/// A client on a machine of its own, with a line that can be tampered with.
pub(crate) struct Machine {
    pub(crate) node: Arc<SimNode>,
    pub(crate) client: Client,
    pub(crate) line: Line,
}

/// The result of an acquire that was set off.
pub(crate) type Won = futures_channel::oneshot::Receiver<Guard>;

impl World {
    /// A world of this seed.
    pub(crate) fn new(seed: u64) -> Self {
        let sim = Sim::new(seed);
        let node = sim.node(0);
        let memory = MemoryQueue::new(node.clone());
        Self { sim, node, memory }
    }

    pub(crate) async fn sleep(&self, time: Duration) {
        self.node.sleep_until(self.node.now() + time).await;
    }

    pub(crate) fn now(&self) -> Instant {
        self.node.now()
    }

    /// How long ago that is.
    pub(crate) fn since(&self, moment: Instant) -> Duration {
        self.node.now().since(moment)
    }

    pub(crate) async fn machine(&self) -> Machine {
        self.machine_that_drifts(0).await
    }

    /// One whose clock gains so many parts per million.
    pub(crate) async fn machine_that_drifts(&self, drift: i32) -> Machine {
        let node = self.sim.node(drift);
        let (line, queue) = self.queue(&node);
        let client = Client::builder().runtime(node.clone()).store(queue).await;
        Machine { node, client: client.expect("memory connects"), line }
    }

    /// A lease store of a machine's own, and the line to what it is made of.
    pub(crate) fn queue(&self, node: &Arc<SimNode>) -> (Line, Queue<Line>) {
        let line = Line::of(self.memory.store(), node.clone());
        (line.clone(), Queue::new(line, node.clone(), TTL))
    }

    pub(crate) async fn client(&self) -> Client {
        self.machine().await.client
    }

    /// The entries of the lock `x`.
    pub(crate) async fn entries(&self) -> Vec<EntryView> {
        self.memory.store().list(&LockKey::new("x")).await.expect("memory answers")
    }

    /// Removes an entry, as a person does it by hand.
    pub(crate) async fn remove(&self, entry: &EntryView) {
        let store = self.memory.store();
        let session = store.open(S, Arc::new(|_| {})).await.expect("memory answers");
        let nobody = OwnerId::draw(&*self.node);
        let (lock, rank) = (LockKey::new("x"), &entry.standing.rank);
        let found = store.leave(session, &lock, nobody, Some(rank)).await;
        assert!(found.expect("memory answers"), "it was there");
        store.end(session).await.expect("memory answers");
    }

    /// Ends a session on the store.
    pub(crate) async fn end(&self, session: SessionId) {
        self.memory.store().end(session).await.expect("memory answers");
    }

    /// Sets an acquire off.
    pub(crate) fn start(
        &self,
        work: impl Future<Output = fencelock::Result<Guard>> + Send + 'static,
    ) -> Won {
        let (sender, won) = futures_channel::oneshot::channel();
        self.node.spawn(Box::pin(async move {
            if let Ok(guard) = work.await {
                let _ = sender.send(guard);
            }
        }));
        won
    }
}

/// Checks a condition at the end of a world; `why` explains a failure.
pub(crate) fn check(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

/// The guard, if it was granted by now.
pub(crate) fn granted(won: &mut Won) -> Option<Guard> {
    won.try_recv().ok().flatten()
}

/// Polls once.
pub(crate) async fn look<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context))).await
}
