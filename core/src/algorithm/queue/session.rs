//! The session of a client: opened when it is needed, kept alive by heartbeats, lost when its deadline has passed.

use std::sync::{Arc, Weak};
use std::time::Duration;

use event_listener::Event;
use futures_channel::oneshot;

use super::state::{Effects, Phase, QueueState, Session};
use crate::error::{Code, Error, Result};
use crate::port::backoff::Backoff;
use crate::port::{Failure, Instant, Notice, QueueNotice, QueueStore, RuntimeHandle, SessionId};
use crate::runtime::sync::Mutex;

/// The state that the steps of one client share.
pub(super) struct Shared<S> {
    pub(super) store: S,
    pub(super) runtime: RuntimeHandle,
    /// How long a session lives without a heartbeat, and the longest lease.
    pub(super) ttl: Duration,
    state: Mutex<QueueState>,
    /// The session has changed, or is to be looked at earlier.
    news: Event,
}

/// A heartbeat that failed is repeated after this part of the session's ttl.
const AGAIN: u32 = 20;

impl<S: QueueStore> Shared<S> {
    pub(super) fn new(store: S, runtime: RuntimeHandle, ttl: Duration) -> Self {
        Self { store, runtime, ttl, state: Mutex::default(), news: Event::new() }
    }

    /// Changes the state at this moment, then carries out what follows from that.
    pub(super) fn change<T>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut QueueState, Instant, &mut Effects) -> T,
    ) -> T {
        let mut effects = Effects::default();
        let mut state = self.state.lock();
        let changed = change(&mut state, self.runtime.now(), &mut effects);
        let sink = state.sink.clone();
        drop(state);
        let Effects { notices, watch, remove, end, earlier } = effects;
        if let Some(sink) = sink {
            for notice in notices {
                sink(notice);
            }
        }
        for owner in watch {
            let shared = self.clone();
            self.runtime.spawn(Box::pin(async move {
                // Whoever waits looks again with its next Refresh.
                let _ = shared.watch(owner).await;
            }));
        }
        for orphan in remove {
            self.adopt(orphan);
        }
        if let Some(id) = end {
            self.runtime.spawn(Box::pin(end_session(self.clone(), id)));
        }
        if earlier || end.is_some() {
            self.news.notify(usize::MAX);
        }
        changed
    }

    /// Whether a failure says that the session has ended; it is lost then.
    pub(super) fn ended_by(self: &Arc<Self>, id: SessionId, failure: &Failure) -> bool {
        let ended = failure.error.code() == Code::Lost;
        if ended {
            self.lose(id);
        }
        ended
    }

    /// This session is over.
    pub(super) fn lose(self: &Arc<Self>, id: SessionId) {
        self.change(|state, _, effects| {
            if state.is_present(id) {
                state.lose(effects);
            }
        });
    }

    /// The session; one is opened if there is none.
    pub(super) async fn session(self: &Arc<Self>) -> Result<SessionId> {
        let mut before = None;
        loop {
            // Before the look, so that no news is missed.
            let news = self.news.listen();
            let next = self.change(|state, now, effects| {
                if let Some(session) = state.live(now, effects) {
                    return Next::Use(session.id);
                }
                // Somebody else has tried while this one waited.
                if let Some(why) = before.and_then(|before| state.failures.since(before)) {
                    return Next::Refuse(why);
                }
                before = Some(state.failures.count());
                match state.phase {
                    Phase::Closed => Next::Refuse(Error::closed()),
                    Phase::Opening => Next::Wait,
                    Phase::None | Phase::Open(_) => {
                        state.phase = Phase::Opening;
                        Next::Open
                    }
                }
            });
            match next {
                Next::Use(id) => return Ok(id),
                Next::Refuse(why) => return Err(why),
                Next::Wait => news.await,
                Next::Open => return self.open().await.unwrap_or_else(|_| Err(Error::closed())),
            }
        }
    }

    /// Opens a session in a task of its own, so that one that was opened is known, whoever stays for it.
    fn open(self: &Arc<Self>) -> oneshot::Receiver<Result<SessionId>> {
        let (sender, opened) = oneshot::channel();
        let shared = self.clone();
        self.runtime.spawn(Box::pin(async move {
            let weak = Arc::downgrade(&shared);
            let sink =
                move |notice| weak.upgrade().iter().for_each(|shared| shared.receive(&notice));
            let sent = shared.runtime.now();
            let opened = shared.store.open(shared.ttl, Arc::new(sink)).await;
            let opened = shared.opened(sent, opened);
            if let Ok(id) = opened {
                let keeping = keep_alive(Arc::downgrade(&shared), shared.runtime.clone(), id);
                shared.runtime.spawn(Box::pin(keeping));
            }
            let _ = sender.send(opened);
        }));
        opened
    }

    fn opened(self: &Arc<Self>, sent: Instant, opened: Result<SessionId>) -> Result<SessionId> {
        self.change(|state, now, effects| {
            effects.earlier = true;
            let closed = matches!(state.phase, Phase::Closed);
            if let Err(error) = &opened {
                state.failures.add(error);
            }
            if !closed {
                state.phase = Phase::None;
            }
            let session = Session::new(opened?, self.ttl, sent);
            let id = session.id;
            if closed || now >= session.deadline {
                effects.end = Some(id);
                return Err(if closed { Error::closed() } else { too_late() });
            }
            state.phase = Phase::Open(session);
            Ok(id)
        })
    }

    /// A notice of the store has arrived.
    fn receive(self: &Arc<Self>, notice: &QueueNotice) {
        match notice {
            QueueNotice::Gone { lock, rank } => self.change(|state, now, effects| {
                if state.live(now, effects).is_some() {
                    state.gone(lock, rank, now, effects);
                }
            }),
            QueueNotice::Gap => self.change(|state, _, effects| {
                effects.watch.extend(state.watch_again());
                effects.notices.push(Notice::Gap);
                // The session may have ended meanwhile.
                if let Some(session) = state.session() {
                    session.next_beat = session.next_beat.min(session.sent + session.ttl / AGAIN);
                    effects.earlier = true;
                }
            }),
            QueueNotice::Ended { session } => self.lose(*session),
        }
    }

    /// Does what is due for a session. When to look again; `None`: it is over.
    fn tick(self: &Arc<Self>, id: SessionId) -> Option<Instant> {
        let (beats, looks) = self.change(|state, now, effects| {
            let session = state.live(now, effects).filter(|session| session.id == id)?;
            let due = now >= session.next_beat;
            if due {
                session.next_beat = now + session.ttl / 4;
            }
            let ends = state.end_leases(now, effects);
            let session = state.session()?;
            let deadline = Some(session.deadline).filter(|deadline| *deadline > now);
            session.looks = session.next_beat.min(ends).min(deadline.unwrap_or(Instant::FAR));
            Some((due, session.looks))
        })?;
        if beats {
            let shared = self.clone();
            self.runtime.spawn(Box::pin(async move { shared.beat(id).await }));
        }
        Some(looks)
    }

    /// Whether the store was heard of lately. If it was not, it is asked.
    pub(super) async fn is_sure_of(self: &Arc<Self>, id: SessionId) -> bool {
        let is_sure = || {
            self.change(|state, now, effects| {
                let session = state.live(now, effects).filter(|session| session.id == id);
                session.is_some_and(|session| !session.is_in_doubt(now))
            })
        };
        if is_sure() {
            return true;
        }
        self.clone().beat(id).await;
        is_sure()
    }

    async fn beat(self: Arc<Self>, id: SessionId) {
        let sent = self.runtime.now();
        let answer = self.store.beat(id).await;
        if answer.as_ref().is_err_and(|failure| self.ended_by(id, failure)) {
            return;
        }
        self.change(|state, now, effects| {
            // An answer that comes after the deadline does not bring the session back.
            let Some(session) = state.live(now, effects).filter(|session| session.id == id) else {
                return;
            };
            if let Ok(ttl) = answer {
                session.beaten(ttl, sent);
            } else {
                session.next_beat = session.next_beat.min(now + session.ttl / AGAIN);
                effects.earlier = true;
            }
        });
    }

    /// Ends the session and refuses whatever comes.
    pub(super) async fn close(self: &Arc<Self>) {
        let session = self.change(|state, _, effects| {
            state.lose(effects);
            state.phase = Phase::Closed;
            // Those who close wait for it.
            effects.end.take()
        });
        self.news.notify(usize::MAX);
        if let Some(id) = session {
            let _ = self.store.end(id).await;
        }
        self.store.close().await;
    }
}

