//! One client's store behind the network: asks, waits no longer than its timeout, and tells what it cannot know.

mod cells;
mod entries;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use fencelock::port::{
    Answer, Capabilities, Cells, Failure, Fence, LeaseStore, LockKey, NoticeSink, Runtime, Step,
};
use fencelock::{Code, Result};
use fencelock_sim::SimNode;
use futures_util::future::{Either, select};
use tokio::sync::oneshot;

pub use self::entries::EntryStore;
use super::network::{Network, Reply, unknown};

/// One client's view of the store behind the network.
#[derive(Debug)]
pub struct NetworkStore {
    network: Network,
    node: Arc<SimNode>,
    channel: Arc<str>,
    timeout: Duration,
}

impl NetworkStore {
    pub(super) fn new(
        network: Network,
        node: Arc<SimNode>,
        channel: Arc<str>,
        timeout: Duration,
    ) -> Self {
        Self { network, node, channel, timeout }
    }

    /// The answer to a batch, or `None` if none came in time or the connection broke.
    async fn ask(&self, batch: &[Step], all: bool) -> Option<Vec<Answer>> {
        let (reply, answers) = oneshot::channel();
        let timeout = self.node.sleep_until(self.node.now() + self.timeout);
        self.network.send(&self.channel, batch, all, reply);
        match select(answers, timeout).await {
            Either::Left((Ok(Reply::Answers(answers)), _)) => Some(answers),
            Either::Left((Ok(Reply::Reset), _)) | Either::Right(_) => None,
            Either::Left((Err(_), timeout)) => {
                // The network lost it: only the own timeout tells.
                timeout.await;
                None
            }
        }
    }

    async fn exchange(&self, batch: &[Step], all: bool) -> Vec<Answer> {
        if let Some(error) = self.network.refuses(&self.channel) {
            if error.code() != Code::Closed {
                self.travel().await;
            }
            return batch.iter().map(|_| Err(Failure::refused(error.clone()))).collect();
        }
        match self.ask(batch, all).await {
            Some(answers) => answers,
            None => batch.iter().map(|_| Err(unknown("the store did not answer"))).collect(),
        }
    }

    async fn travel(&self) {
        self.node.sleep_until(self.node.now() + self.network.travel()).await;
    }
}

impl LeaseStore for NetworkStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("simulated", Fence::ClockBounded)
    }

    async fn step(&self, batch: &[Step]) -> Vec<Answer> {
        self.exchange(batch, false).await
    }

    async fn step_all(&self, batch: &[Step]) -> Vec<Answer> {
        self.exchange(batch, true).await
    }

    async fn listen(&self, sink: NoticeSink) -> Result<()> {
        if let Some(error) = self.network.refuses(&self.channel) {
            return Err(error);
        }
        self.travel().await;
        self.network.subscribed(&self.channel, sink);
        Ok(())
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        if let Some(error) = self.network.refuses(&self.channel) {
            return Err(error);
        }
        self.travel().await;
        Ok(self.network.store(|store| store.names(prefix)))
    }

    fn cells(&self) -> Option<Cells<'_>> {
        Some(Cells::of(self))
    }

    fn close(&self) -> impl Future<Output = ()> + Send {
        self.network.hang_up(&self.channel);
        std::future::ready(())
    }
}

impl Drop for NetworkStore {
    fn drop(&mut self) {
        self.network.hang_up(&self.channel);
    }
}
