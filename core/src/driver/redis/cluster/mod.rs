//! A cluster: every step to the node that has the slot of its lock.
//!
//! Each node is a connection of its own, made at the first step for it, and tells its notices there: a `PUBLISH` is heard
//! at the node that carries the script out, and by way of the cluster's bus at the others.

mod map;
mod route;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use redis::{AsyncConnectionConfig, ProtocolVersion, Value};

use self::map::Map;
use super::address::{Address, Host};
use super::fault;
use super::link::Link;
use super::node::Node;
use super::wire;
use crate::error::{Code, Error, Result};
use crate::options::Options;
use crate::port::backoff::Backoff;
use crate::port::{LockKey, Notice, NoticeSink, RuntimeHandle};
use crate::runtime::sync::Mutex;

/// Between two looks at a map that does not fit are so many short pauses, then long ones.
const SHORT_LOOKS: u32 = 100;
const SHORT_PAUSE: Duration = Duration::from_millis(200);

/// The nodes, and who has what.
pub(super) struct Cluster {
    pub(super) address: Address,
    options: Options,
    channel: String,
    runtime: RuntimeHandle,
    sink: OnceLock<NoticeSink>,
    state: Mutex<ClusterState>,
}

struct ClusterState {
    map: Map,
    nodes: BTreeMap<Host, Arc<Node>>,
    /// Whether a task is looking at the map, and whether something came up since it last looked.
    looking: bool,
    doubted: bool,
    closed: bool,
    /// Counts the looks at the map, so that each begins with another node: one that is cut off must not be asked for ever.
    turn: usize,
}

impl Cluster {
    /// Finds the nodes, or says why not.
    pub(super) async fn connect(
        address: Address,
        options: &Options,
        channel: String,
        runtime: RuntimeHandle,
    ) -> Result<Arc<Self>> {
        let state = ClusterState {
            map: Map::empty(),
            nodes: BTreeMap::new(),
            looking: false,
            doubted: false,
            closed: false,
            turn: 0,
        };
        let cluster = Arc::new(Self {
            address,
            options: options.clone(),
            channel,
            runtime,
            sink: OnceLock::new(),
            state: Mutex::new(state),
        });
        let (sender, receiver) = futures_channel::oneshot::channel();
        let task = Arc::clone(&cluster);
        cluster.runtime.spawn(Box::pin(async move {
            // Nobody left to hear it is fine.
            let _ = sender.send(task.survey().await);
        }));
        let map = receiver.await.map_err(|_| Error::internal("the runtime dropped a task"))??;
        cluster.state.lock().map = map;
        Ok(cluster)
    }

    /// Delivers notices from now on.
    pub(super) async fn listen(self: &Arc<Self>, sink: NoticeSink) -> Result<()> {
        self.sink.set(sink).map_err(|_| Error::internal("a store is listened to once"))?;
        // What keeps us from listening at one node keeps us from it at all.
        let owners = self.state.lock().map.owners().to_vec();
        let mut failure = None;
        for owner in owners {
            match self.node(&owner)?.link.live().await {
                Ok(_) => return Ok(()),
                Err(error) => failure = Some(error),
            }
        }
        self.doubt();
        Err(failure.unwrap_or_else(Error::closed))
    }

    /// The locks on all nodes whose key begins with `prefix`.
    pub(super) async fn names(&self, prefix: &str) -> Result<BTreeSet<LockKey>> {
        let owners = self.state.lock().map.owners().to_vec();
        let mut names = BTreeSet::new();
        for owner in owners {
            self.node(&owner)?.names(prefix, &mut names).await?;
        }
        Ok(names)
    }

