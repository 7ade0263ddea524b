//! One machine of the simulated world: its clock, its timers, its tasks, its dice.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use super::executor::{Executor, TimerId};
use fencelock::port::{BoxFuture, Instant, Runtime};

const MILLION: i128 = 1_000_000;
/// The time on wall clocks when a world begins: a day in 2026, in microseconds.
const WALL_START: u64 = 1_767_225_600_000_000;

/// Names a node in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(super) usize);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// A machine with a clock that drifts. It can be paused, resumed and crashed.
#[derive(Debug)]
pub struct SimNode {
    executor: Arc<Executor>,
    id: NodeId,
    drift: i32,
    start: Instant,
    /// How far the wall clock was set away from where it would be, in microseconds.
    wall_set: AtomicI64,
}

impl SimNode {
    pub(super) fn join(executor: &Arc<Executor>, drift: i32, offset: Duration) -> Arc<Self> {
        Arc::new(Self {
            executor: Arc::clone(executor),
            id: executor.join(),
            drift,
            start: Instant::default() + offset,
            wall_set: AtomicI64::new(0),
        })
    }

    /// Its number.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Polls none of its tasks from now on; its clock runs on.
    pub fn pause(&self) {
        self.executor.pause(self.id);
    }

    /// Polls its tasks again.
    pub fn resume(&self) {
        self.executor.resume(self.id);
    }

    /// Drops all its tasks, for good. What their drop would have had done later is never done.
    pub fn crash(&self) {
        self.executor.crash(self.id);
    }

    /// Whether it has crashed.
    pub fn is_crashed(&self) -> bool {
        self.executor.is_crashed(self.id)
    }

    /// How many tasks it has that are not done.
    pub fn tasks(&self) -> usize {
        self.executor.census(self.id).0
    }

    /// How many timers are set on it.
    pub fn timers(&self) -> usize {
        self.executor.census(self.id).1
    }

    /// Sets the wall clock forward (or back, if negative). The local clock is not touched.
    pub fn set_wall(&self, microseconds: i64) {
        self.wall_set.fetch_add(microseconds, Ordering::Relaxed);
    }

    fn local(&self, truth: Instant) -> Instant {
        let truth = truth.as_nanos();
        let gained = i128::from(truth) * i128::from(self.drift) / MILLION;
        let shown = i128::from(self.start.as_nanos()) + i128::from(truth) + gained;
        Instant::from_nanos(shown.clamp(0, i128::from(u64::MAX)) as u64)
    }

    /// The first true moment at which this clock shows at least `local`.
    fn truth(&self, local: Instant) -> Instant {
        if local == Instant::FAR {
            return local;
        }
        let shown = i128::from(local.since(self.start).as_nanos() as u64);
        let rate = MILLION + i128::from(self.drift);
        let truth = (shown * MILLION + rate - 1) / rate;
        Instant::from_nanos(truth.clamp(0, i128::from(u64::MAX)) as u64)
    }
}

impl Runtime for SimNode {
    fn now(&self) -> Instant {
        self.local(self.executor.now())
    }

    fn wall(&self) -> u64 {
        let ran = self.now().since(self.start);
        (WALL_START + ran.as_micros() as u64)
            .saturating_add_signed(self.wall_set.load(Ordering::Relaxed))
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        let at = self.truth(at);
        Box::pin(Sleep { executor: Arc::clone(&self.executor), node: self.id, at, timer: None })
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.executor.spawn(self.id, task);
    }

    fn random(&self, bytes: &mut [u8]) {
        self.executor.random(self.id, bytes);
    }
}

struct Sleep {
    executor: Arc<Executor>,
    node: NodeId,
    at: Instant,
    timer: Option<TimerId>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.executor.now() >= self.at {
            return Poll::Ready(());
        }
        let waker = context.waker().clone();
        let timer = self.executor.set_timer(self.node, self.at, self.timer, waker);
        self.timer = Some(timer);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            self.executor.unset_timer(timer);
        }
    }
}
