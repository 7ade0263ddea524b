//! The model: what every step means, as a pure function over one lock's record.
//!
//! Memory and SQLite run this very code; the scripts of other stores are tested against it, outcome by outcome, and the
//! simulator and the exhaustive protocol models are built on it. Times are microseconds of the *store's* clock.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::fence::Token;
use crate::port::limits::{
    COUNTER_TTLS, FLOOR_AHEAD, GRANT_TTL, OPEN_FOR, PASSES, TICKET_LIFE, UNREACHABLE_AFTER,
};
use crate::port::{Action, HolderView, Notice, Outcome, OwnerId, State, Step, Take, WaiterView};

/// Everything a store keeps of one lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Record {
    /// The present holder, whose lease may have ended since.
    pub holder: Option<Holder>,
    /// The counter: the newest token drawn, or the highest floor seen.
    pub last: u64,
    /// When the counter may be forgotten: after every token drawn, by a margin.
    pub counter_until: u64,
    /// The queue, in order of arrival.
    pub tickets: VecDeque<Ticket>,
    /// Owner ids whose Take must be refused, and until when.
    pub tombstones: BTreeMap<OwnerId, u64>,
    /// Since when the lock is open to whoever comes first.
    pub open_since: Option<u64>,
}

/// A hold with an end time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Holder {
    /// The attempt that was granted.
    pub owner: OwnerId,
    /// The first token drawn with it.
    pub token: u64,
    /// When it was granted.
    pub since: u64,
    /// When it ends.
    pub ends: u64,
    /// What it said of itself.
    pub info: Arc<str>,
}

/// A place in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ticket {
    /// The attempt that waits.
    pub owner: OwnerId,
    /// Where its client listens.
    pub channel: Arc<str>,
    /// The lease it wants.
    pub ttl: u64,
    /// How many tokens it wants to draw.
    pub block: u32,
    /// When it joined.
    pub since: u64,
    /// When it was last heard of.
    pub refreshed: u64,
    /// How often an open lock was taken past it.
    pub passed: u32,
    /// What it said of itself.
    pub info: Arc<str>,
}

/// What a step sees of the world, and what it wants to have said there.
pub struct Scene<'a> {
    /// The store's clock.
    pub now: u64,
    /// Where the client that asks listens.
    pub channel: &'a Arc<str>,
    /// Whether anybody listens on a channel. A store that cannot tell says yes.
    pub reachable: &'a dyn Fn(&str) -> bool,
    /// Notices to send once the change is safely stored, each with its channel.
    pub notices: Vec<(Arc<str>, Notice)>,
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX >> 1)
}

fn left(ends: u64, now: u64) -> Duration {
    Duration::from_micros(ends.saturating_sub(now))
}

impl Ticket {
    fn live(&self, now: u64) -> bool {
        now < self.refreshed + micros(TICKET_LIFE) || mutant!(HandOverToDeadWaiter)
    }
}

impl Record {
    /// Carries one step out.
    pub fn apply(&mut self, step: &Step, scene: &mut Scene<'_>) -> Outcome {
        let owner = step.owner;
        if step.action != Action::Read {
            self.expire(scene.now);
        }
        match &step.action {
            Action::Read => Outcome::State(self.view(scene.now)),
            Action::Take(take) => self.take(owner, take, scene),
            Action::Refresh { ttl } => self.refresh(owner, micros(*ttl), scene),
            Action::Renew { ttl } => {
                self.settle_unless_mutant(owner, scene);
                self.renew(owner, micros(*ttl), scene.now).unwrap_or(Outcome::Gone)
            }
            Action::Free { open } => self.free(owner, *open, scene),
            Action::Leave { tombstone } => self.leave(owner, *tombstone, scene),
        }
    }

    /// From when on nothing is left to remember, whatever was held or waited for until then: the record may be dropped.
    pub fn forget_after(&self) -> u64 {
        let held = self.holder.as_ref().map_or(0, |holder| holder.ends);
        let queued = self.tickets.iter().map(|ticket| ticket.refreshed + micros(TICKET_LIFE)).max();
        let buried = self.tombstones.values().copied().max();
        self.counter_until.max(held).max(queued.unwrap_or(0)).max(buried.unwrap_or(0))
    }

    /// When the next thing ends by itself: what a store with timers would look at next.
    fn expire(&mut self, now: u64) {
        self.tombstones.retain(|_, until| *until > now);
        if self.holder.as_ref().is_some_and(|holder| holder.ends <= now) && !mutant!(ExpiryIgnored)
        {
            self.holder = None;
            // A lock that vanished without a Free is never open.
            self.open_since = None;
        }
        if self.counter_until <= now {
            self.last = 0;
        }
    }

