//! The engine of one client: it gets locks from a store, keeps them, and gives them back. It knows no driver, clock or executor.
//!
//! An acquire ([`acquire`]) joins the local line of its lock; the head of the line makes an attempt at the store ([`attempt`]). The task of the
//! client ([`tick`]) keeps tickets and holds alive, a guard ends through [`release`], and [`cleanup`] repeats what is not confirmed. What all of
//! them know is one [`table`].

mod acquire;
mod attempt;
mod break_lock;
mod cleanup;
mod due;
mod hold;
mod inspect;
mod line;
mod reason;
mod recent_releases;
mod reentrant;
mod release;
mod request;
mod retry_delays;
mod runs;
mod several;
#[cfg(test)]
mod shuttle;
mod table;
mod tick;
mod transfer;

use std::mem;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use futures_util::future::join;

pub(crate) use attempt::Attempt;
use cleanup::CleanupSender;
pub(crate) use hold::{Hold, deadline};
pub(crate) use line::Local;
use reason::Questions;
pub(crate) use reason::too_late;
use recent_releases::RecentReleases;
pub(crate) use reentrant::{Counts, Share};
pub(crate) use release::GivenUp;
pub(crate) use request::{LockId, Request, Wait};
pub(crate) use retry_delays::RetryDelays;
pub(crate) use runs::{InProgress, Runs};
pub(crate) use several::Member;
use table::{Abandoned, Table};

use crate::error::{Error, Result};
use crate::event::{Event, Events};
use crate::port::limits::TOMBSTONE_LIFE;
use crate::port::{LeaseHandle, Notice, RuntimeHandle};
use crate::runtime::sync::Mutex;

/// Everything the holds, tickets and waiters of one client share.
pub(crate) struct Engine {
    pub store: LeaseHandle,
    pub runtime: RuntimeHandle,
    pub events: Events,
    /// The client's task shares it, and does not keep the engine alive.
    table: Arc<Mutex<Table>>,
    cleanup: CleanupSender,
    recent_releases: RecentReleases,
    retry_delays: RetryDelays,
    questions: Questions,
    pub(crate) runs: Runs,
    /// How many acquires were begun.
    attempts: AtomicU64,
    /// The process that made it.
    process: u32,
}

impl Engine {
    /// Starts the client's two tasks. They end when the last user of the engine is gone.
    pub(crate) async fn start(
        store: LeaseHandle,
        runtime: RuntimeHandle,
        events: Events,
    ) -> Result<Arc<Self>> {
        let (cleanup, inbox) = cleanup::channel();
        let engine = Arc::new(Self {
            store: store.clone(),
            runtime: runtime.clone(),
            events,
            table: Arc::new(Mutex::new(Table::new(runtime.clone()))),
            recent_releases: RecentReleases::new(cleanup.clone()),
            cleanup,
            retry_delays: RetryDelays::new(runtime.clone()),
            questions: Questions::default(),
            runs: Runs::default(),
            attempts: AtomicU64::new(0),
            process: runtime.process(),
        });
        let listener = Arc::downgrade(&engine);
        let sink = move |notice| {
            if let Some(engine) = listener.upgrade() {
                engine.notice(&notice);
            }
        };
        store.listen(Arc::new(sink)).await?;
        let retry_delays = engine.retry_delays.clone();
        runtime.spawn(Box::pin(cleanup::run(inbox, store, runtime.clone(), retry_delays)));
        let task = tick::run(Arc::downgrade(&engine), runtime.clone(), engine.table.clone());
        runtime.spawn(Box::pin(task));
        Ok(engine)
    }

    /// The store sent a notice.
    fn notice(self: &Arc<Self>, notice: &Notice) {
        let now = self.runtime.now();
        let known = self.table.lock().notice(notice, now);
        match *notice {
            Notice::Gap => {
                self.recent_releases.repeat(now);
                self.retry_delays.end();
            }
            Notice::Granted { owner, .. } | Notice::Open { owner } if !known => {
                self.recent_releases.served(owner);
            }
            Notice::Gone { owner } => {
                let lost = self.table.lock().gone(owner);
                if let Some(hold) = lost {
                    self.lose(&hold, true);
                }
            }
            Notice::Granted { .. } | Notice::Open { .. } | Notice::Look => {}
        }
    }

