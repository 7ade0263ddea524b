//! The waiters of one client for one lock: one of them stands for all on the store, and a hold passes on inside.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_channel::oneshot;

use super::hold::{Hold, Request};
use super::lock_id::LockId;
use super::reason::Reason;
use crate::fence::Token;
use crate::port::limits::GRANT_TTL;
use crate::port::{Instant, OwnerId, WaiterView};

/// How long a hold may go round inside before others are served.
const PASSING_TIME: Duration = Duration::from_millis(10);

/// One guard's share of a hold. Its number is never used again.
#[derive(Clone)]
pub(crate) struct Local {
    pub hold: Arc<Hold>,
    pub number: u64,
    pub token: Token,
}

/// A message to a waiter in line. `A` is an attempt at the lock.
pub(crate) enum LineMessage<A> {
    /// Ask the store, for yourself and all behind you; an attempt under way comes with it.
    Lead(Option<A>),
    /// The lock is yours.
    Passed(Local),
}

/// How an acquire begins.
pub(crate) enum Admission<A> {
    /// Nobody is here: ask the store.
    Lead,
    /// Stand in line.
    Line { number: u64, turn: oneshot::Receiver<LineMessage<A>> },
    /// Somebody is here, and the caller does not want to wait.
    Refused,
}

/// The consequence of the end of a local hold.
pub(crate) enum Next<A> {
    /// It went to the next in line.
    Passed,
    /// The hold ends; this waiter leads now.
    HandOver(Arc<Hold>, LineWaiter<A>),
    /// The hold ends; nobody waits here.
    Free(Arc<Hold>),
    /// This local hold was not the present one.
    NotMine,
}

pub(crate) struct LineWaiter<A> {
    number: u64,
    pub request: Request,
    since: Instant,
    turn: oneshot::Sender<LineMessage<A>>,
}

impl<A> LineWaiter<A> {
    /// Tells the waiter; gives the message back if it has left.
    pub(crate) fn tell(self, turn: LineMessage<A>) -> Result<(), LineMessage<A>> {
        self.turn.send(turn)
    }
}

/// There may be a hundred thousand of them, at most of which nobody waits.
struct Cohort<A> {
    line: Line<A>,
    front: Front,
}

enum Front {
    /// A waiter asks the store; why it does not have the lock yet.
    Leading(Reason),
    Held(Tenure),
}

impl<A> Default for Cohort<A> {
    fn default() -> Self {
        Self { line: Line(None), front: Front::default() }
    }
}

impl Default for Front {
    fn default() -> Self {
        Self::Leading(Reason::default())
    }
}

/// Those who wait behind.
#[expect(clippy::box_collection, reason = "a line nobody stands in is one word")]
struct Line<A>(Option<Box<VecDeque<LineWaiter<A>>>>);

impl<A> Line<A> {
    fn join(&mut self, waiting: LineWaiter<A>) {
        self.0.get_or_insert_default().push_back(waiting);
    }

    fn next(&mut self) -> Option<LineWaiter<A>> {
        self.0.as_mut()?.pop_front()
    }

