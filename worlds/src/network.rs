//! A lease store behind a network that delays, loses, doubles, reorders and breaks.

pub(super) mod cells;
pub(super) mod entries;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fencelock::port::{Answer, Failure, Instant, Notice, NoticeSink, Runtime, Step};
use fencelock::{Code, Error};
use fencelock_sim::{Dice, SimNode};
use tokio::sync::oneshot;

use super::link::{Link, Path, Subscription};
use super::network_store::NetworkStore;
use super::server::Server;
use super::weather::Weather;

/// One store and the links of all clients to it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Network {
    world: Arc<SimNode>,
    server: Arc<SimNode>,
    state: Arc<Mutex<NetworkState>>,
}

#[derive(Debug)]
struct NetworkState {
    store: Server,
    weather: Weather,
    dice: Dice,
    links: BTreeMap<Arc<str>, Link>,
    /// The store process is not there: connections are refused.
    down: bool,
}

#[derive(Clone, Copy)]
enum Way {
    Request,
    Reply,
    Notice,
}

/// The channel to a client that waits for an answer; empty once the first answer has arrived.
type Awaited = Arc<Mutex<Option<oneshot::Sender<Reply>>>>;

/// The reply to a client that asked.
pub(super) enum Reply {
    Answers(Vec<Answer>),
    /// The connection broke.
    Reset,
}

