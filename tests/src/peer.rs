//! A client with no algorithm above it: takes, waits and frees by bare steps, for the tests of one driver.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock::driver::sqlite::SqliteStore;
use fencelock::options::Options;
use fencelock::port::{
    Action, Answer, Kind, LeaseStore, LockKey, Mode, Notice, Outcome, OwnerId, RuntimeHandle, Step,
    Take,
};
use fencelock::runtime::TokioRuntime;
use fencelock::{Result, Token};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How often a waiter asks for itself, in case a notice was lost.
const REFRESH: Duration = Duration::from_millis(500);

/// One client of a store.
pub struct Peer<S> {
    /// The store, for steps this type has no word for.
    pub store: S,
    /// Its platform.
    pub runtime: RuntimeHandle,
    heard: Arc<Mutex<BTreeMap<OwnerId, UnboundedSender<Notice>>>>,
}

/// A place in a queue.
pub struct Place {
    /// The attempt that waits.
    pub owner: OwnerId,
    /// The answer it got.
    pub answer: Answer,
    heard: UnboundedReceiver<Notice>,
}

impl Peer<SqliteStore> {
    /// A client of the SQLite file at `path`.
    pub async fn open(path: &Path, options: &Options) -> Result<Self> {
        let store = SqliteStore::open(path, options, runtime()).await?;
        Ok(Self::over(store).await)
    }
}

/// The tokio runtime this is called in.
pub fn runtime() -> RuntimeHandle {
    Arc::new(TokioRuntime::current().expect("called in a runtime"))
}

impl<S: LeaseStore> Peer<S> {
    /// A client over any store.
    pub async fn over(store: S) -> Self {
        let heard = Arc::new(Mutex::new(BTreeMap::<OwnerId, UnboundedSender<Notice>>::new()));
        let sink = heard.clone();
        let listening = store.listen(Arc::new(move |notice: Notice| {
            if let Notice::Granted { owner, .. } | Notice::Open { owner } = &notice
                && let Some(waiter) = sink.lock().unwrap().get(owner)
            {
                let _ = waiter.send(notice);
            }
        }));
        listening.await.expect("a fresh store listens");
        Self { store, runtime: runtime(), heard }
    }

    /// One step.
    pub async fn step(&self, name: &str, owner: OwnerId, action: Action) -> Answer {
        let step = Step { lock: LockKey::new(name), owner, kind: Kind::Mutex, action };
        self.store.step(&[step]).await.remove(0)
    }

    /// Asks for the lock without waiting: the owner and the answer.
    pub async fn try_take(&self, name: &str, ttl: Duration) -> (OwnerId, Answer) {
        let owner = OwnerId::draw(&*self.runtime);
        (owner, self.step(name, owner, take(ttl, false)).await)
    }

    /// Asks for the lock, and queues for it.
    pub async fn join(&self, name: &str, ttl: Duration) -> Place {
        let owner = OwnerId::draw(&*self.runtime);
        let (sender, heard) = unbounded_channel();
        self.heard.lock().unwrap().insert(owner, sender);
        let answer = self.step(name, owner, take(ttl, true)).await;
        Place { owner, answer, heard }
    }

    /// Waits to the grant, with a refresh at times.
    pub async fn wait(&self, name: &str, ttl: Duration, mut place: Place) -> (OwnerId, Token) {
        let owner = place.owner;
        loop {
            let token = match place.answer {
                Ok(Outcome::Granted { token, .. }) => Some(token),
                Ok(Outcome::Queued { .. }) => {
                    match tokio::time::timeout(REFRESH, place.heard.recv()).await {
                        Ok(Some(Notice::Granted { token, .. })) => Some(token),
                        _ => None,
                    }
                }
                other => panic!("a waiter was answered {other:?}"),
            };
            if let Some(token) = token {
                self.heard.lock().unwrap().remove(&owner);
                return (owner, token);
            }
            place.answer = self.step(name, owner, Action::Refresh { ttl }).await;
        }
    }

    /// Takes the lock, however long it takes.
    pub async fn acquire(&self, name: &str, ttl: Duration) -> (OwnerId, Token) {
        let place = self.join(name, ttl).await;
        self.wait(name, ttl, place).await
    }

    /// Ends a hold.
    pub async fn free(&self, name: &str, owner: OwnerId) -> Answer {
        self.step(name, owner, Action::Free { open: false }).await
    }
}

impl Place {
    /// The next notice, with no refresh to help.
    pub async fn hear(&mut self) -> Notice {
        self.heard.recv().await.expect("the peer is still there")
    }
}

fn take(ttl: Duration, wait: bool) -> Action {
    let (mode, limit) = (Mode::Exclusive, 1);
    Action::Take(Take {
        mode,
        limit,
        permits: 1,
        ttl,
        wait,
        block: 1,
        floor: Token::default(),
        info: "{}".into(),
        vote: None,
    })
}
