//! The life of a run: its end pushed while it lasts, and marked when it is over.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::{Either, select};

use super::micros;
use super::record::{Record, Status};
use super::runs::InProgress;
use crate::algorithm::core::Core;
use crate::algorithm::hold::Hold;
use crate::event::Event;
use crate::port::backoff::Backoff;
use crate::port::{Change, Instant, Swap};
use crate::released::Released;

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Succeeded,
    Failed,
    /// It never began: nobody stayed for it.
    TakenBack,
}

/// Whether somebody stays for a run: decided once, by whoever takes it or by whoever ends it before.
#[derive(Default)]
struct Taken(AtomicU8);

impl Taken {
    const SOMEBODY: u8 = 1;
    const NOBODY: u8 = 2;

    fn decide(&self, by: u8) -> bool {
        match self.0.compare_exchange(0, by, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(decided) => decided == by,
        }
    }

    fn take(&self) -> bool {
        self.decide(Self::SOMEBODY)
    }

    /// How a run ends that nobody has ended.
    fn unfinished(&self) -> Ending {
        if self.decide(Self::NOBODY) && !mutant!(UntakenRunFails) {
            Ending::TakenBack
        } else {
            Ending::Failed
        }
    }
}

/// The longest pause after a change that failed.
const LONGEST_REST: Duration = Duration::from_secs(1);
/// How long a run that is taken back is tried to be.
const PATIENCE: Duration = Duration::from_secs(30);

struct Order {
    ending: Ending,
    reply: Option<oneshot::Sender<Released>>,
}

/// A run that has begun. Dropping it marks it as failed; before it was taken, it takes it back.
pub(crate) struct Begun {
    core: Arc<Core>,
    pub hold: Arc<Hold>,
    /// The scheduled instant, in µs since 1970.
    pub instant: u64,
    /// Shared with its keeper.
    taken: Arc<Taken>,
    order: Option<oneshot::Sender<Order>>,
}

impl Begun {
    /// Somebody stays for it, unless it is over.
    pub(super) fn take(&self) -> bool {
        let held = self.hold.is_held() || mutant!(LateStartBelieved);
        held && self.taken.take()
    }

    /// Ends the run at this call; the answer is what became of that, for whoever stays for it.
    pub(crate) fn end(mut self, ending: Ending) -> impl Future<Output = Released> + use<> {
        let (sender, receiver) = oneshot::channel();
        self.tell(ending, Some(sender));
        async move { receiver.await.unwrap_or(Released::AlreadyLost) }
    }

    /// Leaves the run to others.
    pub(crate) fn take_back(mut self) {
        self.tell(Ending::TakenBack, None);
    }

    fn tell(&mut self, ending: Ending, reply: Option<oneshot::Sender<Released>>) {
        let Some(order) = self.order.take() else { return };
        if !self.core.is_here() {
            // Its keeper is in the process that forked this one.
            return mem::forget(order);
        }
        self.hold.serve(0);
        self.hold.tell();
        // One that was lost has nobody who would hear it.
        let _ = order.send(Order { ending, reply });
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.tell(self.taken.unfinished(), None);
    }
}

/// Pushes the end of one run, and marks how it ended.
pub(super) struct Keeper {
    pub(super) core: Arc<Core>,
    pub(super) hold: Arc<Hold>,
    /// The next change, but for its value.
    pub(super) change: Change,
    pub(super) record: Record,
    /// What was there before the start.
    pub(super) before: Option<Record>,
    /// When the present lease was asked for.
    pub(super) sent: Instant,
    /// The moment the run must have ended by.
    pub(super) cap: Instant,
}

impl Keeper {
    /// Sets itself to work.
    pub(super) fn begin(self, instant: u64, in_progress: InProgress) -> Begun {
        let (sender, receiver) = oneshot::channel();
        let (core, hold) = (self.core.clone(), self.hold.clone());
        let taken = Arc::<Taken>::default();
        let told = taken.clone();
        let runtime = self.core.runtime.clone();
        runtime.spawn(Box::pin(async move {
            self.keep(receiver, told).await;
            drop(in_progress);
        }));
        Begun { core, hold, instant, taken, order: Some(sender) }
    }