impl Network {
    /// A store on `server`'s clock, reached through `weather`.
    pub fn new(world: &Arc<SimNode>, server: &Arc<SimNode>, weather: Weather, dice: Dice) -> Self {
        let store = Server::new(Arc::clone(server), Arc::clone(world));
        let state = NetworkState { store, weather, dice, links: BTreeMap::new(), down: false };
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

    /// Changes the weather.
    pub fn set_weather(&self, weather: Weather) {
        self.state().weather = weather;
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
        state.weather = Weather::calm(longest / 10, longest);
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

    fn state(&self) -> MutexGuard<'_, NetworkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When a message sent now arrives; `None` if it never does.
    fn arrival(&self, channel: &str, way: Way) -> Option<Instant> {
        let state = &mut *self.state();
        let NetworkState { weather, dice, links, .. } = state;
        let link = links.get_mut(channel)?;
        let losses = if matches!(way, Way::Notice) { weather.notices_lost } else { weather.lost };
        let next = matches!(way, Way::Request) && link.losing > 0;
        link.losing -= u32::from(next);
        if link.path != Path::Open || next || dice.chance(losses) {
            return None;
        }
        let mut at = self.world.now() + weather.travel(dice);
        if !weather.reorders {
            let last = &mut link.arrivals[way as usize];
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

    /// Sends a batch; the first answer to arrive goes to `reply`.
    pub(super) fn send(
        &self,
        channel: &Arc<str>,
        batch: &[Step],
        all: bool,
        reply: oneshot::Sender<Reply>,
    ) {
        let copies = {
            let state = &mut *self.state();
            1 + u32::from(state.dice.chance(state.weather.doubled))
        };
        let reply = Arc::new(Mutex::new(Some(reply)));
        for _ in 0..copies {
            // A lost request leaves the client waiting for its own timeout.
            if let Some(at) = self.arrival(channel, Way::Request) {
                self.deliver(at, channel, batch, all, Arc::clone(&reply));
            }
        }
    }

    /// Has the server carry a batch out at `at`, on its own node: a stalled server does so when it goes on.
    fn deliver(&self, at: Instant, channel: &Arc<str>, batch: &[Step], all: bool, reply: Awaited) {
        let connection = self.state().links.get(channel).map(|link| link.connection);
        let (channel, batch) = (channel.clone(), batch.to_vec());
        self.at(at, move |network| {
            let server = Arc::clone(&network.server);
            server.spawn(Box::pin(async move {
                let answers = network.serve(&channel, &batch, all, connection);
                network.answer(&channel, answers, reply);
            }));
        });
    }

    /// Carries out a batch on the server; `None` if the server is down or the batch was lost with its connection.
    fn serve(
        &self,
        channel: &Arc<str>,
        batch: &[Step],
        all: bool,
        connection: Option<u64>,
    ) -> Option<Vec<Answer>> {
        let (answers, notices) = {
            let state = &mut *self.state();
            let NetworkState { store, weather, dice, links, down } = state;
            let current = links.get(channel).map(|link| link.connection);
            if *down || (current != connection && dice.chance(500)) {
                return None;
            }
            if dice.chance(weather.refused) {
                return Some(batch.iter().map(|_| Err(refused("the store is loading"))).collect());
            }
            let reachable = |channel: &str| {
                links.get(channel).is_some_and(|link| link.subscription != Subscription::None)
            };
            if dice.chance(weather.torn) {
                // Of the steps behind the break some were carried out all the same.
                let answered = dice.below(batch.len() as u64 + 1) as usize;
                let mut done = dice.between(answered as u64, batch.len() as u64) as usize;
                if all && done > 0 {
                    done = batch.len();
                }
                let (mut answers, notices) =
                    store.carry_out(channel, &batch[..done], all, &reachable);
                answers.truncate(answered);
                answers.resize_with(batch.len(), || Err(unknown("the connection broke")));
                (answers, notices)
            } else {
                store.carry_out(channel, batch, all, &reachable)
            }
        };
        for (channel, notice) in notices {
            self.tell(&channel, &notice);
        }
        Some(answers)
    }

    fn answer(&self, channel: &Arc<str>, answers: Option<Vec<Answer>>, reply: Awaited) {
        if let Some(at) = self.arrival(channel, Way::Reply) {
            let answers = answers.map_or(Reply::Reset, Reply::Answers);
            // A client that gave up does not look any more.
            self.at(at, move |_| {
                let reply = reply.lock().unwrap_or_else(PoisonError::into_inner).take();
                reply.map(|reply| reply.send(answers));
            });
        }
    }

    /// Pushes a notice to a client, if it listens.
    fn tell(&self, channel: &Arc<str>, notice: &Notice) {
        let (connection, copies) = {
            let state = &mut *self.state();
            let live = |link: &&Link| link.subscription == Subscription::Live;
            let Some(link) = state.links.get(channel).filter(live) else { return };
            (link.connection, 1 + u32::from(state.dice.chance(state.weather.notices_doubled)))
        };
        for _ in 0..copies {
            let Some(at) = self.arrival(channel, Way::Notice) else { continue };
            let (channel, notice) = (channel.clone(), notice.clone());
            self.at(at, move |network| {
                let state = network.state();
                let link = state.links.get(&channel);
                let Some(link) = link.filter(|link| link.connection == connection) else { return };
                let (node, sink) = (Arc::clone(&link.node), link.sink.clone());
                drop(state);
                // On the client's own node: one that is paused hears of it when it goes on.
                if let Some(sink) = sink {
                    node.spawn(Box::pin(async move { sink(notice) }));
                }
            });
        }
    }

    /// Renews a subscription that broke, as soon as the server can be reached.
    fn subscribe(&self, channel: &str) {
        let (at, connection) = {
            let state = &mut *self.state();
            let Some(link) = state.links.get(channel) else { return };
            if link.path != Path::Open || link.sink.is_none() || state.down {
                return;
            }
            let (go, back) =
                (state.weather.travel(&mut state.dice), state.weather.travel(&mut state.dice));
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
        state.weather.travel(&mut state.dice)
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

fn unavailable(why: &'static str) -> Error {
    Error::new(Code::Unavailable, why)
}

pub(super) fn refused(why: &'static str) -> Failure {
    Failure::refused(unavailable(why))
}

pub(super) fn unknown(why: &'static str) -> Failure {
    Failure::unknown(unavailable(why))
}