    fn all(&self) -> impl Iterator<Item = &LineWaiter<A>> {
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
    /// The present local hold.
    number: u64,
    passes: u32,
    since: Instant,
}

impl Tenure {
    /// Whether the hold may go on to a waiter with this request: within its budget, and with enough left to be worth it.
    /// A fixed lease has to begin whole, so it is taken anew instead.
    fn may_pass(&self, request: &Request, now: Instant) -> bool {
        let budget = request.local.min(self.hold.block - 1);
        let left = self.hold.deadline().since(now);
        let enough = left >= request.ttl.min(GRANT_TTL) * 2 / 3;
        let alive = !self.hold.is_lost();
        let same = self.hold.renew && request.renew && self.hold.open == request.open;
        let new = now.since(self.since) < PASSING_TIME;
        let within = self.passes < budget && new;
        within && enough && alive && same
    }
}

/// All cohorts of a client.
pub(crate) struct Cohorts<A> {
    by_lock: BTreeMap<LockId, Cohort<A>>,
    numbers: u64,
}

impl<A> Default for Cohorts<A> {
    fn default() -> Self {
        Self { by_lock: BTreeMap::new(), numbers: 0 }
    }
}

impl<A> Cohorts<A> {
    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Somebody wants the lock. Who shares it with others asks the store for itself.
    pub(crate) fn enter(
        &mut self,
        lock: &LockId,
        request: &Request,
        waits: bool,
        now: impl FnOnce() -> Instant,
    ) -> Admission<A> {
        if !request.mode.is_exclusive() {
            return Admission::Lead;
        }
        let number = self.number();
        let Some(cohort) = self.by_lock.get_mut(lock) else {
            self.by_lock.insert(lock.clone(), Cohort::default());
            return Admission::Lead;
        };
        if !waits {
            return Admission::Refused;
        }
        let (sender, turn) = oneshot::channel();
        cohort.line.join(LineWaiter {
            number,
            request: request.clone(),
            since: now(),
            turn: sender,
        });
        Admission::Line { number, turn }
    }

    /// The leader won.
    pub(crate) fn install(&mut self, hold: Arc<Hold>, now: Instant) -> Local {
        let number = self.number();
        hold.serve(number);
        if !hold.mode.is_exclusive() {
            return Local { token: hold.token, hold, number };
        }
        let cohort = self.by_lock.entry(hold.lock.clone()).or_default();
        cohort.front = Front::Held(Tenure { hold: hold.clone(), number, passes: 0, since: now });
        Local { token: hold.token, hold, number }
    }

    /// Notes the newest reason why the waiter who asks the store does not have the lock.
    pub(crate) fn learn(&mut self, lock: &LockId, reason: Reason) {
        if let Some(Cohort { front: Front::Leading(known), .. }) = self.by_lock.get_mut(lock) {
            *known = reason;
        }
    }

    /// Why those in line for this lock do not have it yet.
    pub(crate) fn reason_of(&self, lock: &LockId) -> Option<Reason> {
        match &self.by_lock.get(lock)?.front {
            Front::Leading(reason) => Some(reason.clone()),
            Front::Held(_) => Some(Reason::Held),
        }
    }

    /// The waiters in line for this lock, for people who look.
    pub(crate) fn in_line(&self, lock: &LockId, now: Instant) -> Vec<WaiterView> {
        let view = |waiting: &LineWaiter<A>| WaiterView {
            mode: waiting.request.mode,
            info: waiting.request.info.clone(),
            waiting_for: now.since(waiting.since),
        };
        self.by_lock
            .get(lock)
            .map(|cohort| cohort.line.all().map(view).collect())
            .unwrap_or_default()
    }

    /// A waiter left the line before its turn. What it was told meanwhile is its own affair.
    pub(crate) fn leave(&mut self, lock: &LockId, number: u64) {
        if let Some(cohort) = self.by_lock.get_mut(lock) {
            cohort.line.leave(number);
        }
    }

    /// The leader gives up, or the lock is free: the next in line leads, if there is one.
    pub(crate) fn next_leader(&mut self, lock: &LockId) -> Option<LineWaiter<A>> {
        let cohort = self.by_lock.get_mut(lock)?;
        let next = cohort.line.next();
        if next.is_none() {
            self.by_lock.remove(lock);
        } else if let Front::Held(_) = cohort.front {
            cohort.front = Front::Leading(Reason::Held);
        }
        next
    }

    /// A hold was lost: it is at the front no longer. Whether it was; then a leader is to be found.
    pub(crate) fn clear_front(&mut self, lock: &LockId, owner: OwnerId) -> bool {
        let Some(cohort) = self.by_lock.get_mut(lock) else { return false };
        let had = matches!(&cohort.front, Front::Held(tenure) if tenure.hold.owner == owner);
        if had {
            cohort.front = Front::default();
        }
        had
    }

