//! The state that the steps of one client share.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use event_listener::Event;
use futures_util::future::{Either, join_all, select};

use super::state::Id;
use super::state::{Effects, State};
use crate::error::{Code, Error};
use crate::port::detach_on_drop::DetachOnDrop;
use crate::port::{
    Answer, Failure, Instant, MaybeSend, OwnerId, RuntimeHandle, Session, SessionStore,
};
use crate::runtime::sync::Mutex;

pub(super) struct Shared<S: SessionStore> {
    pub(super) store: S,
    pub(super) runtime: RuntimeHandle,
    /// How long a session lives without a sign of life, and the longest lease.
    pub(super) ttl: Duration,
    /// How long a step may take.
    timeout: Duration,
    state: Mutex<State<S::Session>>,
    /// Something has changed that others wait for.
    pub(super) news: Event,
    /// Something is due earlier than the sessions' tasks look.
    pub(super) earlier: Event,
}

impl<S: SessionStore> Shared<S> {
    pub(super) fn new(store: S, runtime: RuntimeHandle, ttl: Duration, timeout: Duration) -> Self {
        let (state, news, earlier) = (Mutex::default(), Event::new(), Event::new());
        Self { store, runtime, ttl, timeout, state, news, earlier }
    }

    /// Changes the state at this moment, then carries out what follows from that.
    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&mut State<S::Session>, Instant, &mut Effects<S::Session>) -> T,
    ) -> T {
        let mut effects = Effects::default();
        let mut state = self.state.lock();
        let changed = change(&mut state, self.runtime.now(), &mut effects);
        let sink = state.sink.clone();
        drop(state);
        let Effects { notices, cut, news, earlier } = effects;
        for session in cut {
            session.cut();
        }
        if let Some(sink) = sink {
            for notice in notices {
                sink(notice);
            }
        }
        if news {
            self.news.notify(usize::MAX);
        }
        if earlier {
            self.earlier.notify(usize::MAX);
        }
        changed
    }

    /// A session is over.
    pub(super) fn lose(&self, id: Id) {
        self.change(|state, _, effects| state.lose(id, effects));
    }

    /// An attempt or a hold is over.
    pub(super) fn forget(&self, owner: OwnerId) {
        self.change(|state, _, effects| state.forget(owner, effects));
    }

    /// Awaits work that goes on if it takes too long, or nobody stays for it.
    pub(super) async fn carry_out(
        &self,
        work: impl Future<Output = Answer> + MaybeSend + 'static,
    ) -> Answer {
        let work = DetachOnDrop::new(Box::pin(work), &self.runtime);
        let end = self.runtime.now() + self.timeout;
        self.runtime.until(end, work).await.unwrap_or_else(|| Err(too_late()))
    }

    /// Waits until nothing of this owner is left.
    pub(super) async fn gone(&self, owner: OwnerId) -> Result<(), Failure> {
        let mut over = self.runtime.sleep(self.timeout);
        loop {
            let news = self.news.listen();
            if self.change(|state, _, _| !state.owners.contains_key(&owner)) {
                return Ok(());
            }
            over = match select(pin!(news), over).await {
                Either::Left(((), over)) => over,
                Either::Right(_) => return Err(too_late()),
            };
        }
    }

    /// Ends all sessions and refuses whatever comes.
    pub(super) async fn close(&self) {
        let sessions = self.change(|state, _, effects| {
            state.closed = true;
            effects.news = true;
            let live = state.sessions.values();
            live.map(|live| live.session.clone()).collect::<Vec<_>>()
        });
        join_all(sessions.iter().map(|session| session.end())).await;
        self.cut_all();
        self.store.close().await;
    }

    pub(super) fn cut_all(&self) {
        self.change(|state, _, effects| {
            state.closed = true;
            let all: Vec<Id> = state.sessions.keys().copied().collect();
            for id in all {
                state.lose(id, effects);
            }
        });
    }
}

fn too_late() -> Failure {
    let message = "the server did not answer in time, so whether it acted is unknown; what it did for a lock is taken back";
    Failure::unknown(Error::new(Code::Unavailable, message))
}
