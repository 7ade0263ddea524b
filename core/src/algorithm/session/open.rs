//! The sessions of a client: one for what is free, others for whoever waits.

use std::sync::Arc;

use super::keep_alive::keep_alive;
use super::shared::Shared;
use super::state::{Id, Live};
use crate::error::{Code, Error, Result};
use crate::port::detach_on_drop::DetachOnDrop;
use crate::port::{EndSink, LockKey, OwnerId, Session, SessionStore};

/// The most sessions of one client.
pub(super) const MOST: usize = 32;

/// A session and its number.
pub(super) type Numbered<S> = (Id, Arc<<S as SessionStore>::Session>);

impl<S: SessionStore> Shared<S> {
    /// The session for what is free; one is opened if there is none.
    pub(super) async fn main(self: &Arc<Self>) -> Result<Numbered<S>> {
        let mut before = None;
        loop {
            let news = self.news.listen();
            let next = self.change(|state, now, effects| {
                if state.closed {
                    return Next::Fail(Error::closed());
                }
                if let Some(id) = state.main
                    && let Some(live) = state.live(id, now, effects)
                {
                    return Next::Use((id, live.session.clone()));
                }
                // Somebody else has tried while this one waited.
                if let Some(why) = before.and_then(|before| state.failures.since(before)) {
                    return Next::Fail(why);
                }
                before = Some(state.failures.count());
                let waits = std::mem::replace(&mut state.opening, true);
                if waits { Next::Wait } else { Next::Open }
            });
            match next {
                Next::Use(session) => return Ok(session),
                Next::Fail(error) => return Err(error),
                Next::Wait => news.await,
                Next::Open => {
                    let shared = self.clone();
                    let work = Box::pin(async move {
                        let opened = shared.open(true).await;
                        shared.change(|state, _, effects| {
                            state.opening = false;
                            effects.news = true;
                            if let Err(error) = &opened {
                                state.failures.add(error);
                            }
                        });
                        opened
                    });
                    return DetachOnDrop::new(work, &self.runtime).await;
                }
            }
        }
    }

    /// A session that has nothing.
    pub(super) async fn borrow(self: &Arc<Self>) -> Result<Numbered<S>> {
        loop {
            let news = self.news.listen();
            let next = self.change(|state, now, effects| {
                if state.closed {
                    return Next::Fail(Error::closed());
                }
                if let Some(idle) = state.take_idle(now, self.ttl, effects) {
                    return Next::Use(idle);
                }
                if state.sessions.len() + state.coming < MOST {
                    state.coming += 1;
                    return Next::Open;
                }
                // What a wait that was given up has, or is about to get, is soon there.
                if state.coming > 0 || state.gives_back() {
                    return Next::Wait;
                }
                Next::Fail(too_many(self.store.holds_several()))
            });
            match next {
                Next::Use(session) => return Ok(session),
                Next::Fail(error) => return Err(error),
                Next::Wait => news.await,
                Next::Open => {
                    let shared = self.clone();
                    let work = Box::pin(async move {
                        let opened = shared.open(false).await;
                        shared.change(|state, _, effects| {
                            state.coming -= 1;
                            effects.news = true;
                        });
                        opened
                    });
                    return DetachOnDrop::new(work, &self.runtime).await;
                }
            }
        }
    }

    async fn open(self: &Arc<Self>, as_main: bool) -> Result<Numbered<S>> {
        let id = self.change(|state, _, _| {
            state.drawn += 1;
            state.drawn
        });
        let weak = Arc::downgrade(self);
        let ended: EndSink = Arc::new(move || weak.upgrade().iter().for_each(|it| it.lose(id)));
        let sent = self.runtime.now();
        let session = Arc::new(self.store.connect(self.ttl, ended).await?);
        let kept = self.change(|state, _, _| {
            if state.closed {
                return false;
            }
            state.sessions.insert(id, Live::new(session.clone(), sent, self.ttl));
            if as_main {
                state.main = Some(id);
            }
            true
        });
        if !kept {
            session.cut();
            return Err(Error::closed());
        }
        // It may have ended before it was known here.
        if session.is_over() {
            self.lose(id);
        }
        self.runtime.spawn(Box::pin(keep_alive(Arc::downgrade(self), self.runtime.clone(), id)));
        Ok((id, session))
    }

    /// A session in which this lock may be asked for: it has not got it yet, nor any other where it may have one only.
    pub(super) async fn session_for(
        self: &Arc<Self>,
        owner: OwnerId,
        lock: &LockKey,
    ) -> Result<Numbered<S>> {
        let main = self.main().await?;
        if self.store.holds_several() && self.enter(owner, lock, main.0) {
            return Ok(main);
        }
        let borrowed = self.borrow().await?;
        if self.enter(owner, lock, borrowed.0) {
            return Ok(borrowed);
        }
        Err(Error::new(Code::Unavailable, "the session has ended; another one is opened"))
    }

    /// Notes that a session is asked for a lock. False if it has the name for somebody else already, or is over.
    pub(super) fn enter(&self, owner: OwnerId, lock: &LockKey, id: Id) -> bool {
        self.change(|state, _, _| {
            let Some(live) = state.sessions.get_mut(&id) else { return false };
            let other = live.names.get(lock).is_some_and(|has| *has != owner);
            if other {
                return false;
            }
            live.names.insert(lock.clone(), owner);
            if let Some(own) = state.owners.get_mut(&owner) {
                own.session = Some(id);
            }
            true
        })
    }
}

enum Next<T> {
    Use(T),
    Fail(Error),
    Wait,
    Open,
}

fn too_many(holds_several: bool) -> Error {
    let does = if holds_several { "waits for" } else { "has or waits for" };
    let message = format!(
        "each lock that a client {does} takes a connection, and it has {MOST} already; ask for fewer at once, or use a store that keeps locks in a table, such as `postgres://` or `mysql://`"
    );
    Error::new(Code::Unavailable, message)
}
