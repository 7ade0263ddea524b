//! A Redis store with no algorithm above it, and everything it was told.

use std::sync::Arc;
use std::time::Duration;

use fencelock::driver::redis::RedisStore;
use fencelock::options::Options;
use fencelock::port::{
    Action, Answer, Failure, Kind, LeaseStore, LockKey, Mode, Notice, Outcome, OwnerId,
    RuntimeHandle, Step, Take,
};
use fencelock::runtime::TokioRuntime;
use fencelock::{Result, Token};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use url::Url;

/// Nothing here takes nearly so long: what does not come by then does not come.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// One client of a server, driven step by step.
pub struct Bare {
    /// The store.
    pub store: RedisStore,
    runtime: RuntimeHandle,
    heard: UnboundedReceiver<Notice>,
}

impl Bare {
    /// Connects and listens.
    pub async fn connect(url: &Url, options: &Options) -> Result<Self> {
        let runtime: RuntimeHandle =
            Arc::new(TokioRuntime::current().expect("called in a runtime"));
        let store = RedisStore::connect(url, options, runtime.clone()).await?;
        let (sender, heard) = unbounded_channel();
        // A test that has ended hears no more.
        store.listen(Arc::new(move |notice| drop(sender.send(notice)))).await?;
        Ok(Self { store, runtime, heard })
    }

    /// A new owner id.
    pub fn owner(&self) -> OwnerId {
        OwnerId::draw(&*self.runtime)
    }

    /// One step.
    pub async fn step(&self, lock: &str, owner: OwnerId, action: Action) -> Answer {
        let step = Step { lock: LockKey::new(lock), owner, kind: Kind::Mutex, action };
        self.store.step(&[step]).await.remove(0)
    }

    /// One step that is answered.
    pub async fn ask(&self, lock: &str, owner: OwnerId, action: Action) -> Outcome {
        self.step(lock, owner, action).await.expect("the server answers")
    }

    /// One step that fails.
    pub async fn fail(&self, lock: &str, action: Action) -> Failure {
        self.step(lock, self.owner(), action).await.expect_err("the step fails")
    }

    /// Takes a free lock.
    pub async fn hold(&self, lock: &str) -> OwnerId {
        let owner = self.owner();
        let granted = self.ask(lock, owner, take(true)).await;
        assert!(matches!(granted, Outcome::Granted { .. }), "{granted:?}");
        owner
    }

    /// Queues for a lock that is held.
    pub async fn queue(&self, lock: &str) -> OwnerId {
        let owner = self.owner();
        let queued = self.ask(lock, owner, take(true)).await;
        assert!(matches!(queued, Outcome::Queued { .. }), "{queued:?}");
        owner
    }

    /// The next notice.
    pub async fn hear(&mut self) -> Notice {
        let next = tokio::time::timeout(PATIENCE, self.heard.recv()).await;
        next.expect("a notice comes in time").expect("the store is open")
    }
}

/// The lease of these tests.
pub const TTL: Duration = Duration::from_secs(30);

/// An ordinary Take.
pub fn take(wait: bool) -> Action {
    Action::Take(taking(Mode::Exclusive, 1, wait))
}

/// A Take in this mode.
pub fn taking(mode: Mode, limit: u32, wait: bool) -> Take {
    let (floor, info) = (Token::default(), "{}".into());
    Take { mode, limit, permits: 1, ttl: TTL, wait, block: 1, floor, info, vote: None }
}
