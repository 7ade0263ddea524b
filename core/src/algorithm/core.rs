//! What the holds, tickets and waiters of one client share, and the two tasks that serve them.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, select};

use super::cohort::{Cohorts, Local};
use super::ended::Ended;
use super::floors::Floors;
use super::hold::Hold;
use super::job::Tending;
use super::register::Abandoned;
use super::renew::{Asked, News, Wheel};
use super::rest::Rests;
use super::undo::{self, UndoSender};
use super::who_holds::Questions;
use crate::error::{Error, Result};
use crate::event::{Event, Events};
use crate::port::limits::TOMBSTONE_LIFE;
use crate::port::{Answer, Instant, LeaseHandle, Notice, RuntimeHandle};
use crate::runtime::sync::Mutex;

/// Everything the holds, tickets and waiters of one client share.
pub(crate) struct Core {
    pub store: LeaseHandle,
    pub runtime: RuntimeHandle,
    pub events: Events,
    pub(super) wheel: Arc<Wheel>,
    pub(super) cohorts: Mutex<Cohorts>,
    pub(super) undo: UndoSender,
    pub(super) ended: Arc<Ended>,
    pub(super) rests: Rests,
    pub(super) floors: Floors,
    pub(super) questions: Questions,
    pub(super) tending: Tending,
    /// The process that made it.
    process: u32,
}

impl Core {
    /// Starts the client's tasks: the wheel and the housekeeping. They end when the last user of the core is gone.
    pub(crate) async fn start(
        store: LeaseHandle,
        runtime: RuntimeHandle,
        events: Events,
    ) -> Result<Arc<Self>> {
        let wheel = Arc::new(Wheel::new(runtime.clone()));
        let (undo, inbox) = undo::channel();
        let core = Arc::new(Self {
            store: store.clone(),
            runtime: runtime.clone(),
            events,
            wheel: wheel.clone(),
            cohorts: Mutex::default(),
            ended: Arc::new(Ended::new(undo.clone())),
            undo,
            rests: Rests::new(runtime.clone()),
            questions: Questions::default(),
            floors: Floors::default(),
            tending: Tending::default(),
            process: runtime.process(),
        });
        let (listener, ended) = (Arc::downgrade(&wheel), Arc::downgrade(&core.ended));
        let rests = core.rests.clone();
        let clock = runtime.clone();
        let sink = move |notice| {
            let (Some(wheel), Some(ended)) = (listener.upgrade(), ended.upgrade()) else { return };
            let known = wheel.notice(&notice);
            match notice {
                Notice::Gap => {
                    ended.repeat(clock.now());
                    rests.end();
                }
                Notice::Granted { owner, .. } if !known => ended.served(owner),
                Notice::Open { owner } if !known && !mutant!(EndedTicketKeepsTurn) => {
                    ended.served(owner);
                }
                _ => {}
            }
        };
        store.listen(Arc::new(sink)).await?;
        runtime.spawn(Box::pin(undo::housekeeping(
            inbox,
            store,
            runtime.clone(),
            core.rests.clone(),
        )));
        let weak = Arc::downgrade(&core);
        runtime.spawn(Box::pin(async move {
            while !wheel.rest().await {
                let Some(core) = weak.upgrade() else { return };
                core.tick();
            }
        }));
        Ok(core)
    }

    /// One tick of the wheel: what is due goes out in one batch, unless that would be too large, and beside the wheel, so
    /// that a stalled store stalls nothing.
    fn tick(self: &Arc<Self>) {
        let work = self.wheel.collect();
        for hold in work.lost {
            self.lose(&hold, false);
        }
        if work.steps.is_empty() {
            return;
        }
        let sent = self.runtime.now();
        let answers = self.store.step(work.steps);
        let core = Arc::downgrade(self);
        self.runtime.spawn(Box::pin(async move {
            let answers = answers.await;
            let Some(core) = core.upgrade() else { return };
            for (asked, answer) in work.asked.into_iter().zip(&answers) {
                core.answered(asked, sent, answer);
            }
            if work.more {
                core.wheel.go_on();
            }
        }));
    }

    fn answered(self: &Arc<Self>, asked: Asked, sent: Instant, answer: &Answer) {
        match self.wheel.answered(asked, sent, answer) {
            Some(News::Lost(hold)) => self.lose(&hold, true),
            Some(News::Renewed(hold)) => {
                self.events.emit(|| Event::renewed(hold.lock.as_str(), hold.token));
            }
            None => {}
        }
    }

