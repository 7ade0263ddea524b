//! The state that the holds, tickets and waiters of one client share, and the two tasks that serve them.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use futures_util::future::{join, select};

use super::attempt::Attempt;
use super::cleanup::{self, CleanupSender};
use super::cohort::{Cohorts, Local};
use super::floors::Floors;
use super::hold::Hold;
use super::job::Runs;
use super::recent_releases::RecentReleases;
use super::registry::Abandoned;
use super::renewal_batch::BatchEntry;
use super::renewer::{News, Renewer};
use super::retry_delays::RetryDelays;
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
    pub(super) renewer: Arc<Renewer>,
    pub(super) cohorts: Mutex<Cohorts<Box<Attempt>>>,
    pub(super) cleanup: CleanupSender,
    pub(super) recent_releases: Arc<RecentReleases>,
    pub(super) retry_delays: RetryDelays,
    pub(super) floors: Floors,
    pub(super) questions: Questions,
    pub(super) runs: Runs,
    /// How many acquires were begun.
    pub(super) attempts: AtomicU64,
    /// The process that made it.
    process: u32,
}

impl Core {
    /// Starts the client's tasks: the renewer and the cleanup task. They end when the last user of the core is gone.
    pub(crate) async fn start(
        store: LeaseHandle,
        runtime: RuntimeHandle,
        events: Events,
    ) -> Result<Arc<Self>> {
        let renewer = Arc::new(Renewer::new(runtime.clone()));
        let (cleanup, inbox) = cleanup::channel();
        let core = Arc::new(Self {
            store: store.clone(),
            runtime: runtime.clone(),
            events,
            renewer: renewer.clone(),
            cohorts: Mutex::default(),
            recent_releases: Arc::new(RecentReleases::new(cleanup.clone())),
            cleanup,
            retry_delays: RetryDelays::new(runtime.clone()),
            questions: Questions::default(),
            floors: Floors::default(),
            runs: Runs::default(),
            attempts: AtomicU64::new(0),
            process: runtime.process(),
        });
        let listener = Arc::downgrade(&core);
        let sink = move |notice| {
            if let Some(core) = listener.upgrade() {
                core.notice(&notice);
            }
        };
        store.listen(Arc::new(sink)).await?;
        runtime.spawn(Box::pin(cleanup::run(
            inbox,
            store,
            runtime.clone(),
            core.retry_delays.clone(),
        )));
        let weak = Arc::downgrade(&core);
        runtime.spawn(Box::pin(async move {
            while !renewer.rest().await {
                let Some(core) = weak.upgrade() else { return };
                core.tick();
            }
        }));
        Ok(core)
    }

    /// The store told something.
    fn notice(self: &Arc<Self>, notice: &Notice) {
        let known = self.renewer.notice(notice);
        match *notice {
            Notice::Gap => {
                self.recent_releases.repeat(self.runtime.now());
                self.retry_delays.end();
            }
            Notice::Granted { owner, .. } | Notice::Open { owner } if !known => {
                self.recent_releases.served(owner);
            }
            Notice::Gone { owner } => {
                if let Some(hold) = self.renewer.gone(owner) {
                    self.lose(&hold, true);
                }
            }
            Notice::Granted { .. } | Notice::Open { .. } | Notice::Look => {}
        }
    }

