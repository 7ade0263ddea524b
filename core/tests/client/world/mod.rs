//! A world in virtual time: a store, and clients that can be tampered with. Nothing that a slow machine does to a test changes what
//! happens in it.

pub(crate) mod line;
pub(crate) mod nodes;
pub(crate) mod wire;

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use fencelock::driver::memory::{Memory, MemoryStore};
use fencelock::port::{
    Action, EntryView, Instant, LeaseStore, LockKey, Mode, Outcome, OwnerId, QueueStore, Runtime,
    SessionId, Step, Take,
};
use fencelock::{Client, Guard, Queue, Token};
use fencelock_sim::{Chaos, Fault, MemoryQueue, Sim, SimNode};
use futures_channel::oneshot::{self, Receiver};
use futures_util::future::{Either, select};

use self::line::Line;
use self::wire::Wire;

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const S: Duration = Duration::from_secs(1);
/// How long a session lives, and the lease that a lock has by default.
pub(crate) const TTL: Duration = Duration::from_secs(30);

/// As many orders of what happens at one instant are gone through.
const ORDERS: u64 = 8;
/// The longest that a story may take, in its own time.
const LONGEST: Duration = Duration::from_secs(2_000_000);

/// Plays a story to its end, in several orders.
#[expect(clippy::needless_pass_by_value, reason = "a story stands where it is played")]
pub(crate) fn play(story: impl AsyncFn(&World)) {
    for seed in 0..ORDERS {
        // Shown where it fails.
        println!("seed {seed}");
        play_once(seed, &story);
    }
}

/// Plays a story in the order of this seed.
pub(crate) fn play_once(seed: u64, story: &impl AsyncFn(&World)) {
    let world = World::new(seed);
    let ended = world.within(LONGEST, story(&world));
    world.sim.block_on(ended).expect("the story goes on").expect("the story ends");
}

/// A world with one store, and one of entries.
pub(crate) struct World {
    pub(crate) sim: Sim,
    pub(crate) node: Arc<SimNode>,
    pub(crate) memory: Memory,
    queue: MemoryQueue,
}

/// A client over entries on a machine of its own, with a line that can be tampered with.
pub(crate) struct Machine {
    pub(crate) node: Arc<SimNode>,
    pub(crate) client: Client,
    pub(crate) line: Line,
}

impl World {
    fn new(seed: u64) -> Self {
        let sim = Sim::new(seed);
        let node = sim.node(0);
        let queue = MemoryQueue::new(node.clone());
        Self { sim, node, memory: Memory::new(), queue }
    }

    pub(crate) fn now(&self) -> Instant {
        self.node.now()
    }

    /// How long ago that is.
    pub(crate) fn since(&self, moment: Instant) -> Duration {
        self.node.now().since(moment)
    }

    pub(crate) async fn sleep(&self, time: Duration) {
        self.node.sleep_until(self.node.now() + time).await;
    }

    /// The result of the work, if it comes within this time.
    pub(crate) async fn within<T>(
        &self,
        time: Duration,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        match select(Box::pin(work), Box::pin(self.sleep(time))).await {
            Either::Left((answer, _)) => Some(answer),
            Either::Right(_) => None,
        }
    }

    /// Sets something off.
    pub(crate) fn begin<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Receiver<T> {
        let (sender, ended) = oneshot::channel();
        self.node.spawn(Box::pin(async move {
            let _ = sender.send(work.await);
        }));
        ended
    }

    /// Sets an acquire off.
    pub(crate) fn start(
        &self,
        work: impl Future<Output = fencelock::Result<Guard>> + Send + 'static,
    ) -> Won {
        let (sender, won) = oneshot::channel();
        self.node.spawn(Box::pin(async move {
            if let Ok(guard) = work.await {
                let _ = sender.send(guard);
            }
        }));
        won
    }

    pub(crate) async fn client(&self) -> Client {
        let builder = Client::builder().runtime(self.node.clone());
        let client = builder.store(self.memory.store(self.node.clone())).await;
        client.expect("memory connects")
    }

    /// A client whose wire to the store can be tampered with.
    pub(crate) async fn wired(&self) -> (Client, Wire) {
        let wire = Wire::of(self.memory.store(self.node.clone()));
        let builder = Client::builder().runtime(self.node.clone());
        (builder.store(wire.clone()).await.expect("memory connects"), wire)
    }

