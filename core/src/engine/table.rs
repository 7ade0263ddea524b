//! The locks of one client, as a state machine without I/O: the local lines, every attempt and hold, and when each is looked at next. The engine
//! locks it for one event at a time, and carries out what it answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use slab::Slab;

use super::due::{DueQueue, Entry, Stage, aligned, next_look, renewal_rest, ticket_rest};
use super::hold::{Hold, Pending, Progress, Push, TicketEnd, Tokens, believed, deadline};
use super::line::{Lines, Local};
use super::request::{LockId, Request};
use crate::error::Code;
use crate::fence::Token;
use crate::port::limits::GRANT_TTL;
use crate::port::{
    Action, Answer, Instant, LockKey, Notice, Outcome, OwnerId, RuntimeHandle, Step,
};

/// Room for so many entries is kept when there are none.
const KEPT: usize = 1024;
/// The most steps that go out at once, as far as leases are long enough to wait: a store answers so many in some 10 ms. Other requests of
/// this client then need not wait longer, and a hundred thousand leases do not need room for as many requests and answers.
const BATCH: usize = 1200;
/// A batch that large is waited for before the next one goes out; but not longer than this, since one store of many may not answer.
const PACE: Duration = Duration::from_millis(100);
/// A Refresh or Renew without an answer is sent again after so many rests. A store that is slow is not asked meanwhile: each request would slow it
/// further.
const UNANSWERED_RESTS: u32 = 3;

/// The locks of one client: its lines, attempts and holds.
pub(super) struct Table {
    /// The waiters of this client for each lock.
    pub lines: Lines,
    entries: Slab<Entry>,
    slots: BTreeMap<OwnerId, usize>,
    pub due: DueQueue,
    floors: Floors,
    /// Whether the client closes: nothing is asked for or granted any more.
    pub closed: bool,
    runtime: RuntimeHandle,
}

/// A ticket that nobody waits for when the client is closed.
pub(super) struct Abandoned {
    pub lock: LockId,
    pub owner: OwnerId,
    /// The lease it wanted.
    pub ttl: Duration,
}

/// The work that is due now.
#[derive(Default)]
pub(super) struct Work {
    /// One batch.
    pub steps: Vec<Step>,
    /// The slot of each step's entry.
    pub slots: Vec<usize>,
    /// Holds whose claim ended by the clock.
    pub lost: Vec<Arc<Hold>>,
    /// Whether more may be due: [`Table::go_on`] once this is answered.
    pub more: bool,
}

/// The effect of an answer on a hold.
pub(super) enum Renewal {
    Lost(Arc<Hold>),
    Renewed(Arc<Hold>),
    /// When so little of the lease was left that it was in danger.
    Late(Arc<Hold>, Duration),
}

impl Table {
    pub(super) fn new(runtime: RuntimeHandle) -> Self {
        Self {
            lines: Lines::default(),
            entries: Slab::new(),
            slots: BTreeMap::new(),
            due: DueQueue::default(),
            floors: Floors::default(),
            closed: false,
            runtime,
        }
    }

    /// An attempt is about to ask: from now on a push for it is kept. Answers the highest token seen of the lock. `None`: the client closes, so
    /// nobody would take back what is won now.
    pub(super) fn ask(
        &mut self,
        owner: OwnerId,
        lock: &LockId,
        request: &Request,
        now: Instant,
    ) -> Option<Token> {
        if self.closed {
            return None;
        }
        let entry = Entry::new(Pending::new(owner, lock.clone(), request.clone(), now));
        self.slots.insert(owner, self.entries.insert(entry));
        Some(self.floor(&lock.key))
    }

    /// Forgets an attempt or a hold, whatever its stage. Whatever may lie on the store in its name is somebody else's task by now.
    pub(super) fn forget(&mut self, owner: OwnerId) {
        let Some(slot) = self.slots.remove(&owner) else { return };
        self.due.forget(&mut self.entries, slot);
        self.entries.remove(slot);
        if self.entries.is_empty() && self.entries.capacity() > KEPT {
            self.entries = Slab::new();
        }
    }

    fn stage(&mut self, owner: OwnerId) -> Option<&mut Stage> {
        self.slots.get(&owner).map(|slot| &mut self.entries[*slot].stage)
    }

    /// The attempt of this owner, if it is one.
    fn pending(&mut self, owner: OwnerId) -> Option<&mut Pending> {
        match self.stage(owner)? {
            Stage::Pending(pending) => Some(pending),
            Stage::Held(_) => None,
        }
    }

