//! The protocol of one lock as a finite model: abstract clients that follow DESIGN's rules, the real [`Record`], and a
//! network in which every message may arrive at any later time or never. Small enough to try every order of events.
//!
//! Time is counted in ticks; a lease lasts two of them, a ticket three. Drift is left to the simulator.

mod client;
mod store;

use std::time::Duration;

use fencelock::driver::record::Record;
use stateright::{Model, Property};

pub use self::client::{Client, Phase};

/// The one property that is to be found: without it the model would hold its promises by doing nothing.
pub const HAND_OVER: &str = "the lock is handed over";

/// One unit of the model's time.
pub const TICK: Duration = Duration::from_secs(2);
/// The lease every client asks for, in ticks.
pub const LEASE: u8 = 2;

/// The limits of a world. Everything else follows from them.
#[derive(Clone, Debug)]
pub struct Protocol {
    /// How many clients there are.
    pub clients: u8,
    /// How often the first of them may ask for the lock; the others ask once.
    pub attempts: u8,
    /// How often each attempt may refresh its ticket, and each hold be renewed.
    pub refreshes: u8,
    /// Whether anybody queues. Without, the model is the plain mutex.
    pub queues: bool,
    /// Whether releases leave the lock open (`fair: false`).
    pub open: bool,
    /// How many requests arrive twice.
    pub doubles: u8,
    /// How many clients may crash.
    pub crashes: u8,
    /// When a world ends, in ticks.
    pub end: u8,
}

/// One moment of a world.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Moment {
    /// Ticks since the beginning.
    pub time: u8,
    /// The record that the store keeps.
    pub record: Record,
    /// The clients.
    pub clients: Vec<Client>,
    /// Messages under way, sorted, so that equal worlds look equal.
    pub network: Vec<Packet>,
    doubles: u8,
    crashes: u8,
    /// Attempts that were undone or freed: nothing of theirs may be left.
    settled: Vec<(u8, u8)>,
    /// The newest token any client has held.
    held: u64,
    /// The newest token the store has granted.
    granted: u64,
    /// The attempt it was granted to.
    grantee: (u8, u8),
    /// The broken rule on the way here, if any.
    wrong: Option<Wrong>,
}

/// A broken rule that shows in a single event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Wrong {
    /// A token that is not above every earlier one.
    Token,
    /// The store did something for the lock, and left it free while a waiter lives.
    Asleep,
}

/// A message under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Packet {
    /// To the store.
    Request(Request),
    /// From the store, to whoever asked.
    Reply(Request, Answered),
    /// From the store, to whoever waits.
    Push {
        /// To which client.
        client: u8,
        /// For which of its attempts.
        attempt: u8,
        /// The token, or none for a lock that is open.
        token: Option<u64>,
    },
}

/// A request, by which its answer is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    /// The client that asks.
    pub client: u8,
    /// For which of its attempts.
    pub attempt: u8,
    /// The operation that it asks for.
    pub ask: Ask,
    /// When it was sent.
    pub sent: u8,
}

/// The operations that a client can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ask {
    /// The lock.
    Take,
    /// To stay in the queue.
    Refresh,
    /// To hold on.
    Renew,
    /// To end the hold.
    Free,
    /// To undo the attempt, with a tombstone for its owner id.
    LeaveTombstone,
    /// To undo the attempt.
    Leave,
}

/// How it was answered, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answered {
    /// Granted, with so much left.
    Granted(u64, u8),
    /// In the queue, at this counter.
    Queued(u64),
    /// Somebody else's, or nothing there.
    No,
}

/// The events that can happen next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Time passes.
    Tick,
    /// The message at this place arrives.
    Arrive(usize),
    /// The request at this place arrives, and is still under way.
    ArriveTwice(usize),
    /// The client asks for the lock.
    Start(u8),
    /// It refreshes its ticket or renews its hold.
    Refresh(u8),
    /// It gives up waiting.
    Cancel(u8),
    /// It releases.
    Release(u8),
    /// It is no more; the store notices or does not.
    Crash(u8, bool),
}

