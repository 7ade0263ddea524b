//! The waiters of one client for one lock: one of them stands for all on the store, and a hold passes on inside.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_channel::oneshot;

use super::hold::{Hold, Terms};
use super::lease::Attempt;
use super::reason::Reason;
use super::target::Target;
use crate::fence::Token;
use crate::port::limits::GRANT_TTL;
use crate::port::{Instant, Mode, OwnerId, WaiterView};

/// How long a hold may go round inside before others are served.
const PASSING_TIME: Duration = Duration::from_millis(10);

/// One guard's share of a hold. Its number is never used again.
#[derive(Clone)]
pub(crate) struct Local {
    pub hold: Arc<Hold>,
    pub number: u64,
    pub token: Token,
}

/// What a waiter in line is told.
pub(crate) enum Turn {
    /// Ask the store, for yourself and all behind you; an attempt under way comes with it.
    Lead(Option<Box<Attempt>>),
    /// The lock is yours.
    Passed(Local),
}

/// How an acquire begins.
pub(crate) enum Entry {
    /// Nobody is here: ask the store.
    Lead,
    /// Stand in line.
    Line { number: u64, turn: oneshot::Receiver<Turn> },
    /// Somebody is here, and the caller does not want to wait.
    Refused,
}

/// What the end of a local hold leads to.
pub(crate) enum Next {
    /// It went to the next in line.
    Passed,
    /// The hold ends; this waiter leads now.
    HandOver(Arc<Hold>, Waiting),
    /// The hold ends; nobody waits here.
    Free(Arc<Hold>),
    /// This local hold was not the present one.
    NotMine,
}

pub(crate) struct Waiting {
    number: u64,
    pub terms: Terms,
    since: Instant,
    turn: oneshot::Sender<Turn>,
}

impl Waiting {
    /// Tells the waiter; gives the message back if it has left.
    pub(crate) fn tell(self, turn: Turn) -> Result<(), Turn> {
        self.turn.send(turn)
    }
}

/// There may be a hundred thousand of them, at most of which nobody waits.
#[derive(Default)]
struct Cohort {
    line: Line,
    seat: Seat,
}

enum Seat {
    /// A waiter asks the store; why it does not have the lock yet.
    Leading(Reason),
    Held(Tenure),
}

impl Default for Seat {
    fn default() -> Self {
        Self::Leading(Reason::default())
    }
}

/// Those who wait behind.
#[derive(Default)]
#[expect(clippy::box_collection, reason = "a line nobody stands in is one word")]
struct Line(Option<Box<VecDeque<Waiting>>>);

impl Line {
    fn join(&mut self, waiting: Waiting) {
        self.0.get_or_insert_default().push_back(waiting);
    }

    fn next(&mut self) -> Option<Waiting> {
        self.0.as_mut()?.pop_front()
    }

    fn last(&mut self) -> Option<Waiting> {
        self.0.as_mut()?.pop_back()
    }

    fn all(&self) -> impl Iterator<Item = &Waiting> {
        self.0.iter().flat_map(|line| line.iter())
    }

    fn leave(&mut self, number: u64) {
        if let Some(line) = &mut self.0 {
            line.retain(|waiting| waiting.number != number);
        }
    }
}

/// The time one hold spends in this client.
struct Tenure {
    hold: Arc<Hold>,
    /// The local hold of the day.
    number: u64,
    passes: u32,
    since: Instant,
}

impl Tenure {
    /// Whether the hold may go on to a waiter with these terms: within its budget, and with enough left to be worth it.
    /// A fixed lease has to begin whole, so it is taken anew instead.
    fn may_pass(&self, terms: &Terms, now: Instant) -> bool {
        let budget = terms.local.min(self.hold.block - 1);
        let left = self.hold.deadline().since(now);
        let enough = left >= terms.ttl.min(GRANT_TTL) * 2 / 3 || mutant!(LostHoldPassedOn);
        let alive = !self.hold.is_lost() || mutant!(LostHoldPassedOn);
        let same = self.hold.renew && terms.renew && self.hold.open == terms.open
            || mutant!(PassesToOtherKinds);
        let within = self.passes < budget && now.since(self.since) < PASSING_TIME;
        (within || mutant!(LocalBudgetIgnored)) && enough && alive && same
    }
}

/// Whether those who want this stand in a line, and pass their hold on: whoever shares a lock asks for itself.
pub(super) fn lines_up(mode: Mode) -> bool {
    mode.is_exclusive() || mutant!(ReadersPassInside)
}

/// All cohorts of a client.
#[derive(Default)]
pub(crate) struct Cohorts {
    by_lock: BTreeMap<Target, Cohort>,
    numbers: u64,
}

impl Cohorts {
    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Somebody wants the lock. Who shares it with others asks the store for itself.
    pub(crate) fn enter(
        &mut self,
        lock: &Target,
        terms: &Terms,
        waits: bool,
        now: impl FnOnce() -> Instant,
    ) -> Entry {
        if !lines_up(terms.mode) {
            return Entry::Lead;
        }
        let number = self.number();
        let Some(cohort) = self.by_lock.get_mut(lock) else {
            self.by_lock.insert(lock.clone(), Cohort::default());
            return Entry::Lead;
        };
        if !waits && !mutant!(TryQueuesLocally) {
            return Entry::Refused;
        }
        let (sender, turn) = oneshot::channel();
        cohort.line.join(Waiting { number, terms: terms.clone(), since: now(), turn: sender });
        Entry::Line { number, turn }
    }