    /// The warning of a known node whose settings break a guarantee, if there is one.
    pub(super) fn warning(&self) -> Option<&'static str> {
        self.state.lock().nodes.values().find_map(|node| *node.link.warning.lock())
    }

    /// Lets go of all connections for good.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        for node in std::mem::take(&mut state.nodes).into_values() {
            node.link.close();
        }
    }

    /// The node there; connected to if it was not.
    fn node(&self, host: &Host) -> Result<Arc<Node>> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(Error::closed());
        }
        let make = || {
            let (address, runtime) = (self.address.node(host), self.runtime.clone());
            let channel = self.channel.clone();
            let sink = self.sink.get().cloned();
            // Each connection also subscribes: a classic `PUBLISH` reaches all nodes. A sharded channel costs a subscription for each slot,
            // and Redis 6 has none.
            Arc::new(Node::new(Link::begin(address, &self.options, channel, runtime, sink)))
        };
        Ok(state.nodes.entry(host.clone()).or_insert_with(make).clone())
    }

    /// The map may be out of date: looks until it fits.
    fn doubt(self: &Arc<Self>) {
        let mut state = self.state.lock();
        state.doubted = true;
        if state.looking || state.closed {
            return;
        }
        state.looking = true;
        drop(state);
        let cluster = Arc::clone(self);
        self.runtime.spawn(Box::pin(async move { cluster.look().await }));
    }

    async fn look(self: Arc<Self>) {
        let mut looks = 0;
        let mut backoff = Backoff::new();
        loop {
            self.state.lock().doubted = false;
            if let Ok(map) = self.survey().await {
                self.install(map);
            }
            {
                let mut state = self.state.lock();
                let fits = state.nodes.values().all(|node| node.link.is_up());
                if state.closed || fits && !state.doubted {
                    state.looking = false;
                    return;
                }
            }
            looks += 1;
            let pause =
                if looks < SHORT_LOOKS { backoff.next_up_to(SHORT_PAUSE) } else { backoff.next() };
            self.runtime.sleep_until(self.runtime.now() + pause).await;
        }
    }

    /// Uses another map. Who has nothing any more is left, and all waiters look where they stand now.
    fn install(&self, map: Map) {
        let mut state = self.state.lock();
        if state.map == map {
            return;
        }
        state.map = map;
        let ClusterState { map, nodes, .. } = &mut *state;
        nodes.retain(|host, node| {
            let stays = map.owners().contains(host);
            if !stays {
                node.link.close();
            }
            stays
        });
        drop(state);
        if let Some(sink) = self.sink.get() {
            sink(Notice::Gap);
        }
    }

    /// Asks a node that answers for the map.
    async fn survey(&self) -> Result<Map> {
        let (up, known) = {
            let mut state = self.state.lock();
            state.turn += 1;
            let mut up: Vec<_> = state
                .nodes
                .iter()
                .filter(|(_, node)| node.link.is_up())
                .map(|(host, node)| (host.clone(), node.clone()))
                .collect();
            if !up.is_empty() {
                let turn = state.turn % up.len();
                up.rotate_left(turn);
            }
            let known: BTreeSet<Host> =
                state.map.owners().iter().chain(self.address.seeds()).cloned().collect();
            (up, known)
        };
        for (host, node) in up {
            let slow = self.runtime.sleep_until(self.runtime.now() + route::SLOW);
            if let Either::Left((Ok(reply), _)) = select(pin!(node.look(question())), slow).await
                && let Some(map) = Map::read(&reply, &host)
            {
                return Ok(map);
            }
        }
        // Nobody we are connected to: whoever of those we know answers first.
        let mut asked: FuturesUnordered<_> = known.iter().map(|host| self.ask(host)).collect();
        let mut end =
            pin!(self.runtime.sleep_until(self.runtime.now() + self.options.connect_timeout));
        let mut failure = None;
        loop {
            match select(pin!(asked.next()), end.as_mut()).await {
                Either::Left((Some(Ok(map)), _)) => return Ok(map),
                Either::Left((Some(Err(error)), _)) => failure = Some(error),
                Either::Left((None, _)) | Either::Right(_) => break,
            }
        }
        Err(failure.unwrap_or_else(|| {
            let message =
                "no node of the cluster answers; are they running, and are the addresses right?";
            Error::new(Code::Unavailable, message).with("server", self.address.to_string())
        }))
    }

    async fn ask(&self, host: &Host) -> Result<Map> {
        let address = self.address.node(host);
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let settings = address.settings(ProtocolVersion::RESP2);
        let connected = wire::connect(&address, host, settings, config, &self.runtime).await;
        let (mut connection, _abort) = connected.map_err(|trouble| trouble.into_error(&address))?;
        let reply = connection.send_packed_command(&question()).await;
        let reply = reply.and_then(Value::extract_error);
        let reply = reply.map_err(|error| fault::unreachable(&address, &error))?;
        Map::read(&reply, host).ok_or_else(|| {
            let message = "the node knows of no slots; is the cluster complete?";
            Error::new(Code::Unavailable, message).with("server", host.to_string())
        })
    }
}

fn question() -> redis::Cmd {
    let mut question = redis::cmd("CLUSTER");
    question.arg("SLOTS");
    question
}
