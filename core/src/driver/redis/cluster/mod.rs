//! A cluster: every step to the node that has the slot of its lock.
//!
//! Each node is a connection of its own, made at the first step for it, and tells its notices there: a `PUBLISH` is heard
//! at the node that carries the script out, and by way of the cluster's bus at the others.

mod route;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use redis::{AsyncConnectionConfig, Value};

use super::address::{Address, Host};
use super::connection::Link;
use super::connection::wire;
use super::fault;
use super::keys::SLOTS;
use super::node::Node;
use crate::driver::within::{on_task, within};
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
        let task = Arc::clone(&cluster);
        let map = on_task(&cluster.runtime, async move { task.survey().await }).await??;
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
            self.runtime.sleep(pause).await;
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
            let answer = within(&self.runtime, route::SLOW, node.look(question()));
            if let Some(Ok(reply)) = answer.await
                && let Some(map) = Map::read(&reply, &host)
            {
                return Ok(map);
            }
        }
        // Nobody we are connected to: whoever of those we know answers first.
        let mut asked: FuturesUnordered<_> = known.iter().map(|host| self.ask(host)).collect();
        let mut end = pin!(self.runtime.sleep(self.options.connect_timeout));
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
        let settings = address.settings();
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

/// No node that we know of.
const NOBODY: u16 = u16::MAX;

/// The masters and their slots.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Map {
    owners: Vec<Host>,
    slots: Vec<u16>,
}

impl Map {
    /// Nobody has anything.
    fn empty() -> Self {
        Self { owners: Vec::new(), slots: vec![NOBODY; SLOTS] }
    }

    /// Reads the answer to `CLUSTER SLOTS`. A node that does not say its own host is where it was `asked`.
    fn read(reply: &Value, asked: &Host) -> Option<Self> {
        let Value::Array(ranges) = reply else { return None };
        let mut map = Self::empty();
        for range in ranges {
            let Value::Array(words) = range else { return None };
            let [Value::Int(first), Value::Int(last), Value::Array(master), ..] = &words[..] else {
                return None;
            };
            let [host, Value::Int(port), ..] = &master[..] else { return None };
            let host = match host {
                Value::BulkString(name) => String::from_utf8_lossy(name).into_owned(),
                Value::SimpleString(name) => name.clone(),
                _ => String::new(),
            };
            let owner = place(&host, u16::try_from(*port).ok()?, asked);
            let owner = map.number(owner);
            let (first, last) = (usize::try_from(*first).ok()?, usize::try_from(*last).ok()?);
            map.slots.get_mut(first..=last)?.fill(owner);
        }
        (!map.owners.is_empty()).then_some(map)
    }

    /// The node that has the slot.
    fn owner(&self, slot: u16) -> Option<&Host> {
        self.owners.get(usize::from(self.slots[usize::from(slot)]))
    }

    /// All who have any.
    fn owners(&self) -> &[Host] {
        &self.owners
    }

    /// The slot was seen elsewhere.
    fn moved(&mut self, slot: u16, to: Host) {
        self.slots[usize::from(slot)] = self.number(to);
    }

    fn number(&mut self, owner: Host) -> u16 {
        let known = self.owners.iter().position(|known| *known == owner);
        let number = known.unwrap_or_else(|| {
            self.owners.push(owner);
            self.owners.len() - 1
        });
        u16::try_from(number).unwrap_or(NOBODY)
    }
}

/// Where a node is that is named in an answer: without a name, or one it does not know, where the one asked is.
fn place(host: &str, port: u16, asked: &Host) -> Host {
    match asked {
        Host::Tcp(asked) if matches!(host, "" | "?") => Host::tcp(&*asked.name, port),
        _ => Host::tcp(host, port),
    }
}

/// Where a `MOVED` or `ASK` leads: `3999 127.0.0.1:6381`.
fn redirection(details: &str, asked: &Host) -> Option<Host> {
    let (_, to) = details.split_once(' ')?;
    let (host, port) = to.split(' ').next()?.rsplit_once(':')?;
    Some(place(host, port.parse().ok()?, asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: i64, last: i64, name: &str, port: i64) -> Value {
        let name = Value::BulkString(name.as_bytes().to_vec());
        Value::Array(vec![
            Value::Int(first),
            Value::Int(last),
            Value::Array(vec![name, Value::Int(port)]),
        ])
    }

    #[test]
    fn slots_have_owners() {
        let asked = Host::tcp("seed", 1);
        let ranges = [range(0, 99, "a", 7), range(100, 199, "", 8), range(300, 16383, "a", 7)];
        let mut map = Map::read(&Value::Array(ranges.to_vec()), &asked).unwrap();
        assert_eq!(map.owners(), [Host::tcp("a", 7), Host::tcp("seed", 8)]);
        assert_eq!(map.owner(99), Some(&Host::tcp("a", 7)));
        assert_eq!(map.owner(100), Some(&Host::tcp("seed", 8)));
        assert_eq!(map.owner(200), None);
        map.moved(200, Host::tcp("::1", 9));
        assert_eq!(map.owner(200), Some(&Host::tcp("::1", 9)));
        for odd in [vec![], vec![range(0, 16384, "a", 7)], vec![range(9, -1, "a", 7)]] {
            assert_eq!(Map::read(&Value::Array(odd), &asked), None);
        }
    }

    #[test]
    fn redirections_lead_somewhere() {
        let asked = Host::tcp("seed", 1);
        assert_eq!(redirection("3999 10.0.0.1:6381", &asked), Some(Host::tcp("10.0.0.1", 6381)));
        assert_eq!(redirection("3999 ::1:6381", &asked), Some(Host::tcp("::1", 6381)));
        assert_eq!(redirection("3999 :6381", &asked), Some(Host::tcp("seed", 6381)));
        for odd in ["", "3999", "3999 here", "3999 here:x"] {
            assert_eq!(redirection(odd, &asked), None);
        }
    }
}