    /// If the lock is free and a live ticket waits, hand it over and tell.
    fn settle(&mut self, caller: OwnerId, scene: &mut Scene<'_>) {
        let now = scene.now;
        loop {
            while self.tickets.front().is_some_and(|head| !head.live(now)) {
                self.tickets.pop_front();
            }
            if self.holder.is_some() {
                return;
            }
            let Some(head) = self.tickets.front() else {
                self.open_since = None;
                return;
            };
            if self.is_open(now) {
                return;
            }
            let silent = now >= head.refreshed + micros(UNREACHABLE_AFTER);
            if head.owner != caller && silent && !(scene.reachable)(&head.channel) {
                self.tickets.pop_front();
                continue;
            }
            let back = mutant!(QueueServedFromTheBack);
            let ticket = if back { self.tickets.pop_back() } else { self.tickets.pop_front() };
            let Some(ticket) = ticket else { return };
            let ttl = ticket.ttl.min(micros(GRANT_TTL));
            let token = self.grant(ticket.owner, ttl, ticket.block, ticket.info, now);
            let ttl = Duration::from_micros(ttl);
            scene
                .notices
                .push((ticket.channel, Notice::Granted { owner: ticket.owner, token, ttl }));
            return;
        }
    }

    fn settle_unless_mutant(&mut self, caller: OwnerId, scene: &mut Scene<'_>) {
        if !mutant!(OnlyFreeSettles) {
            self.settle(caller, scene);
        }
    }

    /// Whether the lock is free for whoever comes first.
    fn is_open(&self, now: u64) -> bool {
        let patient = self.tickets.front().is_none_or(|head| head.passed < PASSES);
        self.open_since.is_some_and(|since| patient && now < since + micros(OPEN_FOR))
    }

    fn grant(&mut self, owner: OwnerId, ttl: u64, block: u32, info: Arc<str>, now: u64) -> Token {
        let first = match () {
            () if mutant!(BareCounterToken) => self.last + 1,
            () if mutant!(TokenRepeats) => self.last.max(1),
            () => (self.last + 1).max(now),
        };
        self.raise(first + u64::from(block.max(1)) - 1, ttl, now);
        self.open_since = None;
        self.holder = Some(Holder { owner, token: first, since: now, ends: now + ttl, info });
        Token::new(first)
    }

    /// Lifts the counter, and keeps it until the clock has passed every token drawn by ten ttls.
    fn raise(&mut self, last: u64, ttl: u64, now: u64) {
        self.last = self.last.max(last);
        let end = self.last.max(now) + ttl * u64::from(COUNTER_TTLS);
        self.counter_until = self.counter_until.max(end);
    }

    fn take(&mut self, owner: OwnerId, take: &Take, scene: &mut Scene<'_>) -> Outcome {
        let now = scene.now;
        if self.tombstones.contains_key(&owner) && !mutant!(TombstoneIgnored) {
            return Outcome::Gone;
        }
        if take.floor > Token::default() && !mutant!(FloorIgnored) {
            let floor = take.floor.get().min(now + micros(FLOOR_AHEAD));
            self.raise(floor, micros(take.ttl), now);
        }
        if !mutant!(TakePassesWaiters) {
            self.settle_unless_mutant(owner, scene);
        }
        if let Some(holder) = self.holder.as_ref().filter(|holder| holder.owner == owner) {
            return Outcome::Granted {
                token: Token::new(holder.token),
                left: left(holder.ends, now),
            };
        }
        let ahead = self.tickets.iter().position(|ticket| ticket.owner == owner);
        let free = self.holder.is_none();
        if free && (self.tickets.is_empty() || self.is_open(now) || mutant!(TakePassesWaiters)) {
            if let Some(place) = ahead {
                self.tickets.remove(place);
            }
            if ahead != Some(0)
                && let Some(head) = self.tickets.front_mut()
            {
                head.passed += 1;
            }
            let token = self.grant(owner, micros(take.ttl), take.block, take.info.clone(), now);
            return Outcome::Granted { token, left: take.ttl };
        }
        if !take.wait {
            return Outcome::Held { left: Some(self.held_for_another(now)) };
        }
        let ahead = ahead.unwrap_or_else(|| {
            self.tickets.push_back(Ticket {
                owner,
                channel: scene.channel.clone(),
                ttl: micros(take.ttl),
                block: take.block,
                since: now,
                refreshed: now,
                passed: 0,
                info: take.info.clone(),
            });
            self.tickets.len() - 1
        });
        self.queued(ahead, now)
    }

