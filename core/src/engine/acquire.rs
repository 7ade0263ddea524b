//! Acquires a lock: joins this client's local line; its head asks the store; a waiter that leaves promotes the next one.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_channel::oneshot;
use futures_util::future::{Either, select};
use scopeguard::{ScopeGuard, guard};

use super::Engine;
use super::attempt::Attempt;
use super::hold::Hold;
use super::line::{Entered, Local, Turn};
use super::reason::{Reason, shown};
use super::request::{Asked, LockId, Request, Wait};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::port::Instant;
use crate::runtime::sync::Mutex;

impl Engine {
    pub(super) fn ask(&self) -> Asked {
        let attempt = self.attempts.fetch_add(1, Ordering::Relaxed) + 1;
        Asked { attempt, since: self.runtime.now() }
    }

    /// Gets the lock, or `None` if the caller does not wait and it is not free.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        lock: &LockId,
        request: Request,
        wait: Wait,
    ) -> Result<Option<Local>> {
        self.check_open()?;
        let asked = self.ask();
        let reason = Mutex::default();
        let end = match wait {
            Wait::Try => return self.stand(lock, request, false, &reason, asked).await,
            Wait::Until(end) => end,
            Wait::Forever => Instant::FAR,
        };
        let wait = end.since(asked.since);
        let work = Box::pin(self.stand(lock, request, true, &reason, asked));
        match select(work, pin!(self.holders_after(wait, end, lock, asked))).await {
            Either::Left((result, _)) => result,
            Either::Right((holders, work)) => {
                // Whoever stands behind another waiter of this client waits for the same store.
                let line = self.table.lock().lines.reason_of(lock);
                drop(work);
                let reason = reason.lock().take().or(line).unwrap_or_default();
                Err(reason.into_error(&holders).with("waited", shown(wait)))
            }
        }
    }

    /// Stands in line, leads when it is its turn. `reason` is why a leader does not have it yet, for whoever cuts it short.
    async fn stand(
        self: &Arc<Self>,
        lock: &LockId,
        request: Request,
        waits: bool,
        reason: &Mutex<Option<Reason>>,
        asked: Asked,
    ) -> Result<Option<Local>> {
        let leads = request.mode.is_exclusive();
        let mut in_line = false;
        let attempt = loop {
            let now = || self.runtime.now();
            let entered = self.table.lock().lines.enter(lock, &request, waits, now);
            let (number, turn) = match entered {
                Entered::Refused => return Ok(None),
                Entered::Leading => break None,
                Entered::InLine { number, turn } => (number, turn),
            };
            if !std::mem::replace(&mut in_line, true) {
                self.events.emit(|| Event::waiting(lock.as_str(), asked.attempt));
            }
            let mut in_place = guard(turn, |turn| self.leave_line(lock, number, turn));
            let turn = (&mut *in_place).await;
            drop(ScopeGuard::into_inner(in_place));
            match turn.map_err(|_| Error::closed())? {
                Turn::Lead(attempt) => break attempt,
                Turn::Passed(local) if local.hold.is_held() => {
                    local.hold.serve(local.number);
                    return Ok(Some(self.received(local, asked)));
                }
                // Passed on in time, but looked at only after its end: that is no grant. It is still this one's turn.
                Turn::Passed(local) if self.leads_after(&local) => break None,
                Turn::Passed(_) => {}
            }
        };
        let mut attempt = match attempt {
            Some(mut attempt) => {
                attempt.pass_to(request);
                attempt
            }
            None => Box::new(Attempt::new(self.clone(), lock.clone(), request, waits)),
        };
        attempt.announced |= in_line;
        attempt.number = asked.attempt;
        // Whoever leads no more has the next in line lead. Readers and permits each ask for themselves.
        let mut leading = guard(attempt, |attempt| {
            *reason.lock() = Some(attempt.reason.clone());
            if leads {
                self.pass_leadership(lock, Some(attempt));
            }
        });
        match leading.run().await {
            Ok(Some(hold)) => {
                ScopeGuard::into_inner(leading);
                Ok(Some(self.install(hold, asked)))
            }
            Ok(None) => Ok(None),
            Err(error) => Err(error.with("name", lock.as_str())),
        }
    }

    /// A hold that was won is at the front now.
    pub(super) fn install(self: &Arc<Self>, hold: Arc<Hold>, asked: Asked) -> Local {
        let local = self.table.lock().install(hold, self.runtime.now());
        self.received(local, asked)
    }

    /// A local hold has its guard from now on.
    fn received(self: &Arc<Self>, local: Local, asked: Asked) -> Local {
        let name = local.hold.lock.as_str();
        self.events.emit(|| {
            let waited = self.runtime.now().since(asked.since);
            Event::granted(name, local.token).after(asked.attempt, waited)
        });
        // Lost before there was a guard: nobody would clear the front later, and the loss is not reported yet.
        if local.hold.is_lost() {
            self.clear_front(&local.hold);
            self.report_loss(&local.hold, local.hold.is_gone());
        }
        local
    }

    /// A hold that was passed on was lost before anybody looked at it. Whether whoever looks now leads in its place.
    fn leads_after(self: &Arc<Self>, local: &Local) -> bool {
        self.lose(&local.hold, false);
        self.table.lock().lines.leads_after(local)
    }

    /// Nobody is at the front: the next in line leads, with the attempt under way if there is one; else it is cleaned up.
    pub(super) fn pass_leadership(self: &Arc<Self>, lock: &LockId, attempt: Option<Box<Attempt>>) {
        let mut turn = Turn::Lead(attempt.filter(|attempt| attempt.inheritable()));
        loop {
            let next = self.table.lock().lines.next_leader(lock);
            let Some(next) = next else { return };
            match next.send(turn) {
                Ok(()) => return,
                Err(returned) => turn = returned,
            }
        }
    }
    /// A waiter leaves the line before its turn, and passes on whatever it was told meanwhile.
    fn leave_line(self: &Arc<Self>, lock: &LockId, number: u64, mut turn: oneshot::Receiver<Turn>) {
        self.table.lock().lines.leave(lock, number);
        turn.close();
        match turn.try_recv() {
            Ok(Some(Turn::Lead(attempt))) => self.pass_leadership(lock, attempt),
            Ok(Some(Turn::Passed(local))) => self.abandon(&local),
            Ok(None) | Err(_) => {}
        }
    }
}
