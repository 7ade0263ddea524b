//! The life of a run from its start on: whoever stays for it, and how its end is marked.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::{Either, select};

use super::record::{Record, Status};
use crate::engine::{Engine, Hold, InProgress, Local};
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
        if self.decide(Self::NOBODY) { Ending::TakenBack } else { Ending::Failed }
    }
}

/// The number of the local hold of every run; nothing passes on from one run to another.
const RUN: u64 = 1;
/// How long a run that is taken back is tried to be.
const PATIENCE: Duration = Duration::from_secs(30);

struct Order {
    ending: Ending,
    reply: Option<oneshot::Sender<Released>>,
}

/// A run that has begun. Dropping it marks it as failed; before it was taken, it takes it back.
pub(crate) struct Begun {
    engine: Arc<Engine>,
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
        self.hold.is_held() && self.taken.take()
    }

    /// The local hold that the claims of the run look at.
    pub(crate) fn local(&self) -> Local {
        Local { hold: self.hold.clone(), number: RUN, token: self.hold.token }
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
        if !self.engine.is_here() {
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

/// Marks how one run ends.
pub(super) struct Keeper {
    pub(super) engine: Arc<Engine>,
    pub(super) hold: Arc<Hold>,
    /// The next change, but for its value.
    pub(super) change: Change,
    pub(super) record: Record,
    /// The record that was there before the start.
    pub(super) before: Option<Record>,
}

impl Keeper {
    /// Sets itself to work.
    pub(super) fn begin(self, in_progress: InProgress) -> Begun {
        let (sender, receiver) = oneshot::channel();
        let (engine, hold, instant) = (self.engine.clone(), self.hold.clone(), self.record.instant);
        hold.serve(RUN);
        let taken = Arc::<Taken>::default();
        let kept = taken.clone();
        let runtime = self.engine.runtime.clone();
        runtime.spawn(Box::pin(async move {
            self.keep(receiver, kept).await;
            drop(in_progress);
        }));
        Begun { engine, hold, instant, taken, order: Some(sender) }
    }

    /// Until it is told how the run ended, or the client closes.
    async fn keep(mut self, order: oneshot::Receiver<Order>, taken: Arc<Taken>) {
        let closing = self.engine.runs.closing();
        let order = match select(order, closing).await {
            Either::Left((Ok(order), _)) => order,
            Either::Left((Err(_), _)) => return,
            Either::Right(_) => Order { ending: taken.unfinished(), reply: None },
        };
        let released = self.end(order.ending).await;
        if let Some(reply) = order.reply {
            let _ = reply.send(released);
        }
    }

    /// Marks how the run ended, and frees the job's lock.
    pub(super) async fn end(&mut self, ending: Ending) -> Released {
        let released = self.mark(ending).await;
        self.engine.free_run(&self.hold).await;
        released
    }

    /// Marks how the run ended, if what lies there is still its own.
    async fn mark(&mut self, ending: Ending) -> Released {
        let runtime = self.engine.runtime.clone();
        if ending != Ending::TakenBack {
            let hold = &self.hold;
            self.engine
                .events
                .emit(|| Event::released(hold.lock.name(), hold.token, hold.held_for()));
        }
        let held = self.hold.is_held();
        let (until, value) = match ending {
            Ending::TakenBack => (runtime.now() + PATIENCE, self.before.clone()),
            // Its lease has ended: it may have been run again since, and is not told to have been the one.
            _ if !held && !self.engine.is_closed() => return Released::AlreadyLost,
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
                Some(Swap::Other(_)) => return Released::AlreadyLost,
                None => {}
            }
            let now = runtime.now();
            if now >= until || self.engine.runs.is_over() {
                return Released::Unconfirmed;
            }
            runtime.sleep_until((now + backoff.next()).min(until)).await;
        }
    }

    /// The outcome of the next change, if it is known.
    async fn swap(&self, until: Instant) -> Option<Swap> {
        match self.engine.swap(&self.change, until).await {
            Ok(swap) => Some(swap),
            Err(failure) => {
                tracing::debug!(target: "fencelock", error = %failure.error, "a job's record could not be changed");
                None
            }
        }
    }
}