    fn look_at(&mut self, owner: OwnerId, due: Instant) {
        if let Some(slot) = self.slots.get(&owner) {
            self.due.set(&mut self.entries, *slot, due);
        }
    }

    /// Until when the store may keep what was asked for in this owner's name.
    pub(super) fn furthest(&mut self, owner: OwnerId) -> Instant {
        match self.stage(owner) {
            Some(Stage::Held(hold)) => hold.furthest(),
            Some(Stage::Pending(pending)) => pending.asked,
            None => Instant::default(),
        }
    }

    /// The attempt passes to a waiter with another request. False if what it has won or asked for does not fit them.
    pub(super) fn pass_to(&mut self, owner: OwnerId, request: &Request, now: Instant) -> bool {
        match self.stage(owner) {
            None => true,
            Some(Stage::Held(hold)) => {
                let fits = request.renew && hold.renew && hold.open == request.open;
                if fits {
                    hold.set_request(request, now);
                }
                fits
            }
            Some(Stage::Pending(pending)) => {
                // A fixed lease has to begin whole.
                let asked = matches!(pending.progress, Progress::Asked { .. });
                let fits = !asked || request.renew || request.ttl <= pending.request.ttl;
                if fits {
                    pending.request = request.clone();
                }
                fits
            }
        }
    }

    /// A request sent at `sent` was granted with `left` left: the attempt becomes a hold. `None`: the answer came after the deadline or after
    /// the client was closed. It is no grant, and to be taken back.
    pub(super) fn granted(
        &mut self,
        owner: OwnerId,
        tokens: Tokens,
        sent: Instant,
        left: Duration,
        now: Instant,
    ) -> Option<Arc<Hold>> {
        if self.closed {
            return None;
        }
        let slot = *self.slots.get(&owner)?;
        let stage = &mut self.entries[slot].stage;
        let pending = match stage {
            Stage::Pending(pending) => pending,
            Stage::Held(hold) => return Some(hold.clone()),
        };
        let lease = believed(left, sent, pending.asked, pending.request.ttl);
        let deadline = deadline(sent, lease);
        if deadline <= now {
            return None;
        }
        let tokens = Tokens { count: tokens.count.min(pending.block), ..tokens };
        let lock = pending.lock.clone();
        let hold = Hold::new(lock, owner, tokens, &pending.request, deadline, &self.runtime);
        let hold = Arc::new(hold);
        hold.asks(pending.asked);
        pending.wake();
        *stage = Stage::Held(hold.clone());
        self.due.set(&mut self.entries, slot, next_look(&hold, lease, now));
        Some(hold)
    }

    /// A request sent at `sent` was answered "still waiting".
    pub(super) fn queued(
        &mut self,
        owner: OwnerId,
        sent: Instant,
        outcome: &Outcome,
        now: Instant,
    ) {
        let Some(queued) = self.pending(owner).and_then(|it| it.queued(sent, outcome, now)) else {
            return;
        };
        self.look_at(owner, queued.look);
        if let Some((tokens, ttl)) = queued.early {
            self.pushed(owner, tokens, ttl, now);
        }
    }

    /// A grant was pushed.
    fn pushed(&mut self, owner: OwnerId, tokens: Tokens, ttl: Duration, now: Instant) {
        match self.pending(owner).map(|pending| pending.pushed(tokens, ttl, now)) {
            Some(Push::RenewFirst) => self.look_at(owner, now),
            Some(Push::Granted { since }) => drop(self.granted(owner, tokens, since, ttl, now)),
            Some(Push::Ignored) | None => {}
        }
    }

    /// The store sent a notice. False if it is of an owner that is not known here.
    pub(super) fn notice(&mut self, notice: &Notice, now: Instant) -> bool {
        match *notice {
            Notice::Granted { owner, token, ttl, drawn } => {
                self.pushed(owner, Tokens { first: token, count: drawn }, ttl, now);
                self.slots.contains_key(&owner)
            }
            Notice::Open { owner } => {
                if self.pending(owner).is_some_and(Pending::opened) {
                    self.look_at(owner, now);
                }
                self.slots.contains_key(&owner)
            }
            Notice::Gone { .. } => true,
            Notice::Gap | Notice::Look => {
                let waits = |slot: &usize| match &self.entries[*slot].stage {
                    Stage::Pending(pending) => matches!(pending.progress, Progress::Waiting { .. }),
                    Stage::Held(_) => false,
                };
                for slot in self.slots.values().copied().filter(waits).collect::<Vec<_>>() {
                    self.due.set(&mut self.entries, slot, now);
                }
                true
            }
        }
    }