    /// Ends a hold's claim: tells its guard, and whoever waits here asks the store itself.
    pub(super) fn lose(self: &Arc<Self>, hold: &Arc<Hold>, gone: bool) {
        // One that has lost it before, as a close does, sees to what is left.
        if self.end_claim(hold, gone) || gone {
            self.wheel.remove(hold.owner);
        }
    }

    /// The same, but the wheel goes on knowing it. True for the first who does.
    fn end_claim(self: &Arc<Self>, hold: &Arc<Hold>, gone: bool) -> bool {
        let first = hold.lose(gone);
        if first {
            self.claim_has_ended(hold, gone);
        }
        first
    }

    fn claim_has_ended(self: &Arc<Self>, hold: &Arc<Hold>, gone: bool) {
        // One that no guard has yet is nobody's loss.
        if hold.serves(0) {
            if !gone {
                self.free_later(hold);
            }
            return;
        }
        self.tell_loss(hold);
        self.vacate(hold);
        // Its holder has had its time, and claims nothing any more; others need not wait for the lease to end.
        if !gone && self.runtime.now() >= hold.cap() && !mutant!(MaxHoldKeepsLease) {
            self.free_later(hold);
        }
    }

    /// Tells of a loss, once: it may be found by whoever seats a hold while the wheel loses it.
    pub(super) fn tell_loss(&self, hold: &Hold) {
        if hold.mourn() {
            self.events.emit(|| Event::lost(hold.lock.as_str(), hold.token));
        }
    }

    /// A lost hold keeps no seat: whoever waits here does not wait for its guard.
    pub(super) fn vacate(self: &Arc<Self>, hold: &Hold) {
        let had_seat = self.cohorts.lock().vacate(&hold.lock, hold.owner);
        if had_seat {
            self.pass_leadership(&hold.lock, None);
        }
    }

    /// Completes when the claim of a local hold has ended: true if it was lost, false if it was given up before.
    pub(crate) async fn ended(&self, local: &Local) -> bool {
        let hold = &local.hold;
        loop {
            let signal = hold.on_lost();
            if !hold.serves(local.number) {
                return false;
            }
            if !hold.is_held() {
                return true;
            }
            // Both, so that the signal needs neither the network nor the wheel.
            let end = if mutant!(ExpiryUntold) { Instant::FAR } else { hold.deadline() };
            select(signal, self.runtime.sleep_until(end)).await;
        }
    }

    /// Refuses new work, gives up all that is held and waited for, and waits until that is settled on the store.
    pub(crate) async fn close(self: &Arc<Self>, patience: Duration) {
        if !self.is_here() {
            return;
        }
        let (holds, tickets) = self.wheel.shut();
        for hold in holds {
            self.end_claim(&hold, true);
            self.free_later(&hold);
        }
        for Abandoned { lock, owner, ttl } in tickets {
            self.leave_later(&lock, owner, Some(ttl.max(TOMBSTONE_LIFE)));
        }
        self.rests.end();
        let end = self.runtime.now() + patience;
        let settled = join(self.undo.flush(), self.tending.close());
        select(Box::pin(settled), self.runtime.sleep_until(end)).await;
        self.tending.give_up();
        self.store.close().await;
    }

    /// Whether it was closed, for whoever has begun something.
    pub(crate) fn is_closed(&self) -> bool {
        self.wheel.is_shut()
    }

    /// Refuses whoever begins something when it is closed, or in another process. That is asked of the system, so once only.
    pub(crate) fn check_open(&self) -> Result<()> {
        if !self.is_here() {
            return Err(Error::forked());
        }
        if self.is_closed() { Err(Error::closed()) } else { Ok(()) }
    }

    /// Whether this is the process that made it. In the child of a fork nothing of it may be touched: whoever was at work in
    /// the parent may have left a mutex locked, and its tasks run there.
    pub(crate) fn is_here(&self) -> bool {
        self.process == self.runtime.process()
    }

    /// How many attempts, tickets and holds the wheel carries and runs are tended to, and how many locks have a cohort:
    /// both 0 at rest.
    pub(crate) fn load(&self) -> (usize, usize) {
        if !self.is_here() {
            return (0, 0);
        }
        (self.wheel.len() + self.tending.count(), self.cohorts.lock().len())
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if self.is_here() {
            self.wheel.shut();
            return;
        }
        // What its parent goes on with is not taken apart here: that wakes tasks and ends connections.
        mem::forget(mem::take(self.cohorts.get_mut()));
        mem::forget((
            self.store.clone(),
            self.wheel.clone(),
            self.undo.clone(),
            self.ended.clone(),
        ));
    }
}
