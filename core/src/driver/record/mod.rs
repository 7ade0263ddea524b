//! The model: what every step means, as a pure function over one lock's record.
//!
//! Memory, SQLite and PostgreSQL run this very code; the scripts of other stores are tested against it, outcome by outcome, and the
//! simulator and the exhaustive protocol models are built on it. Times are microseconds of the *store's* clock.

mod holder;
mod step;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::holder::{Holder, Ticket};
use self::holder::{admits, left};
use crate::driver::numbers;
use crate::fence::Token;
use crate::port::limits::{
    COUNTER_TTLS, GRANT_TTL, OPEN_FOR, PASSES, SERVED_AT_ONCE, TICKET_LIFE, TOKEN_LEAD,
    UNREACHABLE_AFTER,
};
use crate::port::{
    Action, Answer, Failure, Kind, LockState, Mode, Notice, Outcome, OwnerId, Step, Take,
};

/// Everything a store keeps of one lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Record {
    /// The kind of lock that it is used as; any kind while nobody holds or waits.
    pub kind: Kind,
    /// The present holders in the order of their grants. Leases may have ended since.
    pub holders: Vec<Holder>,
    /// The counter: the newest token drawn, or the highest floor seen.
    pub last: u64,
    /// When the counter may be forgotten: after every token drawn, by a margin.
    pub counter_until: u64,
    /// The queue, in order of arrival.
    pub tickets: VecDeque<Ticket>,
    /// Owner ids whose Take must be refused, and until when.
    pub tombstones: BTreeMap<OwnerId, u64>,
    /// The longest lease that was asked for since somebody holds without a break. An end further away was set by a clock that has
    /// stepped back since.
    #[serde(default)]
    pub longest: u64,
    /// Since when the lock is open to whoever comes first.
    pub open_since: Option<u64>,
}

/// The inputs of a step besides the record, and the notices that it wants to send.
pub struct StepContext<'a> {
    /// The store's clock.
    pub now: u64,
    /// Since when the store has kept its data; 0 for one that loses it only with its users.
    pub born: u64,
    /// Where the client that asks listens.
    pub channel: &'a Arc<str>,
    /// Whether anybody listens on a channel. A store that cannot tell says yes.
    pub reachable: &'a dyn Fn(&str) -> bool,
    /// How many of those who wait one step grants to: [`SERVED_AT_ONCE`], but in simulated worlds, where few are a crowd.
    pub served_at_once: usize,
    /// Notices to send once the change is safely stored, each with its channel.
    pub notices: Vec<(Arc<str>, Notice)>,
}

impl<'a> StepContext<'a> {
    /// The context of a step of a client that listens on `channel`, in a store that loses its data only with its users.
    pub fn new(now: u64, channel: &'a Arc<str>, reachable: &'a dyn Fn(&str) -> bool) -> Self {
        let (served_at_once, notices) = (SERVED_AT_ONCE, Vec::new());
        Self { now, born: 0, channel, reachable, served_at_once, notices }
    }
}

/// A grant to be made: its owner and its terms.
struct Grant {
    owner: OwnerId,
    mode: Mode,
    ttl: u64,
    /// The lease that was asked for: a hand-over may grant less.
    asked: u64,
    permits: u32,
    /// How many tokens to draw at most, and how far ahead of the clock.
    block: u32,
    lead: Duration,
    info: Arc<str>,
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX >> 1)
}

impl Record {
    /// Carries one step out.
    pub fn apply(&mut self, step: &Step, context: &mut StepContext<'_>) -> Outcome {
        let owner = step.owner;
        if let Action::Take(Take { vote: Some(vote), .. }) = &step.action {
            // The node may have lost its data too short a time ago.
            let votes_from = context.born + micros(vote.aged);
            if context.now < votes_from {
                return Outcome::Recovering { left: left(votes_from, context.now) };
            }
        }
        if !step.action.only_looks() {
            self.expire(context.now);
            if step.kind != self.kind {
                if self.in_use(context.now) {
                    return self.of_another_kind(step, context.now);
                }
                self.kind = step.kind;
                self.tickets.clear();
            }
        }
        match &step.action {
            Action::Read => Outcome::State(self.view(context.now)),
            Action::Take(take) => self.take(owner, take, context),
            Action::Refresh { ttl } => self.refresh(owner, micros(*ttl), context),
            Action::Renew { ttl } => {
                self.settle(owner, context);
                self.renew(owner, micros(*ttl), context.now).unwrap_or(Outcome::Gone)
            }
            Action::Free { open } => self.free(owner, *open, context),
            Action::Break => self.free(owner, false, context),
            Action::Leave { tombstone } => self.leave(owner, *tombstone, context),
        }
    }