impl Moment {
    /// Puts a message on its way.
    fn send(&mut self, packet: Packet) {
        let place = self.network.binary_search(&packet).unwrap_or_else(|place| place);
        self.network.insert(place, packet);
    }

    fn ask(&mut self, client: u8, ask: Ask) {
        let (attempt, sent) = (self.clients[usize::from(client)].attempt, self.time);
        self.send(Packet::Request(Request { client, attempt, ask, sent }));
    }

    /// How many clients believe that the lock is theirs.
    fn believers(&self) -> usize {
        self.clients.iter().filter(|client| client.believes(self.time)).count()
    }
}

impl Model for Protocol {
    type State = Moment;
    type Action = Event;

    fn init_states(&self) -> Vec<Moment> {
        vec![Moment {
            time: 0,
            record: Record::default(),
            clients: vec![Client::default(); usize::from(self.clients)],
            network: Vec::new(),
            doubles: self.doubles,
            crashes: self.crashes,
            settled: Vec::new(),
            held: 0,
            granted: 0,
            grantee: (0, 0),
            wrong: None,
        }]
    }

    fn actions(&self, moment: &Moment, events: &mut Vec<Event>) {
        if moment.time < self.end {
            events.push(Event::Tick);
        }
        for (place, packet) in moment.network.iter().enumerate() {
            // Equal messages are one choice.
            if place > 0 && moment.network[place - 1] == *packet {
                continue;
            }
            events.push(Event::Arrive(place));
            let take = matches!(packet, Packet::Request(Request { ask: Ask::Take, .. }));
            if take && moment.doubles > 0 {
                events.push(Event::ArriveTwice(place));
            }
        }
        for client in 0..self.clients {
            moment.clients[usize::from(client)].choices(self, client, moment, events);
        }
    }

    fn next_state(&self, moment: &Moment, event: Event) -> Option<Moment> {
        let mut next = moment.clone();
        match event {
            Event::Tick => {
                next.time += 1;
                (0..self.clients).for_each(|client| next.look_at_clock(client));
            }
            Event::Arrive(place) => {
                let packet = next.network.remove(place);
                self.arrive(&mut next, packet);
            }
            Event::ArriveTwice(place) => {
                next.doubles -= 1;
                let packet = next.network[place];
                self.arrive(&mut next, packet);
            }
            Event::Start(client) => next.start(client),
            Event::Refresh(client) => next.refresh(client),
            Event::Cancel(client) => next.cancel(client),
            Event::Release(client) => next.release(client),
            Event::Crash(client, noticed) => {
                next.crashes -= 1;
                next.clients[usize::from(client)].phase = Phase::Crashed { noticed };
                next.forget_answers();
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("one believer at most", |_, moment: &Moment| moment.believers() <= 1),
            Property::always("tokens rise", |_, moment: &Moment| {
                moment.wrong != Some(Wrong::Token)
            }),
            Property::always("no waiter sleeps beside a free lock", |_, moment: &Moment| {
                moment.wrong != Some(Wrong::Asleep)
            }),
            Property::always(
                "nothing is left of what was undone",
                |protocol: &Self, moment: &Moment| protocol.doubles > 0 || moment.nothing_left(),
            ),
            Property::always("nobody holds it for ever", |_, moment: &Moment| {
                moment.grantable_in_the_end()
            }),
            Property::sometimes(HAND_OVER, |_, moment: &Moment| {
                moment.network.iter().any(|packet| matches!(packet, Packet::Push { .. }))
                    && moment.held > 0
            }),
        ]
    }
}

impl Protocol {
    fn arrive(&self, next: &mut Moment, packet: Packet) {
        match packet {
            Packet::Request(request) => next.serve(self, request),
            Packet::Reply(request, answered) => next.hear(request, answered),
            Packet::Push { client, attempt, token } => next.told(client, attempt, token),
        }
    }
}