    /// Until it is told how the run ended, or the run is lost, or the client closes.
    async fn keep(mut self, mut order: oneshot::Receiver<Order>, taken: Arc<Taken>) {
        let runtime = self.core.runtime.clone();
        let ttl = self.hold.ttl();
        let mut closing = self.core.runs.closing();
        let mut rest = Duration::ZERO;
        loop {
            let beat = (self.sent + ttl / 3).max(runtime.now() + rest).min(self.hold.deadline());
            let beat = select(&mut closing, runtime.sleep_until(beat));
            match select(&mut order, beat).await {
                Either::Left((Ok(Order { ending, reply }), _)) => {
                    let released = self.end(ending).await;
                    if let Some(reply) = reply {
                        let _ = reply.send(released);
                    }
                    return;
                }
                Either::Left((Err(_), _)) => return,
                Either::Right((Either::Left(_), _)) => {
                    self.core.lose(&self.hold, true);
                    // Whoever released the run was told by then.
                    let _ = self.end(taken.unfinished()).await;
                    return;
                }
                Either::Right((Either::Right(_), _)) => {}
            }
            if !self.hold.is_held() {
                if taken.unfinished() == Ending::TakenBack {
                    // It ended before anybody could look at it.
                    let _ = self.end(Ending::TakenBack).await;
                }
                self.core.lose(&self.hold, false);
                return;
            }
            match self.beat(ttl).await {
                Some(true) => rest = Duration::ZERO,
                Some(false) => return,
                None => rest = (ttl / 10).min(LONGEST_REST),
            }
        }
    }

    /// Pushes the end: whether the run stands; `None` if it is not known yet.
    async fn beat(&mut self, ttl: Duration) -> Option<bool> {
        let sent = self.core.runtime.now();
        let lease = ttl.min(self.cap.since(sent));
        if lease.is_zero() {
            return None;
        }
        self.record.ttl = micros(lease);
        self.change.value = Some(self.record.text().ok()?);
        let Swap::Done { version, .. } = self.swap(self.hold.deadline()).await? else {
            self.core.lose(&self.hold, true);
            return Some(false);
        };
        self.change.expected = Some(version);
        self.sent = sent;
        self.hold.prolong(sent, lease, self.core.runtime.now());
        Some(true)
    }

    /// Marks how the run ended, if what lies there is still its own.
    pub(super) async fn end(&mut self, ending: Ending) -> Released {
        let runtime = self.core.runtime.clone();
        if ending != Ending::TakenBack {
            let hold = &self.hold;
            self.core.events.emit(|| Event::released(hold.lock.as_str(), hold.token));
        }
        let held = self.hold.is_held();
        let (until, value) = match ending {
            Ending::TakenBack if mutant!(GivenUpRunForgotten) => return Released::Released,
            Ending::TakenBack => {
                (runtime.now() + PATIENCE, self.before.as_ref().map(Record::put_back))
            }
            // Its lease has ended: it may have been run again since, and is not told to have been the one.
            _ if !held && !self.core.is_closed() => return Released::AlreadyLost,
            Ending::Succeeded => (self.hold.deadline(), Some(self.record.ended(Status::Succeeded))),
            Ending::Failed => (self.hold.deadline(), Some(self.record.ended(Status::Failed))),
        };
        self.change.value = match value.map(|record| record.text()).transpose() {
            Ok(value) => value,
            Err(_) => return Released::Unconfirmed,
        };
        let mut backoff = Backoff::new();
        loop {
            match self.swap(until).await {
                Some(Swap::Done { .. }) => return Released::Released,
                Some(Swap::Other(look)) if mutant!(JobEndsWithoutToken) => {
                    self.change.expected = look.version();
                    continue;
                }
                Some(Swap::Other(_)) => return Released::AlreadyLost,
                None => {}
            }
            let now = runtime.now();
            if now >= until || self.core.runs.is_over() {
                return Released::Unconfirmed;
            }
            runtime.sleep_until((now + backoff.next()).min(until)).await;
        }
    }

    /// The outcome of the next change, if it is known.
    async fn swap(&self, until: Instant) -> Option<Swap> {
        match self.core.swap(&self.change, until).await {
            Ok(swap) => Some(swap),
            Err(failure) => {
                tracing::debug!(target: "fencelock", error = %failure.error, "a job's record could not be changed");
                None
            }
        }
    }
}
