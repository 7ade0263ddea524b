//! The waiters of one client for one lock: one of them asks the store for all, and a hold passes on inside.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_channel::oneshot;

use super::attempt::Attempt;
use super::hold::Hold;
use super::reason::Reason;
use super::request::{LockId, Request};
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

/// A message to a waiter in line.
pub(super) enum Turn {
    /// Ask the store, for yourself and all behind you; an attempt under way comes with it.
    Lead(Option<Box<Attempt>>),
    /// The lock is yours.
    Passed(Local),
}

/// How an acquire begins.
pub(super) enum Entered {
    /// Nobody is here: ask the store.
    Leading,
    /// Wait in line.
    InLine { number: u64, turn: oneshot::Receiver<Turn> },
    /// Somebody is here, and the caller does not want to wait.
    Refused,
}

/// The consequence of the end of a local hold.
pub(super) enum Next {
    /// It went to the next in line.
    Passed,
    /// The hold ends; this waiter leads now.
    HandOver(Arc<Hold>, LineWaiter),
    /// The hold ends; nobody waits here.
    Free(Arc<Hold>),
    /// This local hold was not the present one.
    NotMine,
}

pub(super) struct LineWaiter {
    number: u64,
    pub request: Request,
    since: Instant,
    turn: oneshot::Sender<Turn>,
}

impl LineWaiter {
    /// Sends the waiter its turn, and gives it back if the waiter has left.
    pub(super) fn send(self, turn: Turn) -> Result<(), Turn> {
        self.turn.send(turn)
    }
}

#[derive(Default)]
struct Line {
    front: Front,
    waiters: VecDeque<LineWaiter>,
}

enum Front {
    /// A waiter asks the store; why it does not have the lock yet.
    Leading(Reason),
    Held(Present),
}

impl Default for Front {
    fn default() -> Self {
        Self::Leading(Reason::default())
    }
}

/// The hold at the front of a line.
struct Present {
    hold: Arc<Hold>,
    /// The present local hold.
    number: u64,
    passes: u32,
    since: Instant,
}

impl Present {
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

/// The lines of a client. Shared locks and permits have none: each of them asks the store for itself.
#[derive(Default)]
pub(super) struct Lines {
    by_lock: BTreeMap<LockId, Line>,
    numbers: u64,
}

impl Lines {
    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// An acquire begins.
    pub(super) fn enter(
        &mut self,
        lock: &LockId,
        request: &Request,
        waits: bool,
        now: impl FnOnce() -> Instant,
    ) -> Entered {
        if !request.has_line() {
            return Entered::Leading;
        }
        let number = self.number();
        let Some(line) = self.by_lock.get_mut(lock) else {
            self.by_lock.insert(lock.clone(), Line::default());
            return Entered::Leading;
        };
        if !waits {
            return Entered::Refused;
        }
        let (sender, turn) = oneshot::channel();
        let (request, since) = (request.clone(), now());
        line.waiters.push_back(LineWaiter { number, request, since, turn: sender });
        Entered::InLine { number, turn }
    }

    /// The leader won.
    pub(super) fn install(&mut self, hold: Arc<Hold>, now: Instant) -> Local {
        let number = self.number();
        hold.serve(number);
        if hold.has_line() {
            let line = self.by_lock.entry(hold.lock.clone()).or_default();
            line.front = Front::Held(Present { hold: hold.clone(), number, passes: 0, since: now });
        }
        Local { token: hold.token, hold, number }
    }

    /// Notes the newest reason why the waiter who asks the store does not have the lock.
    pub(super) fn learn(&mut self, lock: &LockId, reason: Reason) {
        if let Some(Line { front: Front::Leading(known), .. }) = self.by_lock.get_mut(lock) {
            *known = reason;
        }
    }

    /// Why the waiters for this lock do not have it yet.
    pub(super) fn reason_of(&self, lock: &LockId) -> Option<Reason> {
        match &self.by_lock.get(lock)?.front {
            Front::Leading(reason) => Some(reason.clone()),
            Front::Held(_) => Some(Reason::Held),
        }
    }

