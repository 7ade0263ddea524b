//! The store over connections of our own: to one server at a time, or to the nodes of a cluster.

use std::fmt;
use std::sync::Arc;

use redis::Value;
use url::Url;

use super::address::{Address, Topology};
use super::cell::CellCall;
use super::cluster::Cluster;
use super::connection::Link;
use super::keys::DIALECTS;
use super::node::Node;
use super::steps::Request;
use super::{fault, guarantees};
use crate::error::Result;
use crate::options::Options;
use crate::port::{
    Answer, Capabilities, CellKey, CellStore, Cells, Change, Failure, Fence, LeaseStore, LockKey,
    Look, NoticeSink, OwnerId, RuntimeHandle, Step, Swap,
};

/// One client's view of a Redis server, or of a cluster of them.
pub struct RedisStore {
    servers: Servers,
    acks: u32,
}

enum Servers {
    /// One at a time, wherever it is.
    One(Arc<Node>),
    Cluster(Arc<Cluster>),
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("address", self.address()).finish_non_exhaustive()
    }
}

impl RedisStore {
    /// Connects to one server, `redis://[user[:password]@]host[:port][/database]` (`rediss://` over TLS) or
    /// `redis+unix:///path/of/socket`, or to whatever else one host leads to, see [`RedisStore::connect_all`].
    pub async fn connect(url: &Url, options: &Options, runtime: RuntimeHandle) -> Result<Self> {
        Self::connect_all(url, &[], options, runtime).await
    }

    /// Connects where several hosts lead to: `redis[s]+sentinel://[user[:password]@]host[:port]/master[/database]` or
    /// `redis[s]+cluster://[user[:password]@]host[:port]`. `others` are the hosts behind the first one, which a URL
    /// cannot hold.
    pub async fn connect_all(
        url: &Url,
        others: &[String],
        options: &Options,
        runtime: RuntimeHandle,
    ) -> Result<Self> {
        let address = Address::parse(url, others, options)?;
        let channel = channel(&runtime);
        let servers = if let Topology::Cluster(_) = address.topology {
            Servers::Cluster(Cluster::connect(address, options, channel, runtime).await?)
        } else {
            let link = Link::connect(address, options, channel, runtime).await?;
            Servers::One(Arc::new(Node::new(link)))
        };
        Ok(Self { servers, acks: options.acks })
    }

    /// Refuses a URL that names no server, without a connection.
    pub(crate) fn check(url: &Url, others: &[String]) -> Result<()> {
        Address::read(url, others).map(drop)
    }

    /// A node of a quorum, which is connected to when that can be, and the run of its server, no two of which have the same. Before it
    /// votes it has to know that, and since when.
    pub(crate) fn of_quorum(
        url: &Url,
        options: &Options,
        runtime: RuntimeHandle,
    ) -> Result<(Self, impl Future<Output = Result<String>> + Send + use<>)> {
        let (address, channel) = (Address::parse(url, &[], options)?, channel(&runtime));
        let link = Link::begin(address, options, channel, runtime, None);
        let node = Arc::new(Node::of_quorum(link));
        let met = Arc::clone(&node);
        let store = Self { servers: Servers::One(node), acks: options.acks };
        Ok((store, async move { met.run_id().await }))
    }

    /// The key that says who holds a mutex, for people who look with their own tools.
    pub fn holder_key(lock: &LockKey) -> String {
        super::keys::holder_key(lock).into_owned()
    }

    /// The key of the record that lies beside a lock, for people who look with their own tools.
    pub fn record_key(lock: &LockKey) -> String {
        super::keys::record_key(lock)
    }

    fn address(&self) -> &Address {
        match &self.servers {
            Servers::One(node) => &node.link.address,
            Servers::Cluster(cluster) => &cluster.address,
        }
    }

    fn hang_up(&self) {
        match &self.servers {
            Servers::One(node) => node.link.close(),
            Servers::Cluster(cluster) => cluster.close(),
        }
    }
}

/// Where a client listens: as unguessable as an owner id, and as short-lived.
fn channel(runtime: &RuntimeHandle) -> String {
    format!("fencelock:c:{}", OwnerId::draw(&**runtime))
}

impl LeaseStore for RedisStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("redis", Fence::ClockBounded)
            .with_guarantees(guarantees::guarantees(
                matches!(self.servers, Servers::Cluster(_)),
                self.acks,
            ))
            .with_dialects(DIALECTS)
    }

    fn warning(&self) -> Option<&'static str> {
        match &self.servers {
            Servers::One(node) => *node.link.warning.lock(),
            Servers::Cluster(cluster) => cluster.warning(),
        }
    }

    async fn step(&self, batch: &[Step]) -> Vec<Answer> {
        match &self.servers {
            Servers::One(node) => node.carry_out(batch, &Request::plan(batch)).await,
            Servers::Cluster(cluster) => cluster.carry_out(batch, false).await,
        }
    }

    async fn step_all(&self, batch: &[Step]) -> Vec<Answer> {
        if let Some(refused) = Request::apart(batch) {
            return refused;
        }
        match &self.servers {
            Servers::One(node) => node.carry_out(batch, &[Request::all(batch)]).await,
            Servers::Cluster(cluster) => cluster.carry_out(batch, true).await,
        }
    }

    async fn listen(&self, sink: NoticeSink) -> Result<()> {
        match &self.servers {
            Servers::One(node) => node.listen(sink).await,
            Servers::Cluster(cluster) => cluster.listen(sink).await,
        }
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        let names = match &self.servers {
            Servers::One(node) => {
                let mut names = std::collections::BTreeSet::new();
                node.names(prefix, &mut names).await?;
                names
            }
            Servers::Cluster(cluster) => cluster.names(prefix).await?,
        };
        Ok(names.into_iter().collect())
    }

    fn cells(&self) -> Option<Cells<'_>> {
        Some(Cells::of(self))
    }

    async fn close(&self) {
        self.hang_up();
    }
}

impl CellStore for RedisStore {
    async fn read(&self, key: &CellKey) -> Result<Look> {
        let call = CellCall::look(key);
        call.seen(self.call(&call).await.map_err(|failure| failure.error)?)
    }

    async fn compare_and_set(&self, change: &Change) -> Result<Swap, Failure> {
        let call = CellCall::swap(change);
        call.swapped(self.call(&call).await?)
    }
}

impl RedisStore {
    /// Runs a script on one cell, where it lies.
    async fn call(&self, call: &CellCall<'_>) -> Result<Value, Failure> {
        match &self.servers {
            Servers::One(node) => {
                let live = node.link.live().await.map_err(Failure::refused)?;
                let reply = node.run(&live, call, false).await?;
                call.accepted(reply, self.address()).inspect_err(|failure| {
                    if fault::is_demotion(&failure.error) {
                        node.link.demote(&live);
                    }
                })
            }
            Servers::Cluster(cluster) => call.accepted(cluster.run(call).await?, self.address()),
        }
    }
}

impl Drop for RedisStore {
    fn drop(&mut self) {
        self.hang_up();
    }
}
