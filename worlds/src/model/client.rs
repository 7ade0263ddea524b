//! A client of the model: what it asks, what it believes, by the rules of DESIGN's "life of an acquire".

use super::{Answered, Ask, Event, LEASE, Moment, Packet, Protocol, Request, Wrong};

/// One client, with one attempt at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Client {
    /// Where it stands.
    pub phase: Phase,
    /// Which attempt it is; each has its own owner id.
    pub attempt: u8,
    /// Requests it may still send to keep what it has.
    pub refreshed: u8,
}

/// Where a client stands with its attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Phase {
    /// It wants nothing.
    #[default]
    Idle,
    /// Its Take was sent, and perhaps a push overtook the answer.
    Asked {
        /// When the Take was sent.
        sent: u8,
        /// The token of the push.
        push: Option<u64>,
    },
    /// It has a ticket.
    Waiting {
        /// The sending of the newest request that was answered still-waiting.
        base: u8,
        /// The counter that answer told.
        last: u64,
    },
    /// It was told of a grant so late that it asks again before it believes.
    Claiming,
    /// It holds until the deadline.
    Holding {
        /// The first moment at which it does not.
        deadline: u8,
    },
    /// It is no more.
    Crashed {
        /// Whether the store noticed that nobody listens there.
        noticed: bool,
    },
}

impl Client {
    /// Whether it believes, at `time`, that the lock is its own.
    pub(super) fn believes(&self, time: u8) -> bool {
        matches!(self.phase, Phase::Holding { deadline } if time < deadline)
    }

    /// Adds the events that the client may cause next of its own accord.
    pub(super) fn choices(
        &self,
        protocol: &Protocol,
        client: u8,
        moment: &Moment,
        events: &mut Vec<Event>,
    ) {
        let may_ask = self.refreshed < protocol.refreshes;
        match self.phase {
            Phase::Idle if self.attempt < if client == 0 { protocol.attempts } else { 1 } => {
                events.push(Event::Start(client));
            }
            Phase::Idle | Phase::Crashed { .. } => return,
            Phase::Asked { .. } | Phase::Claiming => events.push(Event::Cancel(client)),
            Phase::Waiting { .. } => {
                events.push(Event::Cancel(client));
                if may_ask {
                    events.push(Event::Refresh(client));
                }
            }
            Phase::Holding { .. } => {
                events.push(Event::Release(client));
                if may_ask {
                    events.push(Event::Refresh(client));
                }
            }
        }
        if moment.crashes > 0 {
            events.extend([true, false].map(|noticed| Event::Crash(client, noticed)));
        }
    }
}

impl Moment {
    fn phase(&mut self, client: u8) -> &mut Phase {
        &mut self.clients[usize::from(client)].phase
    }

    pub(super) fn start(&mut self, client: u8) {
        self.ask(client, Ask::Take);
        *self.phase(client) = Phase::Asked { sent: self.time, push: None };
    }

    pub(super) fn refresh(&mut self, client: u8) {
        self.clients[usize::from(client)].refreshed += 1;
        let holds = self.clients[usize::from(client)].believes(self.time);
        self.ask(client, if holds { Ask::Renew } else { Ask::Refresh });
    }

    /// Gives the attempt up. An owner id whose Take has no answer yet gets a tombstone with it.
    pub(super) fn cancel(&mut self, client: u8) {
        let unknown = matches!(self.phase(client), Phase::Asked { .. });
        self.end(client, if unknown { Ask::LeaveTombstone } else { Ask::Leave });
    }

    pub(super) fn release(&mut self, client: u8) {
        self.end(client, Ask::Free);
    }

    fn end(&mut self, client: u8, ask: Ask) {
        self.ask(client, ask);
        let client = &mut self.clients[usize::from(client)];
        client.phase = Phase::Idle;
        client.refreshed = 0;
        client.attempt += 1;
        self.forget_answers();
    }