    /// One tick of the renewer: what is due goes out in one batch, unless that would be too large, and beside the renewer, so
    /// that a stalled store stalls nothing.
    fn tick(self: &Arc<Self>) {
        let work = self.renewer.collect();
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
                core.renewer.go_on();
            }
        }));
    }

    fn answered(self: &Arc<Self>, asked: BatchEntry, sent: Instant, answer: &Answer) {
        match self.renewer.answered(asked, sent, answer) {
            Some(News::Lost(hold)) => self.lose(&hold, true),
            Some(News::Renewed(hold)) => {
                self.events.emit(|| Event::renewed(hold.lock.name(), hold.token));
            }
            Some(News::RenewedLate(hold, left)) => {
                self.events.warn(Event::late_renewal(hold.lock.name(), hold.token, left));
            }
            None => {}
        }
    }

    /// Ends a hold's claim: tells its guard, and whoever waits here asks the store itself.
    pub(super) fn lose(self: &Arc<Self>, hold: &Arc<Hold>, gone: bool) {
        // One that has lost it before, as a close does, sees to what is left.
        if self.end_claim(hold, gone) || gone {
            self.renewer.remove(hold.owner);
        }
    }

    /// The same, but the renewer goes on knowing it. True for the first who does.
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
        self.clear_front(hold);
        // Its holder has had its time, and claims nothing any more; others need not wait for the lease to end.
        if !gone && self.runtime.now() >= hold.cap() {
            self.free_later(hold);
        }
    }

    /// Reports a loss, once: it may be found by whoever installs a hold while the renewer loses it.
    pub(super) fn tell_loss(&self, hold: &Hold) {
        if hold.report_lost() {
            let reason = if self.is_closed() {
                "the client was closed"
            } else if hold.is_gone() {
                "the store no longer has the hold"
            } else if self.runtime.now() >= hold.cap() {
                "`max_hold` is over"
            } else {
                "the lease was not renewed in time"
            };
            self.events.warn(Event::lost(hold.lock.name(), hold.token, hold.held_for(), reason));
        }
    }

    /// A lost hold is not at the front: whoever waits here does not wait for its guard.
    pub(super) fn clear_front(self: &Arc<Self>, hold: &Hold) {
        let was_front = self.cohorts.lock().clear_front(&hold.lock, hold.owner);
        if was_front {
            self.pass_leadership(&hold.lock, None);
        }
    }

    /// Completes when the claim of a local hold has ended: true if it was lost, false if it was given up before.
    pub(crate) async fn ended(&self, local: &Local) -> bool {
        let hold = &local.hold;
        loop {
            let signal = hold.on_lost();
            // In this order: a loss that is told was there before the hold was given up, and its release says so, too.
            let held = hold.is_held();
            if !hold.serves(local.number) {
                return false;
            }
            if !held {
                return true;
            }
            // Both, so that the signal needs neither the network nor the renewer.
            select(signal, self.runtime.sleep_until(hold.deadline())).await;
        }
    }

    /// Refuses new work, gives up all that is held and waited for, and waits until that is settled on the store.
    pub(crate) async fn close(self: &Arc<Self>, patience: Duration) {
        if !self.is_here() {
            return;
        }
        let (holds, tickets) = self.renewer.shut();
        for hold in holds {
            self.end_claim(&hold, true);
            self.free_later(&hold);
        }
        for Abandoned { lock, owner, ttl } in tickets {
            self.leave_later(&lock, owner, Some(ttl.max(TOMBSTONE_LIFE)));
        }
        self.retry_delays.end();
        let end = self.runtime.now() + patience;
        let settled = join(self.cleanup.flush(), self.runs.close());
        select(Box::pin(settled), self.runtime.sleep_until(end)).await;
        self.runs.give_up();
        self.store.close().await;
    }

    /// Whether it was closed, for whoever has begun something.
    pub(crate) fn is_closed(&self) -> bool {
        self.renewer.is_shut()
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

    /// How many attempts, tickets and holds the renewer has and how many runs are in progress, and how many locks have a cohort:
    /// both 0 at rest.
    pub(crate) fn load(&self) -> (usize, usize) {
        if !self.is_here() {
            return (0, 0);
        }
        (self.renewer.len() + self.runs.count(), self.cohorts.lock().len())
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if self.is_here() {
            self.renewer.shut();
            return;
        }
        // What its parent goes on with is not taken apart here: that wakes tasks and ends connections.
        mem::forget(mem::take(self.cohorts.get_mut()));
        mem::forget((
            self.store.clone(),
            self.renewer.clone(),
            self.cleanup.clone(),
            self.recent_releases.clone(),
        ));
    }
}