    /// The leader won.
    pub(crate) fn seat(&mut self, hold: Arc<Hold>, now: Instant) -> Local {
        let number = self.number();
        hold.serve(number);
        if !lines_up(hold.mode()) {
            return Local { token: hold.token, hold, number };
        }
        let cohort = self.by_lock.entry(hold.lock.clone()).or_default();
        cohort.seat = Seat::Held(Tenure { hold: hold.clone(), number, passes: 0, since: now });
        Local { token: hold.token, hold, number }
    }

    /// What the one who asks the store has learned.
    pub(crate) fn learn(&mut self, lock: &Target, reason: Reason) {
        if let Some(Cohort { seat: Seat::Leading(known), .. }) = self.by_lock.get_mut(lock) {
            *known = reason;
        }
    }

    /// Why those in line for this lock do not have it yet.
    pub(crate) fn reason_of(&self, lock: &Target) -> Option<Reason> {
        match &self.by_lock.get(lock)?.seat {
            Seat::Leading(reason) => Some(reason.clone()),
            Seat::Held(_) => Some(Reason::Held),
        }
    }

    /// Who stands in line for this lock, for people who look.
    pub(crate) fn in_line(&self, lock: &Target, now: Instant) -> Vec<WaiterView> {
        let view = |waiting: &Waiting| WaiterView {
            mode: waiting.terms.mode,
            info: waiting.terms.info.clone(),
            waiting_for: now.since(waiting.since),
        };
        self.by_lock
            .get(lock)
            .map(|cohort| cohort.line.all().map(view).collect())
            .unwrap_or_default()
    }

    /// A waiter left the line before its turn. What it was told meanwhile is its own affair.
    pub(crate) fn leave(&mut self, lock: &Target, number: u64) {
        if let Some(cohort) = self.by_lock.get_mut(lock) {
            cohort.line.leave(number);
        }
    }

    /// The leader gives up, or its seat fell vacant: the next in line leads, if there is one.
    pub(crate) fn next_leader(&mut self, lock: &Target) -> Option<Waiting> {
        let cohort = self.by_lock.get_mut(lock)?;
        if mutant!(LeaderForgetsFollowers) {
            cohort.seat = Seat::default();
            return None;
        }
        let next = cohort.line.next();
        if next.is_none() {
            self.by_lock.remove(lock);
        } else if let Seat::Held(_) = cohort.seat {
            cohort.seat = Seat::Leading(Reason::Held);
        }
        next
    }

    /// A hold was lost: it keeps its seat no longer. Whether it had it; then a leader is to be found.
    pub(crate) fn vacate(&mut self, lock: &Target, owner: OwnerId) -> bool {
        let Some(cohort) = self.by_lock.get_mut(lock) else { return false };
        let had = matches!(&cohort.seat, Seat::Held(tenure) if tenure.hold.owner == owner);
        if had {
            cohort.seat = Seat::default();
        }
        had
    }

    /// A local hold ends.
    pub(crate) fn give_up(&mut self, local: &Local, now: Instant) -> Next {
        if local.hold.stands_alone() {
            if !local.hold.serves(local.number) || local.hold.is_lost() {
                return Next::NotMine;
            }
            local.hold.serve(0);
            return Next::Free(local.hold.clone());
        }
        let lock = &local.hold.lock;
        let numbers = &mut self.numbers;
        let Some(cohort) = self.by_lock.get_mut(lock) else { return Next::NotMine };
        let Seat::Held(tenure) = &mut cohort.seat else { return Next::NotMine };
        if tenure.number != local.number && !mutant!(LateLocalDropFreesNext) {
            return Next::NotMine;
        }
        let next = |line: &mut Line| {
            if mutant!(LineServedFromTheBack) { line.last() } else { line.next() }
        };
        while let Some(waiting) = next(&mut cohort.line) {
            if !tenure.may_pass(&waiting.terms, now) {
                let hold = tenure.hold.clone();
                hold.serve(0);
                cohort.seat = Seat::default();
                return Next::HandOver(hold, waiting);
            }
            *numbers += 1;
            tenure.hold.set_terms(&waiting.terms, now);
            tenure.hold.serve(*numbers);
            let step = if mutant!(LocalTokenRepeats) { 0 } else { u64::from(tenure.passes) + 1 };
            let token = Token::new(tenure.hold.token.get() + step);
            let passed = Local { hold: tenure.hold.clone(), number: *numbers, token };
            if waiting.tell(Turn::Passed(passed)).is_ok() {
                tenure.passes += 1;
                tenure.number = *numbers;
                return Next::Passed;
            }
        }
        let hold = tenure.hold.clone();
        hold.serve(0);
        self.by_lock.remove(lock);
        Next::Free(hold)
    }

    /// Locks this client holds, asks for or waits for.
    pub(crate) fn len(&self) -> usize {
        self.by_lock.len()
    }
}