    /// [`Record::apply`], or why not.
    pub fn answer(&mut self, step: &Step, context: &mut StepContext<'_>) -> Answer {
        self.refusal(step, context.now).map_or_else(|| Ok(self.apply(step, context)), Err)
    }

    /// [`Record::apply_all`], or why not; and whether the records are to be kept.
    pub fn answer_all(
        records: &mut [(&Step, Self)],
        context: &mut StepContext<'_>,
    ) -> (Vec<Answer>, bool) {
        let refusal = |(step, record): &(&Step, Self)| record.refusal(step, context.now);
        if let Some(failure) = records.iter().find_map(refusal) {
            return (records.iter().map(|_| Err(failure.clone())).collect(), false);
        }
        match Self::apply_all(records, context) {
            Ok(granted) => (granted.into_iter().map(Ok).collect(), true),
            Err(none) => (none.into_iter().map(Ok).collect(), false),
        }
    }

    /// Why this step is not to be applied: it would draw a token where none is left.
    fn refusal(&self, step: &Step, now: u64) -> Option<Failure> {
        let draws = match &step.action {
            Action::Take(_) | Action::Refresh { .. } => {
                self.holders.iter().all(|holder| holder.owner != step.owner)
            }
            _ => false,
        };
        (draws && !self.has_token(now)).then(numbers::none_left)
    }

    fn has_token(&self, now: u64) -> bool {
        let last = if self.counter_until <= now { 0 } else { self.last };
        numbers::is_left(last, now)
    }

    /// Carries out Takes of different locks as one: all are granted, or none is, and then no record has changed. Each
    /// step comes with its lock's record. A waiter for one of them goes first, also if it cannot be reached: that
    /// shows only when a notice is sent, which cannot be taken back.
    pub fn apply_all(
        records: &mut [(&Step, Self)],
        context: &mut StepContext<'_>,
    ) -> Result<Vec<Outcome>, Vec<Outcome>> {
        let before = context.notices.len();
        let reachable = std::mem::replace(&mut context.reachable, &|_: &str| true);
        let outcomes: Vec<_> =
            records.iter_mut().map(|(step, record)| record.apply(step, context)).collect();
        context.reachable = reachable;
        let granted = |outcome: &Outcome| matches!(outcome, Outcome::Granted { .. });
        if outcomes.iter().all(granted) {
            return Ok(outcomes);
        }
        context.notices.truncate(before);
        let none = |outcome| match outcome {
            Outcome::Granted { .. } => Outcome::Gone,
            // A step that was not carried out has no times to answer.
            Outcome::Held { .. } => Outcome::Held { left: None },
            other => other,
        };
        Err(outcomes.into_iter().map(none).collect())
    }

    /// From when on nothing is left to remember, whatever was held or waited for until then: the record may be dropped.
    pub fn forget_after(&self) -> u64 {
        let held = self.holders.iter().map(|holder| holder.ends).max();
        let queued = self.tickets.iter().map(|ticket| ticket.refreshed + micros(TICKET_LIFE)).max();
        let tombstones = self.tombstones.values().copied().max();
        [held, queued, tombstones].into_iter().flatten().fold(self.counter_until, u64::max)
    }

    /// The holder of a mutex; of other kinds, whoever was granted first.
    pub fn holder(&self) -> Option<&Holder> {
        self.holders.first()
    }

    fn in_use(&self, now: u64) -> bool {
        !self.holders.is_empty() || self.tickets.iter().any(|ticket| ticket.live(now))
    }

    /// A step that comes for another kind of lock finds nothing of its own.
    fn of_another_kind(&mut self, step: &Step, now: u64) -> Outcome {
        match &step.action {
            Action::Take(_) if !self.tombstones.contains_key(&step.owner) => {
                Outcome::Conflict { kind: self.kind }
            }
            Action::Leave { tombstone: Some(life) } => {
                self.tombstones.insert(step.owner, now + micros(*life));
                Outcome::Gone
            }
            _ => Outcome::Gone,
        }
    }

    /// Removes what has ended.
    fn expire(&mut self, now: u64) {
        self.tombstones.retain(|_, until| *until > now);
        let most = now.saturating_add(self.longest);
        self.holders.iter_mut().for_each(|holder| holder.ends = holder.ends.min(most));
        let before = self.holders.len();
        self.holders.retain(|holder| holder.ends > now);
        if self.holders.len() < before {
            // A lock that vanished without a Free is never open.
            self.open_since = None;
        }
        if self.counter_until <= now {
            // The clock has passed every token of the counter.
            self.last = 0;
        }
    }

