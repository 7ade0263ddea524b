//! Virtual time, and stores that fail on purpose or count what goes to them.
//!
//! A [`Sim`] is a world of nodes with clocks of their own, seeded order, pauses and crashes. One seed, one trace.
//! [`Chaos`] and [`Meter`] stand around any store.
//!
//! Nothing here reads a clock, starts a thread or draws from the operating system, so a run can be repeated to the last
//! poll, on wasm as well.
//!
//! ```
//! use std::time::Duration;
//! use fencelock::port::Runtime;
//! use fencelock_sim::Sim;
//!
//! let sim = Sim::new(42);
//! let node = sim.node(-5_000); // its clock is half a percent slow
//! let start = node.now();
//! sim.block_on(sim.world().sleep_until(sim.world().now() + Duration::from_secs(1000)))?;
//! assert_eq!(node.now().since(start), Duration::from_secs(995));
//! # Ok::<(), fencelock_sim::Stuck>(())
//! ```

mod chaos;
mod dice;
mod executor;
mod meter;
mod node;
mod queue;

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use self::executor::{Executor, Progress};
use fencelock::port::Instant;

pub use self::chaos::{Chaos, Fault};
pub use self::dice::Dice;
pub use self::meter::{Count, Meter};
pub use self::node::{NodeId, SimNode};
pub use self::queue::{MemoryQueue, MemoryQueueStore, QueueModel};

/// Why a store around another one has the cells that it is asked for.
const OFFERED: &str = "cells are offered where the store has them";

/// A world in virtual time. Dropping it drops every task in it.
#[derive(Debug)]
pub struct Sim {
    executor: Arc<Executor>,
    world: Arc<SimNode>,
}

/// Why a run could not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// Time stands still while tasks are polled again and again.
    Busy {
        /// When, in true time.
        at: Duration,
        /// On which node the last poll was.
        node: NodeId,
        /// How many polls there were at this instant.
        polls: u32,
    },
    /// Nothing is ready and no timer is set, yet the future is not done.
    Idle {
        /// When, in true time.
        at: Duration,
    },
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy { at, node, polls } => {
                write!(f, "busy loop at {at:?}: {polls} polls without progress, the last on {node}")
            }
            Self::Idle { at } => write!(f, "deadlock at {at:?}: nothing is ready, no timer is set"),
        }
    }
}

impl std::error::Error for Stuck {}

/// Whether the future driven by `block_on` has to be looked at again.
struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Sim {
    /// An empty world. Everything random in it comes from `seed`.
    pub fn new(seed: u64) -> Self {
        let executor = Arc::new(Executor::new(seed));
        let world = SimNode::join(&executor, 0, Duration::ZERO);
        Self { executor, world }
    }

    /// The node of the world itself, whose clock shows the true time: for networks, servers' timers and scripts.
    pub fn world(&self) -> &Arc<SimNode> {
        &self.world
    }

    /// Adds a node whose clock gains `drift` parts per million (loses, if negative) and starts anywhere.
    pub fn node(&self, drift: i32) -> Arc<SimNode> {
        let offset = self.dice().below(1 << 50);
        SimNode::join(&self.executor, drift, Duration::from_nanos(offset))
    }

    /// A new generator that depends on the seed and on nothing drawn elsewhere later.
    pub fn dice(&self) -> Dice {
        self.executor.dice()
    }

    /// True time since the world began.
    pub fn elapsed(&self) -> Duration {
        self.executor.now().since(Instant::default())
    }

    /// Runs everything that happens in the next `time`, and lets the clocks arrive there.
    pub fn run_for(&self, time: Duration) -> Result<(), Stuck> {
        let end = self.executor.now() + time;
        while self.executor.turn(end)? != Progress::Done {}
        Ok(())
    }

    /// Runs until no task is ready and no timer is set.
    pub fn run_until_idle(&self) -> Result<(), Stuck> {
        while self.executor.turn(Instant::FAR)? != Progress::Done {}
        Ok(())
    }

    /// Runs the world until `script` is done.
    pub fn block_on<T>(&self, script: impl Future<Output = T>) -> Result<T, Stuck> {
        let mut script = pin!(script);
        let flag = Arc::new(WakeFlag(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&flag));
        loop {
            if flag.0.swap(false, Ordering::Relaxed)
                && let Poll::Ready(value) = script.as_mut().poll(&mut Context::from_waker(&waker))
            {
                return Ok(value);
            }
            let turn = self.executor.turn(Instant::FAR)?;
            if turn == Progress::Done && !flag.0.load(Ordering::Relaxed) {
                return Err(Stuck::Idle { at: self.elapsed() });
            }
        }
    }

    /// Mixes something seen from outside into the trace.
    pub fn record(&self, event: u64) {
        self.executor.record(event);
    }

    /// A hash over every poll, timer and recorded event so far: the same seed gives the same.
    pub fn trace(&self) -> u64 {
        self.executor.trace()
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.executor.clear();
    }
}

#[cfg(test)]
mod tests;
