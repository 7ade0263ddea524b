//! The algorithms: straight-line async functions over the doors. No driver, no clock, no executor in sight.

mod cohort;
mod floors;
mod hold;
mod lease;
mod renew;
mod undo;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::{Either, select};

pub(crate) use cohort::Local;
use cohort::{Cohorts, Entry, Next, Turn};
use floors::Floors;
use hold::Hold;
pub(crate) use hold::Terms;
use lease::{Attempt, Prelude};
use renew::Wheel;
use undo::{Undo, UndoSender};

use crate::error::{Code, Error, Result};
use crate::event::{Event, Events};
use crate::guard::Released;
use crate::port::{
    Action, Answer, Instant, LeaseHandle, LockKey, Outcome, OwnerId, RuntimeHandle, Step,
};
use crate::runtime::sync::Mutex;

/// How long an acquire waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Not at all.
    Try,
    Until(Instant),
    Forever,
}

/// Everything the holds, tickets and waiters of one client share.
pub(crate) struct Core {
    pub store: LeaseHandle,
    pub runtime: RuntimeHandle,
    pub events: Events,
    wheel: Arc<Wheel>,
    cohorts: Mutex<Cohorts>,
    undo: UndoSender,
    floors: Floors,
    closed: AtomicBool,
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
            undo,
            floors: Floors::default(),
            closed: AtomicBool::new(false),
        });
        let listener = Arc::downgrade(&wheel);
        let sink = move |notice| {
            if let Some(wheel) = listener.upgrade() {
                wheel.notice(&notice);
            }
        };
        store.listen(Arc::new(sink)).await?;
        runtime.spawn(Box::pin(undo::housekeeping(inbox, store, runtime.clone())));
        let weak = Arc::downgrade(&core);
        runtime.spawn(Box::pin(async move {
            while !wheel.rest().await {
                let Some(core) = weak.upgrade() else { return };
                core.tick();
            }
        }));
        Ok(core)
    }

    /// One tick of the wheel: what is due goes out in one batch, beside the wheel, so that a stalled store stalls nothing.
    fn tick(self: &Arc<Self>) {
        let work = self.wheel.collect();
        for hold in work.lost {
            self.lose(&hold, false);
        }
        if work.steps.is_empty() {
            return;
        }
        let sent = self.runtime.now();
        let owners: Vec<OwnerId> = work.steps.iter().map(|step| step.owner).collect();
        let answers = self.store.step(work.steps);
        let core = Arc::downgrade(self);
        self.runtime.spawn(Box::pin(async move {
            let answers = answers.await;
            let Some(core) = core.upgrade() else { return };
            for (owner, answer) in owners.into_iter().zip(&answers) {
                core.answered(owner, sent, answer);
            }
        }));
    }

    fn answered(self: &Arc<Self>, owner: OwnerId, sent: Instant, answer: &Answer) {
        if let Some(hold) = self.wheel.answered(owner, sent, answer) {
            self.lose(&hold, true);
        }
    }

    /// Ends a hold's claim: tells its guard, and whoever waits here asks the store itself.
    fn lose(self: &Arc<Self>, hold: &Arc<Hold>, gone: bool) {
        self.wheel.remove(hold.owner);
        if !hold.lose(gone) {
            return;
        }
        self.events.emit(|| Event::lost(hold.key.as_str(), hold.token));
        self.vacate(hold);
    }

    /// A lost hold keeps no seat: whoever waits here does not wait for its guard.
    fn vacate(self: &Arc<Self>, hold: &Hold) {
        let had_seat = self.cohorts.lock().vacate(&hold.key, hold.owner);
        if had_seat {
            self.pass_leadership(&hold.key, None);
        }
    }

    /// Gets the lock, or `None` if the caller does not wait and it is not free.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        key: &LockKey,
        terms: Terms,
        wait: Wait,
    ) -> Result<Option<Local>> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::closed());
        }
        let Wait::Until(end) = wait else {
            return self.stand(key, terms, wait != Wait::Try, &Mutex::default()).await;
        };
        let failure = Mutex::default();
        let work = Box::pin(self.stand(key, terms, true, &failure));
        match select(work, self.runtime.sleep_until(end)).await {
            Either::Left((result, _)) => result,
            Either::Right(((), work)) => {
                drop(work);
                Err(failure.lock().take().unwrap_or_else(|| {
                    Error::new(
                        Code::Timeout,
                        "the lock was not granted within the wait; it is held by somebody else",
                    )
                }))
            }
        }
    }

    /// Stands in line, leads when it is its turn. `failure` is why the store did not answer last, for whoever cuts it short.
    async fn stand(
        self: &Arc<Self>,
        key: &LockKey,
        terms: Terms,
        waits: bool,
        failure: &Mutex<Option<Error>>,
    ) -> Result<Option<Local>> {
        let entry = self.cohorts.lock().enter(key, &terms, waits);
        let attempt = match entry {
            Entry::Refused => return Ok(None),
            Entry::Lead => None,
            Entry::Line { number, turn } => {
                self.events.emit(|| Event::waiting(key.as_str()));
                let mut place = Place { core: self, key, number, turn: Some(turn) };
                match place.turn().await? {
                    Turn::Passed(local) => return Ok(Some(local)),
                    Turn::Lead(attempt) => attempt,
                }
            }
        };
        let attempt = match attempt {
            Some(mut attempt) => {
                attempt.pass_to(terms);
                attempt
            }
            None => Attempt::new(self.clone(), key.clone(), terms, waits, None),
        };
        let mut lead = Lead { core: self, key, attempt: Some(attempt), failure, seated: false };
        let hold = lead.attempt.as_mut().expect("the leader has an attempt").run().await;
        match hold {
            Ok(Some(hold)) => {
                lead.seated = true;
                let local = self.cohorts.lock().seat(hold.clone(), self.runtime.now());
                // Lost before it was seated: nobody would vacate the seat later.
                if hold.is_lost() {
                    self.vacate(&hold);
                }
                self.events.emit(|| Event::granted(key.as_str(), local.token));
                Ok(Some(local))
            }
            Ok(None) => Ok(None),
            Err(error) => Err(error.with("name", key.as_str())),
        }
    }

    /// The seat is vacant: the next in line leads, with the attempt under way if there is one; else it is undone.
    fn pass_leadership(self: &Arc<Self>, key: &LockKey, attempt: Option<Attempt>) {
        let mut turn = Turn::Lead(attempt.filter(Attempt::inheritable));
        loop {
            let next = self.cohorts.lock().next_leader(key);
            let Some(next) = next else { return };
            match next.tell(turn) {
                Ok(()) => return,
                Err(returned) => turn = returned,
            }
        }
    }

    /// Gives a local hold up. Everything that must happen has been set off when this returns.
    pub(crate) fn give_up(self: &Arc<Self>, local: &Local) -> GivenUp {
        let now = self.runtime.now();
        if !local.hold.is_held() && !mutant!(LostHoldPassedOn) {
            self.lose(&local.hold, false);
        }
        let next = self.cohorts.lock().give_up(local, now);
        match next {
            Next::Passed => {
                if local.hold.cap() != Instant::FAR {
                    self.wheel.reschedule(&local.hold);
                }
                GivenUp::Passed
            }
            Next::Free(hold) => {
                self.retire(&hold);
                GivenUp::Free(hold)
            }
            Next::HandOver(hold, waiting) => {
                self.retire(&hold);
                let (reply, answer) = oneshot::channel();
                let prelude = self.prelude(&hold, Some(reply));
                let (key, terms) = (hold.key.clone(), waiting.terms.clone());
                let attempt = Attempt::new(self.clone(), key.clone(), terms, true, Some(prelude));
                if let Err(Turn::Lead(attempt)) = waiting.tell(Turn::Lead(Some(attempt))) {
                    self.pass_leadership(&key, attempt);
                }
                GivenUp::HandedOver(answer)
            }
            Next::NotMine => {
                let hold = &local.hold;
                if hold.is_lost() && !hold.is_gone() {
                    // The claim ended by the clock; the store may still keep the lease of an unanswered renewal.
                    self.free_later(&hold.key, self.prelude(hold, None));
                }
                GivenUp::NotMine
            }
        }
    }

    fn retire(&self, hold: &Hold) {
        if !mutant!(RenewAfterRelease) {
            self.wheel.remove(hold.owner);
        }
    }

    fn prelude(&self, hold: &Hold, reply: Option<oneshot::Sender<Released>>) -> Prelude {
        let until = self.runtime.now() + hold.ttl();
        Prelude { owner: hold.owner, open: hold.open, until, reply }
    }

    /// Frees a hold by the housekeeping.
    pub(crate) fn free_later(&self, key: &LockKey, free: Prelude) {
        let Prelude { owner, open, until, reply } = free;
        self.undo.send(Undo {
            lock: key.clone(),
            owner,
            action: Action::Free { open },
            until,
            reply,
        });
    }

    /// Frees a hold now; if the caller does not stay for the answer, the housekeeping sees to it.
    pub(crate) async fn free(self: &Arc<Self>, hold: Arc<Hold>) -> Released {
        let mut freeing = Freeing { core: self, hold: &hold, confirmed: false };
        let action = Action::Free { open: hold.open };
        let step = Step { lock: hold.key.clone(), owner: hold.owner, action };
        let answer = self.store.step(vec![step]).await.pop();
        match answer {
            Some(Ok(outcome)) => {
                freeing.confirmed = true;
                undo::released(&outcome)
            }
            Some(Err(_)) | None => Released::Unconfirmed,
        }
    }

    /// Pushes the end of a hold to at least now + `ttl`, which is its lease from now on.
    pub(crate) async fn extend(self: &Arc<Self>, hold: &Arc<Hold>, ttl: Duration) -> Result<()> {
        let lost = || {
            Error::new(Code::Lost, "the lock was lost before it could be extended")
                .with("name", hold.key.as_str())
        };
        if !hold.is_held() {
            return Err(lost());
        }
        hold.set_ttl(ttl);
        let sent = self.runtime.now();
        let step =
            Step { lock: hold.key.clone(), owner: hold.owner, action: Action::Renew { ttl } };
        match self.store.step(vec![step]).await.pop() {
            Some(Ok(Outcome::Granted { left, .. })) => {
                let stands = hold.prolong(sent, left, self.runtime.now());
                self.wheel.reschedule(hold);
                if stands { Ok(()) } else { Err(lost()) }
            }
            Some(Ok(_)) => {
                self.lose(hold, true);
                Err(lost())
            }
            Some(Err(failure)) => Err(failure.error.with("name", hold.key.as_str())),
            None => Err(Error::internal("the store gave no answer")),
        }
    }

    /// Completes when the claim of `hold` has ended.
    pub(crate) async fn lost(&self, hold: &Hold) {
        loop {
            let signal = hold.on_lost();
            if !hold.is_held() {
                return;
            }
            // Both, so that the signal needs neither the network nor the wheel.
            select(signal, self.runtime.sleep_until(hold.deadline())).await;
        }
    }

    /// Refuses new work and waits until what was given up is settled on the store.
    pub(crate) async fn close(&self, patience: Duration) {
        self.closed.store(true, Ordering::Release);
        let end = self.runtime.now() + patience;
        select(Box::pin(self.undo.flush()), self.runtime.sleep_until(end)).await;
        self.wheel.close();
        self.store.close().await;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// How many attempts, tickets and holds the wheel carries, and how many locks have a cohort: both 0 at rest.
    pub(crate) fn load(&self) -> (usize, usize) {
        (self.wheel.len(), self.cohorts.lock().len())
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.wheel.close();
    }
}

