//! The store of the model: the real record, asked by numbers.

use std::sync::Arc;
use std::time::Duration;

use fencelock::Token;
use fencelock::driver::record::{Record, Scene};
use fencelock::port::limits::{TICKET_LIFE, TOMBSTONE_LIFE};
use fencelock::port::{Action, Kind, LockKey, Mode, Notice, Outcome, OwnerId, Step, Take};

use super::{Answered, Ask, LEASE, Moment, Packet, Phase, Protocol, Request, TICK, Wrong};

/// When a world begins on the store's clock, in microseconds; far from zero, so that tokens are the clock's.
const START: u64 = 1_000_000_000;

/// The owner id of a client's attempt.
fn owner(client: u8, attempt: u8) -> OwnerId {
    let number = 16 * (u32::from(client) + 1) + u32::from(attempt);
    OwnerId::parse(&format!("{number:032x}")).expect("32 digits are an owner id")
}

/// The attempt an owner id belongs to.
fn attempt_of(owner: OwnerId) -> (u8, u8) {
    let number = u32::from_str_radix(&owner.to_string(), 16).expect("it was made from a number");
    ((number / 16 - 1) as u8, (number % 16) as u8)
}

fn take(wait: bool) -> Action {
    let ttl = TICK * u32::from(LEASE);
    let (mode, limit) = (Mode::Exclusive, 1);
    Action::Take(Take {
        mode,
        limit,
        permits: 1,
        ttl,
        wait,
        block: 1,
        floor: Token::default(),
        info: "".into(),
        vote: None,
    })
}

impl Moment {
    /// The store carries a request out and answers.
    pub(super) fn serve(&mut self, protocol: &Protocol, request: Request) {
        let ttl = TICK * u32::from(LEASE);
        let action = match request.ask {
            Ask::Take => take(protocol.queues),
            Ask::Refresh => Action::Refresh { ttl },
            Ask::Renew => Action::Renew { ttl },
            Ask::Free => Action::Free { open: protocol.open },
            Ask::LeaveTombstone => Action::Leave { tombstone: Some(TOMBSTONE_LIFE) },
            Ask::Leave => Action::Leave { tombstone: None },
        };
        let now = START + u64::from(self.time) * TICK.as_micros() as u64;
        let attempt = (request.client, request.attempt);
        let clients = &self.clients;
        let reachable =
            |client: u8| clients[usize::from(client)].phase != Phase::Crashed { noticed: true };
        let (outcome, notices) = apply(&mut self.record, now, attempt, action, &reachable);
        for push in notices {
            self.send(push);
        }
        // A Take whose owner id has a tombstone is refused before anything else is looked at.
        if !(request.ask == Ask::Take && outcome == Outcome::Gone) {
            self.judge(now);
        }
        let ticks = |left: Duration| (left.as_nanos() / TICK.as_nanos()) as u8;
        let answered = match outcome {
            Outcome::Granted { token, left, .. } => Answered::Granted(token.get(), ticks(left)),
            Outcome::Queued { last, .. } => Answered::Queued(last.get()),
            _ => Answered::No,
        };
        if matches!(request.ask, Ask::Free | Ask::LeaveTombstone | Ask::Leave) {
            self.settled.push(attempt);
            self.settled.sort_unstable();
        } else {
            self.send(Packet::Reply(request, answered));
        }
        self.forget_answers();
    }

    /// Checks the rules for the store, which hold after every step.
    fn judge(&mut self, now: u64) {
        if let Some(holder) = self.record.holder() {
            let (token, grantee) = (holder.token, attempt_of(holder.owner));
            if (token, grantee) != (self.granted, self.grantee) {
                if token <= self.granted {
                    self.wrong = Some(Wrong::Token);
                }
                (self.granted, self.grantee) = (token, grantee);
            }
        }
        let life = TICKET_LIFE.as_micros() as u64;
        let waits = self.record.tickets.iter().any(|ticket| now < ticket.refreshed + life);
        if self.record.holders.is_empty() && waits && self.record.open_since.is_none() {
            self.wrong = Some(Wrong::Asleep);
        }
    }

    /// Whether the store has forgotten every attempt that knows it was undone.
    pub(super) fn nothing_left(&self) -> bool {
        let holder = self.record.holders.iter().map(|holder| holder.owner);
        let waiters = self.record.tickets.iter().map(|ticket| ticket.owner);
        holder.chain(waiters).all(|owner| !self.settled.contains(&attempt_of(owner)))
    }

    /// Whether the lock could be had once every lease and ticket has run out.
    pub(super) fn grantable_in_the_end(&self) -> bool {
        let mut record = self.record.clone();
        let later = TICK * u32::from(self.time) + TICK * u32::from(LEASE) + TICKET_LIFE;
        let now = START + later.as_micros() as u64;
        let (stranger, silent) = ((14, 0), |_| false);
        let (outcome, _) = apply(&mut record, now, stranger, take(false), &silent);
        matches!(outcome, Outcome::Granted { .. })
    }
}

/// Lets the record carry out a step for a client's attempt; the notices come back as messages.
fn apply(
    record: &mut Record,
    now: u64,
    (client, attempt): (u8, u8),
    action: Action,
    reachable: &dyn Fn(u8) -> bool,
) -> (Outcome, Vec<Packet>) {
    let channel: Arc<str> = client.to_string().into();
    let reachable = |to: &str| to.parse().is_ok_and(reachable);
    let mut scene = Scene::new(now, &channel, &reachable);
    let (lock, owner) = (LockKey::new("lock"), owner(client, attempt));
    let step = Step { lock, owner, kind: Kind::Mutex, action };
    let outcome = record.apply(&step, &mut scene);
    let pushes = scene.notices.into_iter().filter_map(|(_, notice)| {
        let (owner, token) = match notice {
            Notice::Granted { owner, token, .. } => (owner, Some(token.get())),
            Notice::Open { owner } => (owner, None),
            Notice::Gone { .. } | Notice::Gap | Notice::Look => return None,
        };
        let (client, attempt) = attempt_of(owner);
        Some(Packet::Push { client, attempt, token })
    });
    (outcome, pushes.collect())
}
