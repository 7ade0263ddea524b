//! The entry queue: a lease store made of a store that keeps entries in order, which live as long as their session.
//!
//! A lock that lives with a session is a lease that many holds share. Whoever has nobody in its way holds ([`order`]). The lease
//! of all of them ends with the session: the last answered heartbeat, counted from its sending ([`session`], [`state`]). So a
//! renewal costs no request. A holder that stood still beyond that is told so by the deadline of its guard, and a session whose
//! deadline has passed is never used again. What may have been left on the store is removed until that is confirmed
//! ([`removal`]).

mod order;
mod removal;
mod session;
mod state;
mod steps;
mod watching;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use self::session::Shared;
use crate::error::Result;
use crate::port::{
    Answer, Capabilities, Cells, LeaseStore, LockKey, NoticeSink, QueueStore, RuntimeHandle, Step,
};

/// A lease store made of a [`QueueStore`]. A client is made of it as of any store.
///
/// A lease is at most as long as the client's session. One that is shorter is ended by the client; if that has died, it ends
/// with the session. A lock is always handed over in order: `fair=false` changes nothing.
pub struct Queue<S>(Arc<Shared<S>>);

impl<S: QueueStore> Queue<S> {
    /// The locks of this store for one client, whose session ends `ttl` after its last answered heartbeat.
    pub fn new(store: S, runtime: RuntimeHandle, ttl: Duration) -> Self {
        Self(Arc::new(Shared::new(store, runtime, ttl)))
    }
}

impl<S: QueueStore> LeaseStore for Queue<S> {
    fn capabilities(&self) -> Capabilities {
        self.0.store.capabilities()
    }

    async fn step(&self, batch: &[Step]) -> Vec<Answer> {
        if let [step] = batch {
            return vec![self.0.step(step).await];
        }
        join_all(batch.iter().map(|step| self.0.step(step))).await
    }

    async fn listen(&self, sink: NoticeSink) -> Result<()> {
        self.0.change(|state, _, _| state.sink = Some(sink));
        self.0.session().await.map(drop)
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        self.0.store.names(prefix).await
    }

    fn cells(&self) -> Option<Cells<'_>> {
        self.0.store.cells()
    }

    async fn close(&self) {
        self.0.close().await;
    }
}
