//! A store behind a network that delays, loses, doubles, reorders and breaks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fencelock::port::{
    Answer, Failure, Instant, Notice, NoticeSink, QueueNotice, Runtime, SessionId, Step,
};
use fencelock::{Code, Error};
use fencelock_sim::{Dice, SimNode};
use tokio::sync::oneshot;

use super::network_store::NetworkStore;
use super::server::{Entries, Server};

/// How bad a network is: delays and faults of every link. Chances are in a thousand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// The shortest and longest time a message is under way.
    pub delay: (Duration, Duration),
    /// Messages that take far longer: chance, and up to how long.
    pub late: (u64, Duration),
    /// Requests and replies that never arrive.
    pub lost: u64,
    /// Notices that never arrive.
    pub notices_lost: u64,
    /// Notices that arrive twice.
    pub notices_doubled: u64,
    /// Requests that arrive twice. A doubled Take may be held by nobody for one ttl, so such worlds are marked.
    pub doubled: u64,
    /// Requests the server refuses without carrying them out.
    pub refused: u64,
    /// Batches that break off in the middle.
    pub torn: u64,
    /// Whether messages of one client overtake each other.
    pub reorders: bool,
}

impl Conditions {
    /// Nothing is lost, nothing overtakes: only delays.
    pub fn calm(shortest: Duration, longest: Duration) -> Self {
        Self {
            delay: (shortest, longest),
            late: (0, Duration::ZERO),
            lost: 0,
            notices_lost: 0,
            notices_doubled: 0,
            doubled: 0,
            refused: 0,
            torn: 0,
            reorders: false,
        }
    }

    /// How long one message is under way.
    pub fn travel(&self, dice: &mut Dice) -> Duration {
        let (shortest, longest) = match self.late {
            (chance, longest) if dice.chance(chance) => (self.delay.1, longest.max(self.delay.1)),
            _ => self.delay,
        };
        Duration::from_nanos(dice.between(shortest.as_nanos() as u64, longest.as_nanos() as u64))
    }

    /// The longest a request and its answer can take together.
    pub fn round_trip(&self) -> Duration {
        self.latest() * 2
    }

    /// How long a packet is under way at most.
    pub fn latest(&self) -> Duration {
        self.delay.1.max(if self.late.0 > 0 { self.late.1 } else { Duration::ZERO })
    }
}

/// One client's way to the store and back.
struct Link {
    node: Arc<SimNode>,
    sink: Option<NoticeSink>,
    subscription: Subscription,
    path: Path,
    /// Which connection it is: messages of an older one are mostly lost with it.
    connection: u64,
    /// How many of the next requests are lost.
    losing: u32,
    /// When the last message of each direction arrives, for links that keep the order.
    arrivals: [Instant; 3],
}

/// The state of a client's subscription as the server knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subscription {
    None,
    Live,
    /// The server has not noticed yet that nobody is there any more.
    HalfOpen,
}

/// Whether messages pass between a client and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    Open,
    Cut,
    /// For good: the client closed, or its machine is no more.
    Closed,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Link {
    fn break_off(&mut self, unnoticed: bool) {
        let live = self.subscription == Subscription::Live;
        self.subscription =
            if live && unnoticed { Subscription::HalfOpen } else { Subscription::None };
        self.connection += 1;
    }
}

/// One store and the links of all clients to it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Network {
    world: Arc<SimNode>,
    server: Arc<SimNode>,
    state: Arc<Mutex<State>>,
}

/// The store, and what lies between it and the clients.
#[derive(Debug)]
pub(super) struct State {
    pub(super) store: Server,
    conditions: Conditions,
    dice: Dice,
    links: BTreeMap<Arc<str>, Link>,
    /// The store process is not there: connections are refused.
    down: bool,
}

#[derive(Clone, Copy)]
enum Direction {
    Request,
    Reply,
    Notice,
}

/// What a request came to.
pub(super) enum Reply<T> {
    Answer(T),
    /// The store is there and does not want to.
    Refused,
    /// The connection broke.
    Reset,
}

/// A message to a client: it goes to the sink that the client has by then, or to one that it knows.
pub(super) type Push = Arc<dyn Fn(Option<&NoticeSink>) + Send + Sync>;
/// Messages, each with the channel of the client that it goes to.
pub(super) type Pushes = Vec<(Arc<str>, Push)>;
/// What the server does for a request, and whom it tells.
pub(super) type Act<T> = Arc<dyn Fn(&mut State) -> (Reply<T>, Pushes) + Send + Sync>;

