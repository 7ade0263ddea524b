//! A store whose sessions may have one lock each: to give one back gives back all that its session has. In virtual time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::port::{
    Action, Capabilities, EndSink, Failure, Fence, Kind, LeaseStore, LockKey, LockState, Mode,
    Outcome, OwnerId, Runtime, SESSION_TOKENS, Session, SessionStore, Step,
};
use fencelock::{Client, Code, Error, Result, Sessions, Token};
use fencelock_sim::{Sim, SimNode};

use crate::world::take;

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
    /// Whether it ends a session that waits when it grants it the lock, before its answer is there.
    ends_waiting: Arc<AtomicBool>,
    /// The answer for a lock that is waited for.
    waiting: Arc<Mutex<Waiting>>,
    /// How often a lock was asked for.
    asked: Arc<AtomicU64>,
}

/// The outcome of waits for a lock.
#[derive(Clone, Copy, Default, PartialEq)]
enum Waiting {
    #[default]
    Answered,
    /// They fail at once.
    Fails,
    /// Nothing that is asked for from now on is answered.
    Silent,
    /// It is answered 100 ms later.
    Late,
}

/// A session of it.
struct Row {
    server: Server,
    number: u64,
    over: AtomicBool,
    /// It is over, and nobody was told.
    ended: AtomicBool,
    /// A wait is to end.
    interrupted: AtomicBool,
}