    /// Ends a hold's claim: its guard is lost, and the waiters of this client ask the store themselves.
    pub(crate) fn lose(self: &Arc<Self>, hold: &Arc<Hold>, gone: bool) {
        // If `close` marked the hold lost first, `close` also frees it on the store.
        if self.end_claim(hold, gone) || gone {
            self.table.lock().forget(hold.owner);
        }
    }

    /// The same, but the table goes on knowing the hold. True for the first who does.
    fn end_claim(self: &Arc<Self>, hold: &Arc<Hold>, gone: bool) -> bool {
        let first = hold.lose(gone);
        if first {
            self.claim_has_ended(hold, gone);
        }
        first
    }

    fn claim_has_ended(self: &Arc<Self>, hold: &Arc<Hold>, gone: bool) {
        // No guard has it yet, so there is no loss to report.
        if hold.serves(0) {
            if !gone {
                self.free_later(hold);
            }
            return;
        }
        self.report_loss(hold, hold.is_gone());
        self.clear_front(hold);
        // Its holder has had its time, and claims nothing any more; others need not wait for the lease to end.
        if !gone && self.runtime.now() >= hold.cap() {
            self.free_later(hold);
        }
    }

    /// Reports a loss, once: it may be found by whoever installs a hold while the client's task loses it.
    fn report_loss(&self, hold: &Hold, gone: bool) {
        if hold.report_lost() {
            let reason = if self.is_closed() {
                "the client was closed"
            } else if gone {
                "the store no longer has the hold"
            } else if self.runtime.now() >= hold.cap() {
                "`max_hold` is over"
            } else if !hold.renew {
                "its lease has ended (`renew=false`)"
            } else {
                "the lease was not renewed in time"
            };
            self.events.warn(Event::lost(hold.lock.name(), hold.token, hold.held_for(), reason));
        }
    }

    /// A lost hold is not at the front: the waiters of this client do not wait for its guard.
    fn clear_front(self: &Arc<Self>, hold: &Hold) {
        let was_front = self.table.lock().lines.clear_front(&hold.lock, hold.owner);
        if was_front {
            self.pass_leadership(&hold.lock, None);
        }
    }

    /// Completes when the claim of a local hold has ended: true if it was lost, false if it was given up before.
    pub(crate) async fn ended(&self, local: &Local) -> bool {
        let hold = &local.hold;
        loop {
            let signal = hold.on_lost();
            // In this order: a loss that is reported was there before the hold was given up, and its release says so, too.
            let held = hold.is_held();
            if !hold.serves(local.number) {
                return false;
            }
            if !held {
                return true;
            }
            // Both, so that the signal needs neither the network nor the client's task.
            self.runtime.until(hold.deadline(), signal).await;
        }
    }

    /// Refuses new work, gives up all that is held and waited for, and waits until that is settled on the store.
    pub(crate) async fn close(self: &Arc<Self>, patience: Duration) {
        if !self.is_here() {
            return;
        }
        let (holds, tickets) = self.table.lock().close();
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
        self.runtime.until(end, Box::pin(settled)).await;
        self.runs.give_up();
        self.store.close().await;
    }

    /// Whether it was closed, for whoever has begun something.
    pub(crate) fn is_closed(&self) -> bool {
        self.table.lock().closed
    }

    /// Refuses to begin anything when the client is closed, or in another process. The process is asked of the system, so once only.
    pub(crate) fn check_open(&self) -> Result<()> {
        if !self.is_here() {
            return Err(Error::forked());
        }
        if self.is_closed() { Err(Error::closed()) } else { Ok(()) }
    }

    /// Whether this is the process that made it. In the child of a fork nothing of it may be touched: a thread of the parent may
    /// have left a mutex locked, and its tasks run there.
    pub(crate) fn is_here(&self) -> bool {
        self.process == self.runtime.process()
    }

    /// How many attempts, tickets, holds and runs there are, and how many locks have a line: both 0 at rest.
    pub(crate) fn load(&self) -> (usize, usize) {
        if !self.is_here() {
            return (0, 0);
        }
        let table = self.table.lock();
        (table.len() + self.runs.count(), table.lines.len())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.is_here() {
            self.table.lock().close();
            return;
        }
        // What its parent goes on with is not taken apart here: that wakes tasks and ends connections.
        mem::forget((self.store.clone(), self.table.clone(), self.cleanup.clone()));
    }
}
