//! Acquires a lock: joins this client's local line; its head asks the store; a waiter that leaves promotes the next one.
//! The parameters are a [`Request`].

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::{Either, select};
use scopeguard::{ScopeGuard, guard};

use super::Engine;
use super::attempt::Attempt;
use super::hold::Hold;
use super::line::{Entered, Local, Turn};
use super::reason::Reason;
use super::reason::shown;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::fence::Token;
use crate::port::{Action, Instant, Kind, LockKey, Mode, OwnerId, Runtime, Step, Take};
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
            let told = (&mut *in_place).await;
            drop(ScopeGuard::into_inner(in_place));
            match told.map_err(|_| Error::closed())? {
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
            self.report_loss(&local.hold);
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

/// A number for an acquire, and when it began, for the events it causes.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub attempt: u64,
    pub since: Instant,
}

/// The beginning of the key of a job's lock. No user's name begins so.
const JOB: &str = "fencelock:job:";

/// A lock on the store, and what it is used as. Waiters and holds of one client meet under it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LockId {
    pub key: LockKey,
    pub kind: Kind,
}

impl LockId {
    /// The lock that a run of this job holds.
    pub(crate) fn of_job(name: &str) -> Self {
        Self { key: LockKey::new([JOB, name].concat()), kind: Kind::Mutex }
    }

    /// The name that people know it by: of a job's lock, the job's.
    pub(crate) fn name(&self) -> &str {
        self.as_str().strip_prefix(JOB).unwrap_or(self.as_str())
    }

    /// The key as text.
    pub(crate) fn as_str(&self) -> &str {
        self.key.as_str()
    }

    /// A step of one attempt.
    pub(crate) fn step(&self, owner: OwnerId, action: Action) -> Step {
        Step { lock: self.key.clone(), owner, kind: self.kind, action }
    }
}

/// The parameters of an acquire, apart from how long it waits.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// How to hold it.
    pub mode: Mode,
    /// Of how many permits.
    pub limit: u32,
    /// How many of them.
    pub permits: u32,
    /// The lease wanted.
    pub ttl: Duration,
    /// Whether the lease is renewed.
    pub renew: bool,
    /// The longest it may be held.
    pub max_hold: Option<Duration>,
    /// Leave the lock open at the end instead of handing it over (`fair: false`).
    pub open: bool,
    /// How often the hold may pass on inside this client.
    pub local: u32,
    /// The information about the client that asks, as JSON.
    pub info: Arc<str>,
    /// Whether it goes on with a hold of another client. Such a one does not stand in this client's line: others may stand there.
    pub adopts: bool,
}

impl Request {
    /// The Take that asks the store for it.
    pub(crate) fn take(&self, wait: bool, floor: Token) -> Take {
        let Self { mode, limit, permits, ttl, ref info, .. } = *self;
        let (block, info) = (self.block(), info.clone());
        Take { mode, limit, permits, ttl, wait, block, floor, info, vote: None }
    }

    /// Whether it stands in the line of its client for the lock.
    pub(crate) fn has_line(&self) -> bool {
        self.mode.is_exclusive() && !self.adopts
    }

    /// Tokens to draw with a grant: one for every local holder.
    pub(crate) fn block(&self) -> u32 {
        if self.renew && self.mode.is_exclusive() { self.local + 1 } else { 1 }
    }
}

#[cfg(test)]
impl Request {
    /// A mutex that is renewed, for tests.
    pub(super) fn of_a_mutex(local: u32) -> Self {
        Self {
            mode: Mode::Exclusive,
            limit: 1,
            permits: 1,
            ttl: Duration::from_secs(30),
            renew: true,
            max_hold: None,
            open: false,
            local,
            info: "{}".into(),
            adopts: false,
        }
    }
}

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