    /// Nothing of this owner is left on the store. Returns the hold that is lost with it.
    pub(super) fn gone(&mut self, owner: OwnerId) -> Option<Arc<Hold>> {
        let hold = match self.stage(owner)? {
            Stage::Held(hold) if !hold.is_over() => hold.clone(),
            Stage::Held(_) => return None,
            Stage::Pending(pending) => {
                pending.gone();
                return None;
            }
        };
        self.forget(owner);
        Some(hold)
    }

    /// Completes when the ticket has become something else.
    pub(super) fn poll_turn(
        &mut self,
        owner: OwnerId,
        context: &mut Context<'_>,
    ) -> Poll<TicketEnd> {
        if self.closed {
            return Poll::Ready(TicketEnd::Lost);
        }
        let pending = match self.stage(owner) {
            Some(Stage::Held(hold)) => return Poll::Ready(TicketEnd::Won(hold.clone())),
            Some(Stage::Pending(pending)) => pending,
            None => return Poll::Ready(TicketEnd::Lost),
        };
        match &pending.progress {
            Progress::Gone => {
                self.forget(owner);
                Poll::Ready(TicketEnd::Gone)
            }
            Progress::Waiting { .. } if std::mem::take(&mut pending.late) => {
                Poll::Ready(TicketEnd::Late)
            }
            Progress::Asked { .. } | Progress::Waiting { .. } => {
                pending.waiter = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// A won hold is at the front of its line.
    pub(super) fn install(&mut self, hold: Arc<Hold>, now: Instant) -> Local {
        self.saw(&hold.lock.key, hold.newest_token());
        self.lines.install(hold, now)
    }

    /// A hold's request or deadline was changed: it is looked at in time.
    pub(super) fn reschedule(&mut self, hold: &Hold, now: Instant) {
        self.look_at(hold.owner, next_look(hold, hold.ttl(), now));
    }

    /// Takes what is due, as one batch.
    pub(super) fn take_due(&mut self, now: Instant) -> Work {
        let mut work = Work::default();
        loop {
            let full = work.steps.len() >= BATCH && !work.more;
            if full && self.due.long_are_due(now) {
                self.due.paced_until = now + PACE;
                work.more = true;
            }
            let Some(slot) = self.due.take(&mut self.entries, now) else { break };
            let (next, step) = match &mut self.entries[slot].stage {
                Stage::Held(hold) if hold.is_over() => continue,
                Stage::Held(hold) if now >= hold.deadline() => {
                    work.lost.push(hold.clone());
                    continue;
                }
                Stage::Held(hold) if hold.renew && now < hold.cap() => {
                    hold.asks(now + hold.ttl());
                    let step = hold.lock.step(hold.owner, Action::Renew { ttl: hold.ttl() });
                    let again = now + renewal_rest(hold, now) * UNANSWERED_RESTS;
                    (again.min(hold.deadline()), Some(step))
                }
                Stage::Held(hold) => (hold.deadline(), None),
                Stage::Pending(pending) => match &pending.progress {
                    Progress::Waiting { .. } => {
                        // If it finds the ticket served, the lease is this long from then on.
                        let ttl = pending.request.ttl;
                        pending.asked = pending.asked.max(now + ttl);
                        let step = pending.lock.step(pending.owner, Action::Refresh { ttl });
                        // Its answer says when to ask again.
                        (now + ticket_rest(&pending.request) * UNANSWERED_RESTS, Some(step))
                    }
                    Progress::Asked { .. } | Progress::Gone => continue,
                },
            };
            if let Some(step) = step {
                work.slots.push(slot);
                work.steps.push(step);
            }
            self.due.set(&mut self.entries, slot, next);
        }
        work
    }

    /// A full batch is answered: the next one may go out.
    pub(super) fn go_on(&mut self) {
        (self.due.paced_until, self.due.rests_until) = Default::default();
        self.due.wake_task();
    }

    /// The step of a batch sent at `sent` was answered; `slot` is where its entry was. Returns the effect on a hold.
    pub(super) fn answered(
        &mut self,
        owner: OwnerId,
        slot: usize,
        sent: Instant,
        answer: &Answer,
        now: Instant,
    ) -> Option<Renewal> {
        // Another owner may have the slot by now.
        let entry = self.entries.get(slot).filter(|entry| entry.owner() == owner)?;
        let hold = match &entry.stage {
            Stage::Held(hold) if hold.is_over() => return None,
            Stage::Held(hold) => hold.clone(),
            Stage::Pending(_) => {
                self.refreshed(owner, sent, answer, now);
                return None;
            }
        };
        match answer {
            Ok(Outcome::Granted { left, .. }) => {
                let before = hold.lease_end().since(now);
                let left = hold.prolong(sent, *left, now)?;
                self.due.set(&mut self.entries, slot, next_look(&hold, left, now));
                // A hold that passed on to a longer `ttl` may have begun with two thirds of `GRANT_TTL`.
                let late = before < hold.ttl().min(GRANT_TTL) / 3;
                Some(if late { Renewal::Late(hold, before) } else { Renewal::Renewed(hold) })
            }
            Ok(Outcome::Gone) => self.gone(owner).map(Renewal::Lost),
            // The file was deleted or replaced: the store that is there is not the one that was.
            Err(failure) if failure.error.code() == Code::Conflict => {
                self.gone(owner).map(Renewal::Lost)
            }
            // Nothing is under way any more: it is asked once more, soon.
            _ => {
                let again = now + renewal_rest(&hold, now);
                self.due.set(&mut self.entries, slot, again.min(hold.deadline()));
                None
            }
        }
    }

    /// A Refresh was answered.
    fn refreshed(&mut self, owner: OwnerId, sent: Instant, answer: &Answer, now: Instant) {
        let Some(pending) = self.pending(owner) else { return };
        let Progress::Waiting { .. } = pending.progress else { return };
        match answer {
            Ok(Outcome::Granted { token, left, drawn }) => {
                let tokens = Tokens { first: *token, count: *drawn };
                if self.granted(owner, tokens, sent, *left, now).is_some() {
                    return;
                }
                // Late: the next Refresh renews it and counts from its own sending.
                if let Some(pending) = self.pending(owner) {
                    pending.late = true;
                    pending.wake();
                }
                self.look_at(owner, now);
            }
            Ok(queued @ Outcome::Queued { .. }) => self.queued(owner, sent, queued, now),
            Ok(Outcome::Gone) => drop(self.gone(owner)),
            Ok(_) => {}
            Err(_) => {
                let rest = ticket_rest(&pending.request);
                self.look_at(owner, aligned(now, rest));
            }
        }
    }

    /// Nothing is asked for from now on, and every waiter is woken. Returns all holds and tickets: they stay known until they are undone,
    /// however many close at once.
    pub(super) fn close(&mut self) -> (Vec<Arc<Hold>>, Vec<Abandoned>) {
        self.closed = true;
        self.due.wake_task();
        let (mut holds, mut tickets) = (Vec::new(), Vec::new());
        for (_, entry) in &mut self.entries {
            match &mut entry.stage {
                Stage::Held(hold) => holds.push(hold.clone()),
                Stage::Pending(pending) => {
                    pending.wake();
                    let (lock, ttl) = (pending.lock.clone(), pending.request.ttl);
                    tickets.push(Abandoned { lock, owner: pending.owner, ttl });
                }
            }
        }
        (holds, tickets)
    }

    /// How many attempts, tickets and holds there are.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The highest token seen of a name.
    pub(super) fn floor(&self, key: &LockKey) -> Token {
        self.floors.of(key)
    }

    /// A token was seen.
    pub(super) fn saw(&mut self, key: &LockKey, token: Token) {
        self.floors.saw(key, token);
    }
}

/// The highest token this client has seen of each name, so that a store that lost its data draws no older one. Two generations, so that
/// names in use stay and others go.
#[derive(Default)]
struct Floors([BTreeMap<LockKey, Token>; 2]);

impl Floors {
    /// Names in each generation.
    const GENERATION: usize = 1024;

    fn of(&self, key: &LockKey) -> Token {
        self.0.iter().filter_map(|seen| seen.get(key)).max().copied().unwrap_or_default()
    }

    fn saw(&mut self, key: &LockKey, token: Token) {
        let [young, old] = &mut self.0;
        if let Some(seen) = young.get_mut(key) {
            *seen = token.max(*seen);
            return;
        }
        if young.len() >= Self::GENERATION {
            *old = std::mem::take(young);
        }
        let token = old.get(key).copied().unwrap_or_default().max(token);
        young.insert(key.clone(), token);
    }
}