    /// The waiters for this lock, for people who look.
    pub(super) fn waiters(&self, lock: &LockId, now: Instant) -> Vec<WaiterView> {
        let view = |waiter: &LineWaiter| WaiterView {
            mode: waiter.request.mode,
            info: waiter.request.info.clone(),
            waiting_for: now.since(waiter.since),
        };
        self.by_lock
            .get(lock)
            .map(|line| line.waiters.iter().map(view).collect())
            .unwrap_or_default()
    }

    /// A waiter leaves before its turn. If it was sent a turn meanwhile, it passes that on itself.
    pub(super) fn leave(&mut self, lock: &LockId, number: u64) {
        if let Some(line) = self.by_lock.get_mut(lock) {
            line.waiters.retain(|waiter| waiter.number != number);
        }
    }

    /// The leader gives up, or the lock is free: the next in line leads, if there is one.
    pub(super) fn next_leader(&mut self, lock: &LockId) -> Option<LineWaiter> {
        let line = self.by_lock.get_mut(lock)?;
        let next = line.waiters.pop_front();
        if next.is_none() {
            self.by_lock.remove(lock);
        } else if let Front::Held(_) = line.front {
            line.front = Front::Leading(Reason::Held);
        }
        next
    }

    /// A hold was lost: it is at the front no longer. True if it was, so that a leader is to be found.
    pub(super) fn clear_front(&mut self, lock: &LockId, owner: OwnerId) -> bool {
        self.clear_front_if(lock, |present| present.hold.owner == owner)
    }

    /// A hold that was passed on was lost before its guard was made. True if it is at the front: then its waiter leads from now on.
    pub(super) fn leads_after(&mut self, local: &Local) -> bool {
        self.clear_front_if(&local.hold.lock, |present| present.number == local.number)
    }

    fn clear_front_if(&mut self, lock: &LockId, lost: impl FnOnce(&Present) -> bool) -> bool {
        let Some(line) = self.by_lock.get_mut(lock) else { return false };
        let had = matches!(&line.front, Front::Held(present) if lost(present));
        if had {
            line.front = Front::default();
        }
        had
    }

    /// A local hold ends.
    pub(super) fn give_up(&mut self, local: &Local, now: Instant) -> Next {
        if !local.hold.has_line() {
            if !local.hold.serves(local.number) || local.hold.is_lost() {
                return Next::NotMine;
            }
            local.hold.serve(0);
            return Next::Free(local.hold.clone());
        }
        let lock = &local.hold.lock;
        let numbers = &mut self.numbers;
        let Some(line) = self.by_lock.get_mut(lock) else { return Next::NotMine };
        let Front::Held(present) = &mut line.front else { return Next::NotMine };
        if present.number != local.number {
            return Next::NotMine;
        }
        while let Some(waiter) = line.waiters.pop_front() {
            if !present.may_pass(&waiter.request, now) {
                let hold = present.hold.clone();
                hold.serve(0);
                line.front = Front::default();
                return Next::HandOver(hold, waiter);
            }
            *numbers += 1;
            present.hold.set_request(&waiter.request, now);
            // It serves the next one from when that looks.
            present.hold.serve(0);
            let step = u64::from(present.passes) + 1;
            let token = Token::new(present.hold.token.get() + step);
            let passed = Local { hold: present.hold.clone(), number: *numbers, token };
            if waiter.send(Turn::Passed(passed)).is_ok() {
                present.passes += 1;
                present.number = *numbers;
                return Next::Passed;
            }
        }
        let hold = present.hold.clone();
        hold.serve(0);
        self.by_lock.remove(lock);
        Next::Free(hold)
    }

    /// Locks this client holds, asks for or waits for.
    pub(super) fn len(&self) -> usize {
        self.by_lock.len()
    }
}