enum Next {
    Use(SessionId),
    Open,
    Wait,
    Refuse(Error),
}

/// Looks after a session until it is over, or the client is gone.
async fn keep_alive<S: QueueStore>(shared: Weak<Shared<S>>, runtime: RuntimeHandle, id: SessionId) {
    loop {
        let Some(present) = shared.upgrade() else { return };
        let news = present.news.listen();
        let Some(looks) = present.tick(id) else { return };
        drop(present);
        runtime.until(looks, news).await;
    }
}

/// Ends a session that is not relied on any more, until that is confirmed or it must have ended by itself: a heartbeat whose answer
/// was lost has prolonged it.
async fn end_session<S: QueueStore>(shared: Arc<Shared<S>>, id: SessionId) {
    let (runtime, mut backoff) = (shared.runtime.clone(), Backoff::new());
    let by = runtime.now() + shared.ttl;
    let weak = Arc::downgrade(&shared);
    let mut present = Some(shared);
    while let Some(shared) = present {
        if shared.store.end(id).await.is_ok() || runtime.now() >= by {
            return;
        }
        drop(shared);
        runtime.sleep(backoff.next()).await;
        present = weak.upgrade();
    }
}

fn too_late() -> Error {
    Error::new(Code::Unavailable, "the store answered only after the session had ended")
}