impl Network {
    /// A store on `server`'s clock, reached under `conditions`.
    pub fn new(
        world: &Arc<SimNode>,
        server: &Arc<SimNode>,
        conditions: Conditions,
        dice: Dice,
    ) -> Self {
        let store = Server::new(Arc::clone(server), Arc::clone(world));
        let state = State { store, conditions, dice, links: BTreeMap::new(), down: false };
        Self {
            world: Arc::clone(world),
            server: Arc::clone(server),
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// The store as the client named `channel` on `node` reaches it. It waits `timeout` for an answer.
    pub fn connect(&self, node: &Arc<SimNode>, channel: &str, timeout: Duration) -> NetworkStore {
        let channel: Arc<str> = channel.into();
        let link = Link {
            node: Arc::clone(node),
            sink: None,
            subscription: Subscription::None,
            path: Path::Open,
            connection: 0,
            losing: 0,
            arrivals: [Instant::default(); 3],
        };
        self.state().links.insert(channel.clone(), link);
        NetworkStore::new(self.clone(), Arc::clone(node), channel, timeout)
    }

    /// The machine the store runs on.
    pub fn server(&self) -> Arc<SimNode> {
        Arc::clone(&self.server)
    }

    /// Looks at the store, or changes it behind everybody's back.
    pub fn store<T>(&self, look: impl FnOnce(&mut Server) -> T) -> T {
        look(&mut self.state().store)
    }

    /// Changes the conditions.
    pub fn set_conditions(&self, conditions: Conditions) {
        self.state().conditions = conditions;
    }

    /// Cuts a client off. What is under way is lost or late; the server may take its time to notice.
    pub fn cut(&self, channel: &str) {
        let mut state = self.state();
        let unnoticed = state.dice.chance(500);
        if let Some(link) = state.links.get_mut(channel) {
            link.break_off(unnoticed);
            link.path = Path::Cut;
        }
    }

    /// Lets a client through again; it subscribes anew and is told that it may have missed something.
    pub fn heal(&self, channel: &str) {
        if let Some(link) = self.state().links.get_mut(channel)
            && link.path == Path::Cut
        {
            link.path = Path::Open;
        }
        self.subscribe(channel);
    }

    /// Loses the next request of a client.
    pub fn lose_one(&self, channel: &str) {
        if let Some(link) = self.state().links.get_mut(channel) {
            link.losing += 1;
        }
    }

    /// From now on messages arrive, within `longest`.
    pub fn calm_down(&self, longest: Duration) {
        let mut state = self.state();
        state.conditions = Conditions::calm(longest / 10, longest);
        for link in state.links.values_mut() {
            link.losing = 0;
        }
    }

    /// The client's machine has crashed: nobody listens there any more, noticed or not.
    pub fn abandon(&self, channel: &str) {
        self.cut(channel);
        self.hang_up(channel);
    }

    /// Nothing goes to or from this client any more.
    pub(super) fn hang_up(&self, channel: &str) {
        let sink = self.state().links.get_mut(channel).and_then(|link| {
            link.path = Path::Closed;
            if link.subscription == Subscription::Live {
                link.subscription = Subscription::None;
            }
            link.sink.take()
        });
        // With the state released: a client may go with its sink, and close its store as it goes.
        drop(sink);
    }

    /// Takes the store down; every connection breaks.
    pub fn take_down(&self) {
        let mut state = self.state();
        state.down = true;
        for link in state.links.values_mut() {
            link.break_off(false);
        }
    }

    /// Brings the store back up with whatever data it then has.
    pub fn bring_up(&self) {
        self.state().down = false;
        let channels: Vec<_> = self.state().links.keys().cloned().collect();
        for channel in &channels {
            self.subscribe(channel);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When a message sent now arrives; `None` if it never does.
    fn arrival(&self, channel: &str, direction: Direction) -> Option<Instant> {
        let state = &mut *self.state();
        let State { conditions, dice, links, .. } = state;
        let link = links.get_mut(channel)?;
        let losses = if matches!(direction, Direction::Notice) {
            conditions.notices_lost
        } else {
            conditions.lost
        };
        let next = matches!(direction, Direction::Request) && link.losing > 0;
        link.losing -= u32::from(next);
        if link.path != Path::Open || next || dice.chance(losses) {
            return None;
        }
        let mut at = self.world.now() + conditions.travel(dice);
        if !conditions.reorders {
            let last = &mut link.arrivals[direction as usize];
            at = at.max(*last + Duration::from_nanos(1));
            *last = at;
        }
        Some(at)
    }

    /// A task of the world that acts once the clock shows `at`.
    fn at(&self, at: Instant, act: impl FnOnce(Self) + Send + 'static) {
        let (network, arrives) = (self.clone(), self.world.sleep_until(at));
        self.world.spawn(Box::pin(async move {
            arrives.await;
            act(network);
        }));
    }

    /// Sends a request, twice perhaps; each copy that arrives is carried out, and the first answer goes to `reply`.
    pub(super) fn send<T: Send + 'static>(
        &self,
        channel: &Arc<str>,
        doubles: bool,
        act: &Act<T>,
        reply: oneshot::Sender<Reply<T>>,
    ) {
        let copies = {
            let state = &mut *self.state();
            1 + u32::from(doubles && state.dice.chance(state.conditions.doubled))
        };
        let reply = Arc::new(Mutex::new(Some(reply)));
        for _ in 0..copies {
            // A lost request leaves the client waiting for its own timeout.
            let Some(at) = self.arrival(channel, Direction::Request) else { continue };
            let connection = self.state().links.get(channel).map(|link| link.connection);
            let (channel, act, reply) = (channel.clone(), act.clone(), Arc::clone(&reply));
            self.at(at, move |network| {
                // On its own node: a server that stands still does so when it goes on.
                let server = Arc::clone(&network.server);
                server.spawn(Box::pin(async move {
                    let answer = network.serve(&channel, &*act, connection);
                    let Some(at) = network.arrival(&channel, Direction::Reply) else { return };
                    // A client that gave up does not look any more.
                    network.at(at, move |_| {
                        let reply = reply.lock().unwrap_or_else(PoisonError::into_inner).take();
                        reply.map(|reply| reply.send(answer));
                    });
                }));
            });
        }
    }

    fn serve<T>(
        &self,
        channel: &Arc<str>,
        act: &dyn Fn(&mut State) -> (Reply<T>, Pushes),
        connection: Option<u64>,
    ) -> Reply<T> {
        let (reply, pushes) = {
            let state = &mut *self.state();
            let current = state.links.get(channel).map(|link| link.connection);
            // A request may be lost with its connection.
            if state.down || (current != connection && state.dice.chance(500)) {
                return Reply::Reset;
            }
            if state.dice.chance(state.conditions.refused) {
                return Reply::Refused;
            }
            act(state)
        };
        self.push_all(pushes);
        reply
    }

    fn push_all(&self, pushes: Pushes) {
        for (channel, push) in pushes {
            self.push(&channel, &push);
        }
    }

    /// Sends a message to a client, if it listens.
    fn push(&self, channel: &Arc<str>, push: &Push) {
        let (connection, copies) = {
            let state = &mut *self.state();
            let live = |link: &&Link| link.subscription == Subscription::Live;
            let Some(link) = state.links.get(channel).filter(live) else { return };
            (link.connection, 1 + u32::from(state.dice.chance(state.conditions.notices_doubled)))
        };
        for _ in 0..copies {
            let Some(at) = self.arrival(channel, Direction::Notice) else { continue };
            let (channel, push) = (channel.clone(), push.clone());
            self.at(at, move |network| {
                let state = network.state();
                let link = state.links.get(&channel);
                let Some(link) = link.filter(|link| link.connection == connection) else { return };
                let (node, sink) = (Arc::clone(&link.node), link.sink.clone());
                drop(state);
                // On the client's own node: one that is paused hears of it when it goes on.
                node.spawn(Box::pin(async move { push(sink.as_ref()) }));
            });
        }
    }

    /// Ends a session when its time is over.
    pub(super) fn watch_session(&self, id: SessionId) {
        let (network, server) = (self.clone(), Arc::clone(&self.server));
        self.server.spawn(Box::pin(async move {
            loop {
                let (ends, pushes) =
                    network.state().act_on_entries(|entries, _| entries.model.ends(id));
                network.push_all(pushes);
                let Some(ends) = ends else { return };
                server.sleep_until(ends).await;
            }
        }));
    }

    /// Renews a subscription that broke, as soon as the server can be reached.
    fn subscribe(&self, channel: &str) {
        let (at, connection) = {
            let state = &mut *self.state();
            let Some(link) = state.links.get(channel) else { return };
            if link.path != Path::Open || link.sink.is_none() || state.down {
                return;
            }
            let (go, back) = (
                state.conditions.travel(&mut state.dice),
                state.conditions.travel(&mut state.dice),
            );
            (self.world.now() + go + back, link.connection)
        };
        let channel: Arc<str> = channel.into();
        self.at(at, move |network| {
            let state = &mut *network.state();
            let Some(link) = state.links.get_mut(&channel) else { return };
            let current = link.connection == connection && link.path == Path::Open && !state.down;
            let anew = current && link.subscription != Subscription::Live;
            let Some(sink) = link.sink.clone().filter(|_| anew) else { return };
            link.subscription = Subscription::Live;
            link.node.spawn(Box::pin(async move { sink(Notice::Gap) }));
        });
    }

    /// Why no connection can be had now, if that is known before anything is sent.
    pub(super) fn refuses(&self, channel: &str) -> Option<Error> {
        let state = &mut *self.state();
        let path = state.links.get(channel)?.path;
        if path == Path::Closed {
            return Some(Error::new(Code::Closed, "this client was closed; connect again"));
        }
        let away = state.down || (path == Path::Cut && state.dice.chance(300));
        away.then(|| unavailable("the store cannot be reached"))
    }

    /// How long one message takes now.
    pub(super) fn travel(&self) -> Duration {
        let state = &mut *self.state();
        state.conditions.travel(&mut state.dice)
    }

    /// The subscription a client asked for has begun.
    pub(super) fn subscribed(&self, channel: &str, sink: NoticeSink) {
        if let Some(link) = self.state().links.get_mut(channel) {
            link.sink = Some(sink);
            if link.path == Path::Open {
                link.subscription = Subscription::Live;
            }
        }
    }
}

impl State {
    /// Carries a batch out; one that breaks off in the middle was carried out further than it was answered.
    pub(super) fn carry_out(
        &mut self,
        channel: &Arc<str>,
        batch: &[Step],
        all: bool,
    ) -> (Vec<Answer>, Pushes) {
        let Self { store, conditions, dice, links, .. } = self;
        let (mut answered, mut done) = (batch.len(), batch.len());
        if dice.chance(conditions.torn) {
            answered = dice.below(batch.len() as u64 + 1) as usize;
            done = dice.between(answered as u64, batch.len() as u64) as usize;
            done = if all && done > 0 { batch.len() } else { done };
        }
        let reachable = |channel: &str| {
            links.get(channel).is_some_and(|link| link.subscription != Subscription::None)
        };
        let (mut answers, notices) = store.carry_out(channel, &batch[..done], all, &reachable);
        answers.truncate(answered);
        answers.resize_with(batch.len(), || Err(unknown("the connection broke")));
        let push = |notice: Notice| -> Push {
            Arc::new(move |sink| {
                if let Some(sink) = sink {
                    sink(notice.clone());
                }
            })
        };
        let pushes = notices.into_iter().map(|(channel, notice)| (channel, push(notice)));
        (answers, pushes.collect())
    }

    /// Does something to the entries, and to whom its notices go.
    pub(super) fn act_on_entries<T>(
        &mut self,
        act: impl FnOnce(&mut Entries, Instant) -> T,
    ) -> (T, Pushes) {
        let (done, notices) = self.store.act_on_entries(act);
        let push = |(session, notice)| {
            let (channel, sink) = self.store.entries().listener(session)?;
            let push: Push = Arc::new(move |_| sink(QueueNotice::clone(&notice)));
            Some((channel, push))
        };
        (done, notices.into_iter().filter_map(push).collect())
    }

    /// Whether the connection breaks behind what was just carried out.
    pub(super) fn breaks(&mut self) -> bool {
        self.dice.chance(self.conditions.torn)
    }
}

fn unavailable(why: &'static str) -> Error {
    Error::new(Code::Unavailable, why)
}

pub(super) fn refused(why: &'static str) -> Failure {
    Failure::refused(unavailable(why))
}

pub(super) fn unknown(why: &'static str) -> Failure {
    Failure::unknown(unavailable(why))
}
