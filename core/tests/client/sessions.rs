//! A store whose sessions may have one lock each: to give one back gives back all that its session has. In virtual time.
#![cfg(all(feature = "test-hooks", feature = "mutants"))]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::mutation::{Mutant, activate};
use fencelock::port::{
    Capabilities, EndSink, Failure, Fence, LockKey, LockState, Mode, Runtime, Session, SessionStore,
};
use fencelock::{Client, Code, Error, Result, Sessions, Token};
use fencelock_sim::{Sim, SimNode};

const MS: Duration = Duration::from_millis(1);
const TTL: Duration = Duration::from_secs(20);
/// The most locks of one client.
const MOST: usize = 31;

/// A server: which session has which lock.
#[derive(Clone)]
struct Server {
    node: Arc<SimNode>,
    locks: Arc<Mutex<BTreeMap<LockKey, u64>>>,
    drawn: Arc<AtomicU64>,
    /// Whether it ends sessions instead of answering their heartbeats.
    ends: Arc<AtomicBool>,
}

/// A session of it.
struct Row {
    server: Server,
    number: u64,
    over: AtomicBool,
    /// A wait is to end.
    interrupted: AtomicBool,
}

impl Server {
    fn new(node: Arc<SimNode>) -> Self {
        let (locks, drawn, ends) = (Arc::default(), Arc::default(), Arc::default());
        Self { node, locks, drawn, ends }
    }

    fn draw(&self) -> u64 {
        self.drawn.fetch_add(1, Ordering::Relaxed) + 1
    }

    async fn client(&self) -> Client {
        let sessions = Sessions::open(self.clone(), self.node.clone(), TTL, TTL).await;
        let builder = Client::builder().runtime(self.node.clone()).option("ttl", "20s");
        builder.store(sessions.expect("it connects")).await.expect("it is a store")
    }

    fn roll_back(&self, session: u64) -> bool {
        let mut locks = self.locks.lock().unwrap();
        let before = locks.len();
        locks.retain(|_, of| *of != session);
        locks.len() < before
    }

    /// How many locks somebody has.
    fn held(&self) -> usize {
        self.locks.lock().unwrap().len()
    }
}

impl SessionStore for Server {
    type Session = Row;

    fn capabilities(&self) -> Capabilities {
        Capabilities::new("rows", Fence::ClockBounded).with_sessions()
    }

    fn refusal(&self, _: Mode) -> Option<&'static str> {
        None
    }

    fn holds_several(&self) -> bool {
        false
    }

    async fn connect(&self, _: Duration, _: EndSink) -> Result<Row> {
        let (over, interrupted) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Row { server: self.clone(), number: self.draw(), over, interrupted })
    }

    async fn state(&self, _: &Row, _: &LockKey) -> Result<LockState, Failure> {
        Ok(LockState::default())
    }
}

impl Session for Row {
    async fn lock(&self, lock: &LockKey, _: Mode, wait: bool) -> Result<Option<Token>, Failure> {
        self.interrupted.store(false, Ordering::Relaxed);
        loop {
            {
                let mut locks = self.server.locks.lock().unwrap();
                if *locks.entry(lock.clone()).or_insert(self.number) == self.number {
                    return Ok(Some(Token::new(self.server.draw())));
                }
            }
            if !wait || self.interrupted.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let node = &self.server.node;
            node.sleep_until(node.now() + MS).await;
        }
    }

    async fn unlock(&self, _: &LockKey, _: Mode) -> Result<bool, Failure> {
        Ok(self.server.roll_back(self.number))
    }

    async fn beat(&self) -> Result<(), Failure> {
        if self.server.ends.load(Ordering::Relaxed) {
            self.cut();
            return Err(Failure::refused(Error::new(Code::Closed, "the session is over")));
        }
        Ok(())
    }

    async fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
    }

    fn cut(&self) {
        self.over.store(true, Ordering::Relaxed);
        self.server.roll_back(self.number);
    }

    async fn end(&self) {
        self.cut();
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// A clause holds as it is, and does not hold when it is broken.
fn is_seen(mutant: Mutant, holds: &impl AsyncFn(&Server) -> bool) {
    let run = |broken| {
        let sim = Sim::new(7);
        let server = Server::new(sim.node(0));
        activate(broken);
        let held = sim.block_on(holds(&server));
        activate(None);
        held.expect("it ends")
    };
    assert!(run(None), "nothing is broken");
    assert!(!run(Some(mutant)), "{mutant:?} is not seen");
}

#[test]
fn each_lock_has_a_session_of_its_own() {
    is_seen(Mutant::SessionHoldsSeveral, &async |server: &Server| {
        let (one, two) = (server.client().await, server.client().await);
        let kept = one.lock("kept").acquire().await.unwrap();
        let brief = one.lock("brief").acquire().await.unwrap();
        brief.release().await.check().unwrap();
        let taken = two.lock("kept").try_acquire().await.unwrap();
        kept.is_held() && taken.is_none()
    });
}

#[test]
fn a_session_that_a_heartbeat_finds_over_is_lost_at_once() {
    is_seen(Mutant::SessionEndOverlooked, &async |server: &Server| {
        let client = server.client().await;
        let guard = client.lock("x").acquire().await.unwrap();
        server.ends.store(true, Ordering::Relaxed);
        let began = server.node.now();
        guard.lost().await;
        // The next heartbeat comes after a quarter of the session's time.
        server.held() == 0 && server.node.now().since(began) <= TTL / 4 + 10 * MS
    });
}

#[test]
fn a_lock_that_is_waited_for_is_granted_in_its_own_session() {
    let sim = Sim::new(7);
    let server = Server::new(sim.node(0));
    let ended = sim.block_on(async {
        let (one, two) = (server.client().await, server.client().await);
        let guard = one.lock("x").acquire().await.unwrap();
        let early = two.lock("x").acquire_within(50 * MS).await;
        assert_eq!(early.err().map(|error| error.code()), Some(Code::Timeout));
        let (sender, freed) = futures_channel::oneshot::channel();
        let node = server.node.clone();
        server.node.spawn(Box::pin(async move {
            node.sleep_until(node.now() + 50 * MS).await;
            guard.release().await.check().unwrap();
            let _ = sender.send(());
        }));
        let next = two.lock("x").acquire().await.unwrap();
        freed.await.unwrap();
        assert!(next.is_held() && server.held() == 1);
        next.release().await.check().unwrap();
        assert_eq!(server.held(), 0);
    });
    ended.expect("it ends");
}

/// A client has as many locks as sessions, and is told so.
#[test]
fn one_lock_too_many_is_refused() {
    let sim = Sim::new(7);
    let server = Server::new(sim.node(0));
    let ended = sim.block_on(async {
        let client = server.client().await;
        let mut guards = Vec::new();
        for number in 0..MOST {
            guards.push(client.lock(&format!("x{number}")).acquire().await.unwrap());
        }
        let refused = client.lock("more").try_acquire().await.unwrap_err();
        assert_eq!(refused.code(), Code::Unavailable);
        assert!(refused.message().contains("has or waits for"), "{refused}");
        assert_eq!(server.held(), MOST);
        guards.pop().unwrap().release().await.check().unwrap();
        assert!(client.lock("more").try_acquire().await.unwrap().is_some());
        assert!(guards.iter().all(|guard| guard.is_held()));
    });
    ended.expect("it ends");
}