/// What became of a hold that was given up.
pub(crate) enum GivenUp {
    /// The next one inside has it.
    Passed,
    /// It is freed in one batch with the next one's Take; the answer comes here.
    HandedOver(oneshot::Receiver<Released>),
    /// It has to be freed.
    Free(Arc<Hold>),
    /// It was lost, or given up before.
    NotMine,
}

/// A Free under way.
struct Freeing<'a> {
    core: &'a Arc<Core>,
    hold: &'a Hold,
    confirmed: bool,
}

impl Drop for Freeing<'_> {
    fn drop(&mut self) {
        if !self.confirmed && !mutant!(CancelForgets) {
            self.core.free_later(&self.hold.key, self.core.prelude(self.hold, None));
        }
    }
}

/// A place in line; leaving it passes on whatever came with the turn.
struct Place<'a> {
    core: &'a Arc<Core>,
    key: &'a LockKey,
    number: u64,
    turn: Option<oneshot::Receiver<Turn>>,
}

impl Place<'_> {
    async fn turn(&mut self) -> Result<Turn> {
        let turn = self.turn.as_mut().expect("a place has one turn").await;
        self.turn = None;
        turn.map_err(|_| Error::closed())
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let Some(mut turn) = self.turn.take() else { return };
        self.core.cohorts.lock().leave(self.key, self.number);
        turn.close();
        match turn.try_recv() {
            Ok(Some(Turn::Lead(attempt))) => self.core.pass_leadership(self.key, attempt),
            Ok(Some(Turn::Passed(local))) => self.core.abandon(&local),
            Ok(None) | Err(_) => {}
        }
    }
}

impl Core {
    /// Gives a local hold up without staying for the answer.
    pub(crate) fn abandon(self: &Arc<Self>, local: &Local) {
        if let GivenUp::Free(hold) = self.give_up(local)
            && !mutant!(CancelForgets)
        {
            self.free_later(&hold.key, self.prelude(&hold, None));
        }
    }
}

/// The leader's seat; dropping it passes the lead on.
struct Lead<'a> {
    core: &'a Arc<Core>,
    key: &'a LockKey,
    attempt: Option<Attempt>,
    failure: &'a Mutex<Option<Error>>,
    seated: bool,
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        if self.seated {
            return;
        }
        let attempt = self.attempt.take();
        *self.failure.lock() = attempt.as_ref().and_then(|attempt| attempt.failure.clone());
        self.core.pass_leadership(self.key, attempt);
    }
}
