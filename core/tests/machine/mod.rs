//! A story in virtual time: nothing a slow machine does to the test changes what happens in it.
#![allow(dead_code)] // Each test uses what it needs.

pub(crate) mod nodes;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use fencelock::Client;
use fencelock::driver::memory::Memory;
use fencelock::port::{Runtime, RuntimeHandle};
use fencelock_sim::{Sim, SimNode};
use futures_channel::oneshot;
use futures_util::future::{Either, select};

/// As many orders of what happens at one instant are gone through.
const ORDERS: u64 = 8;

/// Where a story takes place.
#[derive(Clone)]
pub(crate) struct Machine(Arc<SimNode>);

/// Lives a story to its end, in several orders.
pub(crate) fn live(story: impl AsyncFn(Machine)) {
    for seed in 0..ORDERS {
        let sim = Sim::new(seed);
        let machine = Machine(sim.node(0));
        sim.block_on(story(machine)).expect("the story goes on");
    }
}

impl Deref for Machine {
    type Target = SimNode;

    fn deref(&self) -> &SimNode {
        &self.0
    }
}

impl Machine {
    pub(crate) fn runtime(&self) -> RuntimeHandle {
        self.0.clone()
    }

    /// A client of this memory.
    pub(crate) async fn client(&self, memory: &Memory) -> Client {
        let store = memory.store(self.runtime());
        let builder = Client::builder().runtime(self.runtime());
        builder.store(store).await.expect("memory connects")
    }

    pub(crate) async fn sleep(&self, time: Duration) {
        self.sleep_until(self.now() + time).await;
    }

    /// The answer of the work, if it comes within this time.
    pub(crate) async fn within<T>(
        &self,
        time: Duration,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        match select(Box::pin(work), Box::pin(self.sleep(time))).await {
            Either::Left((answer, _)) => Some(answer),
            Either::Right(_) => None,
        }
    }

    /// Sets work off; what it answers can be waited for.
    pub(crate) fn start<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (sender, answer) = oneshot::channel();
        self.spawn(Box::pin(async move {
            let _ = sender.send(work.await);
        }));
        answer
    }
}