    /// Drops what nobody will look at when it arrives: it only multiplies worlds.
    pub(super) fn forget_answers(&mut self) {
        let clients = &self.clients;
        let current = |client: u8, attempt: u8| {
            let client = &clients[usize::from(client)];
            client.attempt == attempt && !matches!(client.phase, Phase::Crashed { .. })
        };
        self.network.retain(|packet| match packet {
            Packet::Request(_) => true,
            Packet::Reply(Request { client, attempt, .. }, _)
            | Packet::Push { client, attempt, .. } => current(*client, *attempt),
        });
    }

    /// A hold whose deadline has come is lost, and undone.
    pub(super) fn look_at_clock(&mut self, client: u8) {
        if let Phase::Holding { deadline } = *self.phase(client)
            && deadline <= self.time
        {
            self.end(client, Ask::Free);
        }
    }

    /// Comes to hold until `deadline`, if that has not passed.
    fn hold(&mut self, client: u8, token: u64, deadline: u8) {
        if deadline <= self.time {
            return self.end(client, Ask::Leave);
        }
        if token <= self.held {
            self.wrong = Some(Wrong::Token);
        }
        self.held = token;
        self.clients[usize::from(client)].refreshed = 0;
        *self.phase(client) = Phase::Holding { deadline };
    }

    /// A push arrives. It counts from the newest request that was answered still-waiting.
    pub(super) fn told(&mut self, client: u8, attempt: u8, token: Option<u64>) {
        if attempt != self.clients[usize::from(client)].attempt {
            return;
        }
        match (*self.phase(client), token) {
            (Phase::Asked { sent, push }, Some(token)) => {
                *self.phase(client) = Phase::Asked { sent, push: push.max(Some(token)) };
            }
            (Phase::Waiting { base, last }, Some(token)) if token > last => {
                self.granted_since(client, token, base);
            }
            (Phase::Waiting { .. }, None) => self.ask(client, Ask::Refresh),
            _ => {}
        }
    }

    /// The lock was granted at some time after `base`.
    fn granted_since(&mut self, client: u8, token: u64, base: u8) {
        let deadline = base + LEASE;
        if 2 * deadline.saturating_sub(self.time) < LEASE {
            self.ask(client, Ask::Renew);
            *self.phase(client) = Phase::Claiming;
        } else {
            self.hold(client, token, deadline);
        }
    }

    /// An answer arrives.
    pub(super) fn hear(&mut self, request: Request, answered: Answered) {
        let Request { client, attempt, ask, sent } = request;
        if attempt != self.clients[usize::from(client)].attempt {
            return;
        }
        match (*self.phase(client), answered) {
            (Phase::Asked { .. }, Answered::Granted(token, left)) => {
                self.hold(client, token, sent + left);
            }
            (Phase::Asked { push, .. }, Answered::Queued(last)) => {
                *self.phase(client) = Phase::Waiting { base: sent, last };
                if let Some(token) = push.filter(|token| *token > last) {
                    self.granted_since(client, token, sent);
                }
            }
            (Phase::Waiting { base, last }, Answered::Queued(newer)) if ask == Ask::Refresh => {
                let phase = Phase::Waiting { base: base.max(sent), last: last.max(newer) };
                *self.phase(client) = phase;
            }
            (Phase::Waiting { .. } | Phase::Claiming, Answered::Granted(token, _)) => {
                self.hold(client, token, sent + LEASE);
            }
            (Phase::Asked { .. } | Phase::Waiting { .. } | Phase::Claiming, Answered::No) => {
                self.end(client, Ask::Leave);
            }
            (Phase::Holding { deadline }, Answered::Granted(..)) if ask == Ask::Renew => {
                *self.phase(client) = Phase::Holding { deadline: deadline.max(sent + LEASE) };
            }
            (Phase::Holding { .. }, Answered::No) if ask == Ask::Renew => {
                self.end(client, Ask::Leave);
            }
            _ => {}
        }
    }
}