impl Server {
    fn new(node: Arc<SimNode>) -> Self {
        let (locks, drawn, asked) = (Arc::default(), Arc::default(), Arc::default());
        let (ends, ends_waiting, waiting) = (Arc::default(), Arc::default(), Arc::default());
        Self { node, locks, drawn, ends, ends_waiting, waiting, asked }
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

    /// Ends when an answer is sent: never, where nothing is answered.
    async fn answers(&self) {
        let waiting = *self.waiting.lock().unwrap();
        match waiting {
            Waiting::Answered | Waiting::Fails => {}
            Waiting::Silent => std::future::pending().await,
            Waiting::Late => self.node.sleep_until(self.node.now() + 100 * MS).await,
        }
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
        let [over, ended, interrupted] = [(); 3].map(|()| AtomicBool::new(false));
        Ok(Row { server: self.clone(), number: self.draw(), over, ended, interrupted })
    }

    async fn state(&self, _: &Row, _: &LockKey) -> Result<LockState, Failure> {
        Ok(LockState::default())
    }
}

impl Session for Row {
    async fn lock(&self, lock: &LockKey, _: Mode, wait: bool) -> Result<Option<Token>, Failure> {
        self.interrupted.store(false, Ordering::Relaxed);
        self.server.asked.fetch_add(1, Ordering::Relaxed);
        self.server.answers().await;
        if wait && *self.server.waiting.lock().unwrap() == Waiting::Fails {
            return Err(Failure::refused(Error::new(Code::Invalid, "the row is gone")));
        }
        loop {
            {
                let mut locks = self.server.locks.lock().unwrap();
                if *locks.entry(lock.clone()).or_insert(self.number) == self.number {
                    if wait && self.server.ends_waiting.load(Ordering::Relaxed) {
                        locks.remove(lock);
                        self.ended.store(true, Ordering::Relaxed);
                    }
                    return Ok(Some(Token::new(self.server.draw() * u64::from(SESSION_TOKENS))));
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
        self.server.answers().await;
        if self.server.ends.load(Ordering::Relaxed) || self.ended.load(Ordering::Relaxed) {
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

/// Plays on a server of its own.
fn play<T>(work: &impl AsyncFn(&Server) -> T) -> T {
    let sim = Sim::new(7);
    let server = Server::new(sim.node(0));
    sim.block_on(work(&server)).expect("it ends")
}

#[test]
fn each_lock_has_a_session_of_its_own() {
    play(&async |server: &Server| {
        let (one, two) = (server.client().await, server.client().await);
        let kept = one.lock("kept").acquire().await.unwrap();
        let brief = one.lock("brief").acquire().await.unwrap();
        brief.release().await.check().unwrap();
        let taken = two.lock("kept").try_acquire().await.unwrap();
        assert!(kept.is_held() && taken.is_none());
    });
}

#[test]
fn a_session_that_a_heartbeat_finds_over_is_lost_at_once() {
    play(&async |server: &Server| {
        let client = server.client().await;
        let guard = client.lock("x").acquire().await.unwrap();
        server.ends.store(true, Ordering::Relaxed);
        let began = server.node.now();
        guard.lost().await;
        // The next heartbeat comes after a quarter of the session's time.
        assert!(server.held() == 0 && server.node.now().since(began) <= TTL / 4 + 10 * MS);
    });
}

#[test]
fn a_lock_that_is_waited_for_is_granted_in_its_own_session() {
    play(&async |server: &Server| {
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
}

/// The server may have granted it long before its answer was read, and ended the silent session since.
#[test]
fn a_grant_that_was_waited_for_long_is_confirmed() {
    play(&async |server: &Server| {
        let (one, two) = (server.client().await, server.client().await);
        let guard = one.lock("x").acquire().await.unwrap();
        server.ends_waiting.store(true, Ordering::Relaxed);
        let node = server.node.clone();
        server.node.spawn(Box::pin(async move {
            node.sleep_until(node.now() + TTL / 3).await;
            guard.release().await.check().unwrap();
        }));
        let next = two.lock("x").acquire().await.unwrap();
        assert!(next.is_held() && server.held() == 1);
    });
}

#[test]
fn a_lock_that_was_taken_a_moment_ago_is_waited_for_at_once() {
    play(&async |server: &Server| {
        let (one, two) = (server.client().await, server.client().await);
        // A try and a wait, then only the wait.
        for (pause, requests) in [(MS, 2), (MS, 1), (MS, 1), (TTL, 2)] {
            server.node.sleep_until(server.node.now() + pause).await;
            let guard = one.lock("x").acquire().await.unwrap();
            let before = server.asked.load(Ordering::Relaxed);
            let node = server.node.clone();
            server.node.spawn(Box::pin(async move {
                node.sleep_until(node.now() + 50 * MS).await;
                guard.release().await.check().unwrap();
            }));
            let next = two.lock("x").acquire().await.unwrap();
            assert_eq!(server.asked.load(Ordering::Relaxed) - before, requests);
            assert!(next.is_held() && server.held() == 1);
            next.release().await.check().unwrap();
        }
    });
}

/// Both clients, of which the second was refused a lock a moment ago that the first one has.
async fn refused_a_moment_ago(server: &Server) -> (Client, Client, fencelock::Guard) {
    let (one, two) = (server.client().await, server.client().await);
    let guard = one.lock("x").acquire().await.unwrap();
    two.lock("x").acquire_within(10 * MS).await.unwrap_err();
    server.node.sleep_until(server.node.now() + 20 * MS).await;
    (one, two, guard)
}

#[test]
fn a_wait_that_fails_is_told() {
    play(&async |server: &Server| {
        let (_one, two, _guard) = refused_a_moment_ago(server).await;
        *server.waiting.lock().unwrap() = Waiting::Fails;
        // At once, then behind a try; in a client that has no idle session.
        for (client, requests) in [(&two, 1), (&two, 2), (&server.client().await, 2)] {
            let before = server.asked.load(Ordering::Relaxed);
            let error = client.lock("x").acquire().await.unwrap_err();
            assert_eq!((error.code(), error.message()), (Code::Invalid, "the row is gone"));
            assert_eq!(server.asked.load(Ordering::Relaxed) - before, requests);
        }
    });
}

#[test]
fn a_silent_server_has_not_said_that_a_lock_is_held() {
    play(&async |server: &Server| {
        let (_one, two, _guard) = refused_a_moment_ago(server).await;
        let held = two.lock("x").acquire_within(200 * MS).await.unwrap_err();
        assert!(held.message().contains("held by somebody else"), "{held}");
        *server.waiting.lock().unwrap() = Waiting::Silent;
        let silent = two.lock("x").acquire_within(200 * MS).await.unwrap_err();
        assert_eq!(silent.code(), Code::Timeout, "{silent}");
        assert!(silent.message().contains("has not answered yet"), "{silent}");
    });
}

#[test]
fn a_wait_that_a_close_overtakes_is_told_as_closed() {
    play(&async |server: &Server| {
        let (one, two) = (server.client().await, server.client().await);
        let _guard = one.lock("x").acquire().await.unwrap();
        *server.waiting.lock().unwrap() = Waiting::Late;
        let (closes, node) = (two.clone(), server.node.clone());
        server.node.spawn(Box::pin(async move {
            node.sleep_until(node.now() + 50 * MS).await;
            closes.close().await;
        }));
        let error = two.lock("x").acquire().await.unwrap_err();
        assert_eq!(error.code(), Code::Closed);
    });
}

/// A client has as many locks as sessions, and is told so.
#[test]
fn one_lock_too_many_is_refused() {
    play(&async |server: &Server| {
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
}

/// As when a hold is handed over to a waiter that leaves at that moment: nobody would take back what the Take gets.
#[test]
fn a_take_that_comes_after_its_leave_is_not_carried_out() {
    play(&async |server: &Server| {
        let sessions = Sessions::open(server.clone(), server.node.clone(), TTL, TTL).await.unwrap();
        let owner = OwnerId::draw(&*server.node);
        let leave = Action::Leave { tombstone: Some(TTL) };
        for action in [leave, take(TTL, Token::default(), true)] {
            let step = Step { lock: LockKey::new("x"), owner, kind: Kind::Mutex, action };
            let answers = sessions.step(&[step]).await;
            assert!(matches!(answers[..], [Ok(Outcome::Gone)]), "{answers:?}");
        }
        assert_eq!(server.held(), 0);
    });
}
