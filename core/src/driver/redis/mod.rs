//! The store on a Redis server (6 or newer, or what speaks its protocol), in the layout `plain`.
//!
//! The lock `K` is a string: the owner id as 32 hexadecimal digits, with an expiry. That is what redis-py,
//! node-redlock, redsync and many others write, so they exclude us and we them. Beside it, in the same hash slot, lies
//! one hash, the record `fencelock:{tag}:lock:K`, with everything else and an expiry of its own:
//!
//! | field | content |
//! |---|---|
//! | `h` | the holder of a mutex, packed: owner id, first token, since when, what it says of itself. Valid while `K` is that owner id |
//! | `c` | packed: the counter (the newest token drawn, or the highest floor seen), and until when the record is kept at least; that is negative while somebody waits or is buried or shares the lock, which sends every step the long way |
//! | `q` | the queue: owner ids in order, a comma after each |
//! | `w<owner>` | a ticket, packed: refreshed, passed over, ttl, block, since, mode, limit, channel, info |
//! | `m` | since when the lock is open (`fair: false`) |
//! | `x<owner>`, `b` | tombstones and their ends; when the first of them may be swept |
//!
//! A read-write lock or a semaphore has the mark `fencelock:read-write` or `fencelock:semaphore` under `K` while somebody
//! holds it, and of its record beside the above:
//!
//! | field | content |
//! |---|---|
//! | `k` | the kind it is in use as |
//! | `H` | packed: the soonest end, then owner id, mode and end of every hold |
//! | `h<owner>` | packed: its token, since when, the number of its newest change of mode, what it says of itself |
//! | `g` | where the client of an upgrade under way listens |
//!
//! On a node of a quorum there are also the field `v` (who is told when the lock is given back, packed: owner id, mode,
//! channel, since, refreshed, info) and one key for all locks, the birth mark `fencelock:born`: the run of the server, and
//! since when it has kept its data. A Vote costs a Take and a GET.
//!
//! A string under `K` that is neither is a foreign holder. No string under `K` is a free lock, whatever took it away.
//!
//! What a script costs, in commands as the server counts them (`INFO commandstats`), the call itself included:
//!
//! | script | commands |
//! |---|---|
//! | Take, nobody waits | 5: EVALSHA TIME HGET SET HSET; once in ten ttls GET HMGET PEXPIRE more |
//! | Free, nobody waits | 4: EVALSHA GET HGET DEL |
//! | Take that queues | 8: EVALSHA TIME HGET SET (fails) GET HMGET PTTL HSET; the second to wait HGET for SET |
//! | Free that hands over | 10: EVALSHA GET HGET TIME HMGET HGET HDEL PUBLISH HSET SET |
//! | Free with a Take of the same lock behind it, nobody waits | 6: EVALSHA TIME HGET GET HSET SET |
//! | the same, handing over and queueing | 11: EVALSHA TIME HGET GET HMGET HGET HDEL PUBLISH HSET SET; HGET more if others wait |
//! | Renew | 4 for each lock: GET HMGET PTTL PEXPIRE; EVALSHA TIME for each 600 locks |
//! | Free in a dialect with a prefix | 3 more where python-redis-lock waits (DEL LPUSH PEXPIRE), 1 where Spring may (PUBLISH) |
//! | Refresh | 6 for each lock: GET HMGET HGET HGET PTTL HSET; EVALSHA TIME for each 600 locks |
//!
//! An answer that is an error has changed nothing: scripts read, and so find what is no lock, before they write; their
//! first write is one that a server which takes none refuses. While memory is short, locks are released, handed over
//! and renewed, but neither taken nor queued for.

mod address;
mod birth;
mod cell;
mod cluster;
mod fault;
mod gate;
mod guarantees;
mod lane;
mod link;
mod nature;
mod neighbour;
mod node;
mod notice;
mod place;
mod request;
mod script;
mod sentinel;
#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
#[path = "no_tls.rs"]
mod tls;
mod wire;

use std::fmt;
use std::sync::Arc;

use url::Url;

use self::address::{Address, Topology};
use self::cluster::Cluster;
pub use self::gate::RedisGate;
use self::link::Link;
use self::node::{Node, fail};
use self::request::Request;
use crate::error::{Code, Error, Result};
use crate::options::Options;
use crate::port::{
    Action, Answer, Capabilities, Cells, Failure, Fence, Kind, LeaseStore, LockKey, NoticeSink,
    OwnerId, RuntimeHandle, Step,
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
        // Where this client listens: as unguessable as an owner id, and as short-lived.
        let channel = format!("fencelock:c:{}", OwnerId::draw(&*runtime));
        let servers = if let Topology::Cluster(_) = address.topology {
            Servers::Cluster(Cluster::connect(address, options, channel, runtime).await?)
        } else {
            let link = Link::connect(address, options, channel, runtime).await?;
            Servers::One(Arc::new(Node::new(link)))
        };
        Ok(Self { servers, acks: options.acks })
    }

    /// The run of the server, no two of which have the same. Before it votes it has to know that, and since when.
    pub(crate) async fn run_id(&self) -> Result<String> {
        match &self.servers {
            Servers::One(node) => node.run_id().await,
            Servers::Cluster(_) => Err(Error::internal("a node of a quorum is one server")),
        }
    }

    /// The key of the record that lies beside a lock, for people who look with their own tools.
    pub fn record_key(lock: &LockKey) -> String {
        place::record_key(lock.as_str())
    }

    /// Stops the clock of this client's scripts at this many microseconds since 1970, for tests of what takes seconds.
    #[cfg(feature = "sim")]
    pub async fn stop_clock(&self, now: u64) -> Result<()> {
        match &self.servers {
            Servers::One(node) => node.stop_clock(now).await,
            Servers::Cluster(_) => Err(Error::internal("the clocks of a cluster go on")),
        }
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

impl LeaseStore for RedisStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("redis", Fence::ClockBounded)
            .with_guarantees(guarantees::guarantees(&self.address().topology, self.acks))
            .with_dialects(&["plain"])
    }

    async fn step(&self, batch: &[Step]) -> Vec<Answer> {
        match &self.servers {
            Servers::One(node) => node.carry_out(batch, &Request::plan(batch)).await,
            Servers::Cluster(cluster) => cluster.carry_out(batch, false).await,
        }
    }

    async fn step_all(&self, batch: &[Step]) -> Vec<Answer> {
        let mutex =
            |step: &Step| step.kind == Kind::Mutex && matches!(step.action, Action::Take(_));
        if !batch.iter().all(mutex) {
            let message = "only mutexes are taken as one; others one after another";
            return fail(batch, &Failure::refused(Error::new(Code::Unsupported, message)));
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

impl Drop for RedisStore {
    fn drop(&mut self) {
        self.hang_up();
    }
}
