//! Take, Refresh, Renew, Free and Leave.

use std::time::Duration;

use super::holder::{Ticket, admits, left};
use super::{Grant, Record, StepContext, micros};
use crate::fence::Token;
use crate::port::limits::{COUNTER_TTLS, FLOOR_AHEAD, PASSES, TOKEN_LEAD, VOTE_LEAD};
use crate::port::{Notice, Outcome, OwnerId, Take};

impl Record {
    pub(super) fn take(
        &mut self,
        owner: OwnerId,
        take: &Take,
        context: &mut StepContext<'_>,
    ) -> Outcome {
        let now = context.now;
        let holds = self.holders.iter().any(|holder| holder.owner == owner);
        if take.vote.is_some_and(|vote| vote.again) && !holds {
            return Outcome::Gone;
        }
        if self.tombstones.contains_key(&owner) {
            return Outcome::Gone;
        }
        // Also before it queues: the client refuses a later grant below a token that it has seen.
        if take.floor > Token::default() {
            // A client with an absurd floor must not push the tokens far ahead of the clock.
            let most = now + micros(FLOOR_AHEAD);
            let floor = take.floor.get().min(most);
            self.raise(floor, micros(take.ttl), now);
        }
        self.settle(owner, context);
        if let Some(holder) = self.holders.iter().find(|holder| holder.owner == owner) {
            let (token, left) = (Token::new(holder.token), left(holder.ends, now));
            return Outcome::Granted { token, left, drawn: 1 };
        }
        let place = self.tickets.iter().position(|ticket| ticket.owner == owner);
        let first = self.tickets.is_empty() || self.is_open(now);
        if first && admits(&self.holders, take.mode, take.limit, take.permits) {
            if let Some(place) = place {
                self.tickets.remove(place);
            }
            if place != Some(0)
                && let Some(head) = self.tickets.front_mut()
            {
                head.passed += 1;
            }
            let Take { mode, permits, block, .. } = *take;
            let ttl = micros(take.ttl);
            let info = take.info.clone();
            let lead = if take.vote.is_some() { VOTE_LEAD } else { TOKEN_LEAD };
            let grant = Grant { owner, mode, ttl, asked: ttl, permits, block, lead, info };
            let (token, drawn) = self.grant(grant, now);
            // The lock was open and is entered: whoever may hold beside the one who entered is granted too.
            self.settle(owner, context);
            return Outcome::Granted { token, left: take.ttl, drawn };
        }
        if !take.wait {
            return Outcome::Held { left: Some(self.soonest(now)) };
        }
        let place = place.unwrap_or_else(|| {
            self.tickets.push_back(Ticket {
                owner,
                mode: take.mode,
                limit: take.limit,
                permits: take.permits,
                channel: context.channel.clone(),
                ttl: micros(take.ttl),
                block: take.block,
                since: now,
                refreshed: now,
                passed: 0,
                info: take.info.clone(),
            });
            self.tickets.len() - 1
        });
        self.queued(place, now)
    }

    pub(super) fn refresh(
        &mut self,
        owner: OwnerId,
        ttl: u64,
        context: &mut StepContext<'_>,
    ) -> Outcome {
        let now = context.now;
        self.settle(owner, context);
        if let Some(granted) = self.renew(owner, ttl, now) {
            return granted;
        }
        // A Refresh makes no ticket: a late one would bring back what was given up.
        let Some(place) = self.tickets.iter().position(|ticket| ticket.owner == owner) else {
            return Outcome::Gone;
        };
        let ticket = &mut self.tickets[place];
        ticket.refreshed = now;
        ticket.ttl = ttl;
        let (mode, limit, permits) = (ticket.mode, ticket.limit, ticket.permits);
        if place == 0 && self.is_open(now) && admits(&self.holders, mode, limit, permits) {
            let ticket = self.tickets.pop_front().expect("the head was just seen");
            let info = ticket.info;
            // Who looks again is told no number, so it is one.
            let (asked, lead) = (ttl, TOKEN_LEAD);
            let grant = Grant { owner, mode, ttl, asked, permits, block: 1, lead, info };
            let (token, drawn) = self.grant(grant, now);
            // The lock was open and is entered: whoever may hold beside the one who entered is granted too.
            self.settle(owner, context);
            return Outcome::Granted { token, left: Duration::from_micros(ttl), drawn };
        }
        self.queued(place, now)
    }

    /// Pushes the end of `owner`'s hold, if it has one.
    pub(super) fn renew(&mut self, owner: OwnerId, ttl: u64, now: u64) -> Option<Outcome> {
        let holder = self.holders.iter_mut().find(|holder| holder.owner == owner)?;
        self.longest = self.longest.max(ttl);
        let end = now + ttl;
        // Never shortens the lease: a longer Renew may have overtaken this one.
        holder.ends = end.max(holder.ends);
        let (token, left) = (Token::new(holder.token), left(holder.ends, now));
        let ends = holder.ends;
        self.counter_until = self.counter_until.max(ends + ttl * u64::from(COUNTER_TTLS));
        Some(Outcome::Granted { token, left, drawn: 1 })
    }

    pub(super) fn free(
        &mut self,
        owner: OwnerId,
        open: bool,
        context: &mut StepContext<'_>,
    ) -> Outcome {
        let mine = self.remove(owner);
        if mine {
            self.drop_dead(context.now);
            let patient = |head: &&Ticket| head.passed < PASSES;
            let head = self.tickets.front().filter(|head| open && patient(head));
            if head.is_some_and(|head| admits(&self.holders, head.mode, head.limit, head.permits)) {
                self.open_since = Some(context.now);
                self.tell_open(context);
            }
        }
        self.settle(owner, context);
        if mine { Outcome::Freed } else { Outcome::Gone }
    }

    /// Tells the head of the queue that the lock is open, if it is and the head may hold.
    fn tell_open(&self, context: &mut StepContext<'_>) {
        if let Some(head) = self.tickets.front()
            && self.is_open(context.now)
            && admits(&self.holders, head.mode, head.limit, head.permits)
        {
            context.notices.push((head.channel.clone(), Notice::Open { owner: head.owner }));
        }
    }

    /// Takes a hold away; whether there was one.
    fn remove(&mut self, owner: OwnerId) -> bool {
        let place = self.holders.iter().position(|holder| holder.owner == owner);
        if let Some(place) = place {
            self.holders.remove(place);
        }
        place.is_some()
    }

    pub(super) fn leave(
        &mut self,
        owner: OwnerId,
        tombstone: Option<Duration>,
        context: &mut StepContext<'_>,
    ) -> Outcome {
        // Tickets that have ended are not found: a store may have forgotten them with the record.
        self.drop_dead(context.now);
        let before = self.tickets.len() + self.holders.len();
        let head = self.tickets.front().is_some_and(|head| head.owner == owner);
        self.tickets.retain(|ticket| ticket.owner != owner);
        self.holders.retain(|holder| holder.owner != owner);
        let found = self.tickets.len() + self.holders.len() < before;
        // The Take may still be on its way.
        if let Some(life) = tombstone.filter(|_| !found) {
            self.tombstones.insert(owner, context.now + micros(life));
        }
        self.settle(owner, context);
        if head {
            self.tell_open(context);
        }
        if found { Outcome::Freed } else { Outcome::Gone }
    }
}
