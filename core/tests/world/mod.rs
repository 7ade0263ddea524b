//! A world in virtual time for one clause: a store, and clients that can be tampered with.

pub(crate) mod clock;
pub(crate) mod closing;
pub(crate) mod ended;
pub(crate) mod healing;
pub(crate) mod job;
pub(crate) mod line;
pub(crate) mod many;
pub(crate) mod queue;
pub(crate) mod renewal;

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use fencelock::driver::memory::{Memory, MemoryStore};
use fencelock::port::{Action, LeaseStore, LockKey, Mode, Outcome, OwnerId, Runtime, Step, Take};
use fencelock::{Client, Guard, Token};
use fencelock_sim::{Chaos, Fault};
use fencelock_sim::{Sim, SimNode};

use crate::wire::Wire;

const TTL: Duration = Duration::from_secs(20);

/// A world with one store.
pub(crate) struct World {
    pub(crate) sim: Sim,
    pub(crate) node: Arc<SimNode>,
    pub(crate) memory: Memory,
}

impl World {
    /// A world of this seed.
    pub(crate) fn new(seed: u64) -> Self {
        let sim = Sim::new(seed);
        let node = sim.node(0);
        Self { sim, node, memory: Memory::new() }
    }

    pub(crate) async fn sleep(&self, time: Duration) {
        self.node.sleep_until(self.node.now() + time).await;
    }

    pub(crate) async fn client(&self) -> Client {
        self.wired().await.0
    }

    /// A client whose line to the store can be tampered with.
    pub(crate) async fn wired(&self) -> (Client, Wire) {
        let wire = Wire::of(self.memory.store(self.node.clone()));
        let builder = Client::builder().runtime(self.node.clone());
        (builder.store(wire.clone()).await.expect("memory connects"), wire)
    }

    /// Sets an acquire off.
    pub(crate) fn start(
        &self,
        work: impl Future<Output = fencelock::Result<Guard>> + Send + 'static,
    ) -> Won {
        self.begin(async { work.await.expect("it is granted") })
    }

    /// Sets something off.
    pub(crate) fn begin<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> futures_channel::oneshot::Receiver<T> {
        let (sender, ended) = futures_channel::oneshot::channel();
        self.node.spawn(Box::pin(async move {
            let _ = sender.send(work.await);
        }));
        ended
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
}

/// The result of an acquire that was set off.
pub(crate) type Won = futures_channel::oneshot::Receiver<Guard>;

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
        (owner, self.ask(owner, take(TTL, floor, wait)).await)
    }

    pub(crate) async fn open(&self, owner: OwnerId) {
        let freed = self.ask(owner, Action::Free { open: true }).await;
        assert_eq!(freed, Outcome::Freed);
    }
}

/// An ordinary Take.
pub(crate) fn take(ttl: Duration, floor: Token, wait: bool) -> Action {
    let (mode, limit, permits, block) = (Mode::Exclusive, 1, 1, 1);
    Action::Take(Take {
        mode,
        limit,
        permits,
        ttl,
        wait,
        block,
        floor,
        info: "{}".into(),
        vote: None,
    })
}

/// Checks a condition at the end of a world; `why` explains a failure.
pub(crate) fn check(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

/// Polls once.
pub(crate) async fn look<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context))).await
}

/// Polls a waiter once: what it is given, if anything, is held.
pub(crate) async fn given_held(
    waiting: &mut (impl Future<Output = fencelock::Result<Guard>> + Unpin),
) -> bool {
    match look(waiting).await {
        Poll::Ready(won) => won.expect("it is granted").is_held(),
        Poll::Pending => true,
    }
}
