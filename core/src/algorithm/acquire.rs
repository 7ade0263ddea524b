//! The way to a lock: stand in the line of this client, lead when it is your turn, give way when you leave.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::{Either, select};

use super::cohort::{Admission, LineMessage, Local};
use super::core::Core;
use super::hold::{Hold, Request};
use super::lease::Attempt;
use super::lock_id::LockId;
use super::reason::Reason;
use super::who_holds::shown;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::port::{Instant, Runtime};
use crate::runtime::sync::Mutex;

/// How long an acquire waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Not at all.
    Try,
    Until(Instant),
    Forever,
}

impl Wait {
    /// From now on so long; `None`: for ever.
    pub(crate) fn of(wait: Option<Duration>, runtime: &dyn Runtime) -> Self {
        match wait {
            None => Self::Forever,
            Some(Duration::ZERO) => Self::Try,
            Some(wait) => Self::Until(runtime.now() + wait),
        }
    }
}

impl Core {
    /// Gets the lock, or `None` if the caller does not wait and it is not free.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        lock: &LockId,
        request: Request,
        wait: Wait,
    ) -> Result<Option<Local>> {
        self.check_open()?;
        let Wait::Until(end) = wait else {
            return self.stand(lock, request, wait != Wait::Try, &Mutex::default()).await;
        };
        let wait = end.since(self.runtime.now());
        let reason = Mutex::default();
        let work = Box::pin(self.stand(lock, request, true, &reason));
        match select(work, pin!(self.holders_after(wait, end, lock))).await {
            Either::Left((result, _)) => result,
            Either::Right((holders, work)) => {
                // Whoever stands behind another waiter of this client waits for the same store.
                let line = self.cohorts.lock().reason_of(lock);
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
    ) -> Result<Option<Local>> {
        let leads = request.mode.lines_up();
        let mut in_line = false;
        let attempt = loop {
            let now = || self.runtime.now();
            let entry = self.cohorts.lock().enter(lock, &request, waits, now);
            let (number, turn) = match entry {
                Admission::Refused => return Ok(None),
                Admission::Lead => break None,
                Admission::Line { number, turn } => (number, turn),
            };
            if !std::mem::replace(&mut in_line, true) {
                self.events.emit(|| Event::waiting(lock.as_str()));
            }
            let mut place = LinePosition { core: self, lock, number, turn: Some(turn) };
            match place.turn().await? {
                LineMessage::Lead(attempt) => break attempt,
                LineMessage::Passed(local) if local.hold.is_held() || mutant!(LatePassAccepted) => {
                    self.events.emit(|| Event::granted(lock.as_str(), local.token));
                    return Ok(Some(local));
                }
                // Passed on in time, but looked at only after its end: that is no grant.
                LineMessage::Passed(local) => self.abandon(&local),
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
        let mut lead =
            Lead { core: self, lock, attempt: Some(attempt), reason, leads, installed: false };
        let hold = lead.attempt.as_mut().expect("the leader has an attempt").run().await;
        match hold {
            Ok(Some(hold)) => {
                lead.installed = true;
                Ok(Some(self.install(hold)))
            }
            Ok(None) => Ok(None),
            Err(error) => Err(error.with("name", lock.as_str())),
        }
    }

    /// A hold that was won is at the front now.
    pub(super) fn install(self: &Arc<Self>, hold: Arc<Hold>) -> Local {
        self.floors.saw(&hold.lock.key, hold.newest_token());
        let local = self.cohorts.lock().install(hold, self.runtime.now());
        let name = local.hold.lock.as_str();
        self.events.emit(|| Event::granted(name, local.token));
        // Lost before it was installed: nobody would clear the front later, and nobody was told.
        if local.hold.is_lost() {
            self.clear_front(&local.hold);
            self.tell_loss(&local.hold);
        }
        local
    }

    /// Nobody is at the front: the next in line leads, with the attempt under way if there is one; else it is cleaned up.
    pub(super) fn pass_leadership(self: &Arc<Self>, lock: &LockId, attempt: Option<Box<Attempt>>) {
        let mut turn = LineMessage::Lead(
            attempt.filter(|attempt| attempt.inheritable() && !mutant!(PlaceNotInherited)),
        );
        loop {
            let next = self.cohorts.lock().next_leader(lock);
            let Some(next) = next else { return };
            match next.tell(turn) {
                Ok(()) => return,
                Err(returned) => turn = returned,
            }
        }
    }
}

/// A place in line; leaving it passes on whatever came with the turn.
struct LinePosition<'a> {
    core: &'a Arc<Core>,
    lock: &'a LockId,
    number: u64,
    turn: Option<oneshot::Receiver<LineMessage>>,
}

impl LinePosition<'_> {
    async fn turn(&mut self) -> Result<LineMessage> {
        let turn = self.turn.as_mut().expect("a place has one turn").await;
        self.turn = None;
        turn.map_err(|_| Error::closed())
    }
}

impl Drop for LinePosition<'_> {
    fn drop(&mut self) {
        let Some(mut turn) = self.turn.take() else { return };
        self.core.cohorts.lock().leave(self.lock, self.number);
        turn.close();
        match turn.try_recv() {
            Ok(Some(LineMessage::Lead(attempt))) => self.core.pass_leadership(self.lock, attempt),
            Ok(Some(LineMessage::Passed(local))) => self.core.abandon(&local),
            Ok(None) | Err(_) => {}
        }
    }
}

/// The lead; dropping it passes the lead on.
struct Lead<'a> {
    core: &'a Arc<Core>,
    lock: &'a LockId,
    attempt: Option<Box<Attempt>>,
    reason: &'a Mutex<Option<Reason>>,
    /// Whether others may stand behind it. Readers and permits each ask for themselves.
    leads: bool,
    installed: bool,
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        if self.installed {
            return;
        }
        let attempt = self.attempt.take();
        *self.reason.lock() = attempt.as_ref().map(|attempt| attempt.reason.clone());
        if self.leads {
            self.core.pass_leadership(self.lock, attempt);
        }
    }
}