    fn refresh(&mut self, owner: OwnerId, ttl: u64, scene: &mut Scene<'_>) -> Outcome {
        let now = scene.now;
        self.settle_unless_mutant(owner, scene);
        if let Some(granted) = self.renew(owner, ttl, now) {
            return granted;
        }
        let Some(place) = self.tickets.iter().position(|ticket| ticket.owner == owner) else {
            if mutant!(RefreshCreatesTicket) {
                let take = Take {
                    ttl: Duration::from_micros(ttl),
                    wait: true,
                    block: 1,
                    floor: Token::default(),
                    info: "".into(),
                };
                return self.take(owner, &take, scene);
            }
            return Outcome::Gone;
        };
        if place == 0 && self.holder.is_none() && self.is_open(now) {
            let ticket = self.tickets.pop_front().expect("the head was just seen");
            let token = self.grant(owner, ttl, ticket.block, ticket.info, now);
            return Outcome::Granted { token, left: Duration::from_micros(ttl) };
        }
        let ticket = &mut self.tickets[place];
        ticket.refreshed = now;
        ticket.ttl = ttl;
        self.queued(place, now)
    }

    /// Pushes the end of `owner`'s hold, if it has one.
    fn renew(&mut self, owner: OwnerId, ttl: u64, now: u64) -> Option<Outcome> {
        let anyone = mutant!(RenewWithoutOwnerCheck);
        let holder = self.holder.as_mut().filter(|holder| holder.owner == owner || anyone)?;
        let end = now + ttl;
        holder.ends = if mutant!(RenewShortens) { end } else { end.max(holder.ends) };
        let (token, left) = (Token::new(holder.token), left(holder.ends, now));
        let ends = holder.ends;
        self.counter_until = self.counter_until.max(ends + ttl * u64::from(COUNTER_TTLS));
        Some(Outcome::Granted { token, left })
    }

    fn free(&mut self, owner: OwnerId, open: bool, scene: &mut Scene<'_>) -> Outcome {
        let anyone = mutant!(FreeWithoutOwnerCheck);
        let mine = self.holder.as_ref().is_some_and(|holder| holder.owner == owner || anyone);
        if mine {
            self.holder = None;
            while self.tickets.front().is_some_and(|head| !head.live(scene.now)) {
                self.tickets.pop_front();
            }
            if let Some(head) = self.tickets.front().filter(|head| open && head.passed < PASSES) {
                self.open_since = Some(scene.now);
                scene.notices.push((head.channel.clone(), Notice::Open { owner: head.owner }));
            }
        }
        if !mutant!(FreeDoesNotSettle) {
            self.settle(owner, scene);
        }
        if mine { Outcome::Freed } else { Outcome::Gone }
    }

    fn leave(
        &mut self,
        owner: OwnerId,
        tombstone: Option<Duration>,
        scene: &mut Scene<'_>,
    ) -> Outcome {
        let tickets = self.tickets.len();
        self.tickets.retain(|ticket| ticket.owner != owner);
        let mut found = self.tickets.len() < tickets;
        if self.holder.as_ref().is_some_and(|holder| holder.owner == owner)
            && !mutant!(LeaveForgetsHold)
        {
            self.holder = None;
            found = true;
        }
        if let Some(life) = tombstone.filter(|_| !found && !mutant!(NoTombstone)) {
            self.tombstones.insert(owner, scene.now + micros(life));
        }
        self.settle_unless_mutant(owner, scene);
        if found { Outcome::Freed } else { Outcome::Gone }
    }

    fn held_for_another(&self, now: u64) -> Duration {
        self.holder.as_ref().map_or(Duration::ZERO, |holder| left(holder.ends, now))
    }

    fn queued(&self, ahead: usize, now: u64) -> Outcome {
        Outcome::Queued {
            last: Token::new(self.last),
            left: Some(self.held_for_another(now)),
            ahead: u32::try_from(ahead).unwrap_or(u32::MAX),
            foreign: false,
        }
    }

    fn view(&self, now: u64) -> State {
        let holder = self.holder.as_ref().filter(|holder| holder.ends > now);
        State {
            holder: holder.map(|holder| HolderView {
                token: Some(Token::new(holder.token)),
                left: Some(left(holder.ends, now)),
                held_for: Some(left(now, holder.since)),
                info: holder.info.clone(),
            }),
            last: Token::new(if self.counter_until <= now { 0 } else { self.last }),
            waiters: self
                .tickets
                .iter()
                .filter(|ticket| ticket.live(now))
                .map(|ticket| WaiterView {
                    info: ticket.info.clone(),
                    waiting_for: left(now, ticket.since),
                })
                .collect(),
        }
    }
}