    /// A hold that was passed on was lost before its guard was made. If it is at the front, its waiter leads from now on: true.
    pub(crate) fn leads_after(&mut self, local: &Local) -> bool {
        let Some(cohort) = self.by_lock.get_mut(&local.hold.lock) else { return false };
        let first = matches!(&cohort.front, Front::Held(tenure) if tenure.number == local.number);
        if first {
            cohort.front = Front::default();
        }
        first
    }

    /// A local hold ends.
    pub(crate) fn give_up(&mut self, local: &Local, now: Instant) -> Next<A> {
        if !local.hold.mode.is_exclusive() {
            if !local.hold.serves(local.number) || local.hold.is_lost() {
                return Next::NotMine;
            }
            local.hold.serve(0);
            return Next::Free(local.hold.clone());
        }
        let lock = &local.hold.lock;
        let numbers = &mut self.numbers;
        let Some(cohort) = self.by_lock.get_mut(lock) else { return Next::NotMine };
        let Front::Held(tenure) = &mut cohort.front else { return Next::NotMine };
        if tenure.number != local.number {
            return Next::NotMine;
        }
        while let Some(waiting) = cohort.line.next() {
            if !tenure.may_pass(&waiting.request, now) {
                let hold = tenure.hold.clone();
                hold.serve(0);
                cohort.front = Front::default();
                return Next::HandOver(hold, waiting);
            }
            *numbers += 1;
            tenure.hold.set_request(&waiting.request, now);
            // It serves the next one from when that looks.
            tenure.hold.serve(0);
            let step = u64::from(tenure.passes) + 1;
            let token = Token::new(tenure.hold.token.get() + step);
            let passed = Local { hold: tenure.hold.clone(), number: *numbers, token };
            if waiting.tell(LineMessage::Passed(passed)).is_ok() {
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

#[cfg(all(test, feature = "tokio"))]
mod tests {
    use super::*;
    use crate::algorithm::hold::Tokens;
    use crate::port::{Kind, LockKey, RuntimeHandle};
    use crate::runtime::TokioRuntime;

    /// The line needs no store: an attempt can be a number.
    #[tokio::test]
    async fn a_hold_passes_along_the_line_and_then_the_next_waiter_leads() {
        let runtime: RuntimeHandle = Arc::new(TokioRuntime::current().expect("tokio runs"));
        let now = runtime.now();
        let lock = LockId { key: LockKey::new("orders"), kind: Kind::Mutex };
        let request = Request::of_a_mutex(1);
        let mut cohorts = Cohorts::<u32>::default();
        assert!(matches!(cohorts.enter(&lock, &request, true, || now), Admission::Lead));
        let mut turns: Vec<_> = (0..3)
            .map(|_| match cohorts.enter(&lock, &request, true, || now) {
                Admission::Line { number, turn } => (number, turn),
                Admission::Lead | Admission::Refused => panic!("somebody leads already"),
            })
            .collect();
        // The first one leaves before its turn.
        let (left, _) = turns.remove(0);
        cohorts.leave(&lock, left);

        let tokens = Tokens { first: Token::new(7), count: request.block() };
        let deadline = now + request.ttl;
        let owner = OwnerId::draw(&*runtime);
        let hold = Hold::new(lock.clone(), owner, tokens, &request, deadline, &runtime);
        let first = cohorts.install(Arc::new(hold), now);
        assert!(matches!(cohorts.give_up(&first, now), Next::Passed));
        let (_, mut turn) = turns.remove(0);
        let Ok(Some(LineMessage::Passed(second))) = turn.try_recv() else {
            panic!("the second in line has the hold");
        };
        assert_eq!(second.token.get(), 8);
        // The hold has passed as often as it may: whoever is next asks the store.
        let Next::HandOver(_, waiter) = cohorts.give_up(&second, now) else {
            panic!("the hold ends");
        };
        assert!(waiter.tell(LineMessage::Lead(Some(5))).is_ok());
        let (_, mut turn) = turns.remove(0);
        assert!(matches!(turn.try_recv(), Ok(Some(LineMessage::Lead(Some(5))))));
    }
}
