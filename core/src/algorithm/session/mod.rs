//! Sessions that lock: a lease store made of a server that queues, and that ends a session which was silent for too long.
//!
//! A client has one session for what is free. Whoever waits does so in a session of its own, since the server answers in order. A
//! session has a lock's name once at most, for the server gives a session again what it has. Where a session may have one lock only,
//! each has one of its own. A lease ends with its session: the last answered request, counted from its sending. A session whose deadline
//! has passed is cut, never used again.
//!
//! A request to a session runs to its end, even if its caller leaves ([`detach_on_drop`](crate::port::detach_on_drop)). So the state always says what the server may keep.

mod attempt;
mod keep_alive;
mod open;
mod shared;
mod state;
mod steps;
mod wait;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use self::shared::Shared;
use crate::error::Result;
use crate::port::{
    Answer, Capabilities, LeaseStore, LockKey, NoticeSink, RuntimeHandle, SessionStore, Step,
};

/// A lease store made of a [`SessionStore`]. A client is made of it as of any store.
///
/// A lease is at most as long as the client's sessions. One that is shorter is ended by the client; if that has died, the server ends it
/// with the session, most often at once. A lock is always handed over in order: `fair=false` changes nothing.
pub struct Sessions<S: SessionStore>(Arc<Shared<S>>);

impl<S: SessionStore> Sessions<S> {
    /// The locks of this store for one client, whose sessions end `ttl` after their last sign of life. A step is answered within
    /// `timeout`. Opens the first session.
    pub async fn open(
        store: S,
        runtime: RuntimeHandle,
        ttl: Duration,
        timeout: Duration,
    ) -> Result<Self> {
        let shared = Arc::new(Shared::new(store, runtime, ttl, timeout));
        shared.main().await?;
        Ok(Self(shared))
    }
}

impl<S: SessionStore> LeaseStore for Sessions<S> {
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
        Ok(())
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        let (_, session) = self.0.main().await?;
        self.0.store.names(&session, prefix).await
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

impl<S: SessionStore> Drop for Sessions<S> {
    fn drop(&mut self) {
        self.0.cut_all();
    }
}