    /// As long as the head of the queue may hold beside those who do, it is granted and told.
    fn settle(&mut self, caller: OwnerId, context: &mut StepContext<'_>) {
        let now = context.now;
        let mut served = 0;
        loop {
            self.drop_dead(now);
            let Some(head) = self.tickets.front() else {
                self.open_since = None;
                return;
            };
            let admitted =
                admits(&self.holders, head.mode, head.limit, head.permits) && self.has_token(now);
            if !admitted || self.is_open(now) {
                return;
            }
            if served == context.served_at_once {
                let (channel, owner) = (head.channel.clone(), head.owner);
                context.notices.push((channel, Notice::Open { owner }));
                return;
            }
            let patience = micros(UNREACHABLE_AFTER);
            let silent = now >= head.refreshed + patience;
            let unreachable = silent && !(context.reachable)(&head.channel);
            if unreachable && head.owner != caller {
                self.tickets.pop_front();
                continue;
            }
            let ticket = self.tickets.pop_front();
            let Some(Ticket { owner, mode, permits, block, channel, info, ttl, .. }) = ticket
            else {
                return;
            };
            // The waiter may have died: the next one then waits for these seconds, not for a whole lease.
            let (asked, ttl) = (ttl, ttl.min(micros(GRANT_TTL)));
            let lead = TOKEN_LEAD;
            let (token, drawn) =
                self.grant(Grant { owner, mode, ttl, asked, permits, block, lead, info }, now);
            let ttl = Duration::from_micros(ttl);
            context.notices.push((channel, Notice::Granted { owner, token, ttl, drawn }));
            served += 1;
        }
    }

    fn drop_dead(&mut self, now: u64) {
        while self.tickets.front().is_some_and(|head| !head.live(now)) {
            self.tickets.pop_front();
        }
    }

    /// Whether the lock is free for whoever comes first.
    fn is_open(&self, now: u64) -> bool {
        let patient = self.tickets.front().is_none_or(|head| head.passed < PASSES);
        self.open_since.is_some_and(|since| patient && now < since + micros(OPEN_FOR))
    }

    /// Answers the first token and how many were drawn.
    fn grant(&mut self, grant: Grant, now: u64) -> (Token, u32) {
        let Grant { owner, mode, ttl, asked, permits, block, lead, info } = grant;
        let before = if self.holders.is_empty() { 0 } else { self.longest };
        self.longest = before.max(asked);
        let (token, drawn) = self.draw(block, lead, ttl, now);
        self.open_since = None;
        let (since, ends) = (now, now + ttl);
        self.holders.push(Holder { owner, mode, token, since, ends, permits, info });
        (Token::new(token), drawn)
    }

    /// Draws tokens for a lease; answers the first, and how many. Those behind the first reach no further ahead of the clock than `lead`,
    /// so that the counter of a store that loses it is soon passed by the clock.
    fn draw(&mut self, block: u32, lead: Duration, ttl: u64, now: u64) -> (u64, u32) {
        let first = (self.last + 1).max(now);
        let room = (now + micros(lead) + 1).saturating_sub(first);
        let drawn =
            u64::from(block).min(room).min(Token::MAX.get().saturating_sub(first) + 1).max(1);
        self.raise(first + drawn - 1, ttl, now);
        (first, u32::try_from(drawn).unwrap_or(block))
    }

    /// Lifts the counter, and keeps it until the clock has passed every token drawn by ten ttls.
    fn raise(&mut self, last: u64, ttl: u64, now: u64) {
        self.last = self.last.max(last);
        let whole = self.last.max(now) + ttl * u64::from(COUNTER_TTLS);
        self.counter_until = self.counter_until.max(whole);
    }

    /// The time left of the hold that ends first.
    fn soonest(&self, now: u64) -> Duration {
        let soonest = self.holders.iter().map(|holder| holder.ends).min();
        soonest.map_or(Duration::ZERO, |ends| left(ends, now))
    }

    fn queued(&self, ahead: usize, now: u64) -> Outcome {
        Outcome::Queued {
            last: Token::new(self.last),
            left: Some(self.soonest(now)),
            ahead: u32::try_from(ahead).unwrap_or(u32::MAX),
            foreign: self.holders.iter().any(Holder::is_foreign),
        }
    }

    fn view(&self, now: u64) -> LockState {
        let holders = self.holders.iter().filter(|holder| holder.ends > now);
        let most = now.saturating_add(self.longest);
        let mut holders: Vec<_> = holders.map(|holder| holder.view(now, most)).collect();
        holders.sort_by_key(|holder| holder.token);
        let live = self.tickets.iter().filter(|ticket| ticket.live(now));
        let waiters: Vec<_> = live.map(|ticket| ticket.view(now)).collect();
        let idle = holders.is_empty() && waiters.is_empty();
        LockState {
            kind: if idle { Kind::Mutex } else { self.kind },
            holders,
            last: Token::new(if self.counter_until <= now { 0 } else { self.last }),
            waiters,
        }
    }
}