    /// A client whose every request meets the fault of the moment.
    pub(crate) async fn struck(&self, fault: &Arc<Mutex<Fault>>) -> Client {
        let (store, fault) = (self.memory.store(self.node.clone()), fault.clone());
        let store = Chaos::new(store, self.node.clone(), move || *fault.lock().unwrap());
        let builder = Client::builder().runtime(self.node.clone());
        builder.store(store).await.expect("memory connects")
    }

    /// A client on a machine of its own.
    pub(crate) async fn machine(&self) -> (Arc<SimNode>, Client) {
        let node = self.sim.node(0);
        let builder = Client::builder().runtime(node.clone());
        let client = builder.store(self.memory.store(node.clone())).await;
        (node, client.expect("memory connects"))
    }

    /// Steps by hand, as a client that does nothing by itself.
    pub(crate) async fn bare(&self) -> Bare {
        let store = self.memory.store(self.node.clone());
        store.listen(Arc::new(|_| {})).await.expect("memory listens");
        Bare { store, node: self.node.clone() }
    }

    /// A lease store over entries, and the line to what it is made of.
    pub(crate) fn entry_queue(&self, node: &Arc<SimNode>) -> (Line, Queue<Line>) {
        let line = Line::of(self.queue.store(), node.clone());
        (line.clone(), Queue::new(line, node.clone(), TTL))
    }

    /// A client over entries.
    pub(crate) async fn entrant(&self) -> Machine {
        let node = self.sim.node(0);
        let (line, queue) = self.entry_queue(&node);
        let client = Client::builder().runtime(node.clone()).store(queue).await;
        Machine { node, client: client.expect("memory connects"), line }
    }

    /// The entries of the lock `x`.
    pub(crate) async fn entries(&self) -> Vec<EntryView> {
        self.queue.store().list(&LockKey::new("x")).await.expect("memory answers")
    }

    /// Removes an entry, as a person does it by hand.
    pub(crate) async fn remove(&self, entry: &EntryView) {
        let store = self.queue.store();
        let session = store.open(S, Arc::new(|_| {})).await.expect("memory answers");
        let nobody = OwnerId::draw(&*self.node);
        let (lock, rank) = (LockKey::new("x"), &entry.standing.rank);
        let found = store.leave(session, &lock, nobody, Some(rank)).await;
        assert!(found.expect("memory answers"), "it was there");
        store.end(session).await.expect("memory answers");
    }

    /// Ends a session on the store.
    pub(crate) async fn end(&self, session: SessionId) {
        self.queue.store().end(session).await.expect("memory answers");
    }
}

/// The guard of an acquire that was set off.
pub(crate) type Won = Receiver<Guard>;

/// The guard, if it was granted by now.
pub(crate) fn granted(won: &mut Won) -> Option<Guard> {
    won.try_recv().ok().flatten()
}

/// A client that does nothing by itself.
pub(crate) struct Bare {
    store: MemoryStore,
    node: Arc<SimNode>,
}

impl Bare {
    pub(crate) async fn ask(&self, owner: OwnerId, action: Action) -> Outcome {
        let kind = Mode::Exclusive.kind();
        let step = Step { lock: LockKey::new("x"), owner, kind, action };
        self.store.step(&[step]).await.remove(0).expect("memory answers")
    }

    pub(crate) async fn take(&self, wait: bool) -> (OwnerId, Outcome) {
        self.take_above(Token::default(), wait).await
    }

    /// A Take that brings a floor.
    pub(crate) async fn take_above(&self, floor: Token, wait: bool) -> (OwnerId, Outcome) {
        let owner = OwnerId::draw(&*self.node);
        (owner, self.ask(owner, take(20 * S, floor, wait)).await)
    }

    pub(crate) async fn open(&self, owner: OwnerId) {
        let freed = self.ask(owner, Action::Free { open: true }).await;
        assert_eq!(freed, Outcome::Freed);
    }
}

/// An ordinary Take.
pub(crate) fn take(ttl: Duration, floor: Token, wait: bool) -> Action {
    let (mode, limit, permits, block, info) = (Mode::Exclusive, 1, 1, 1, "{}".into());
    Action::Take(Take { mode, limit, permits, ttl, wait, block, floor, info, vote: None })
}

/// Polls once.
pub(crate) async fn look<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context))).await
}
