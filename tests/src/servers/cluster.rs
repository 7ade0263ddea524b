//! A cluster of three masters with a replica each.

use std::time::{Duration, Instant};

use redis::Value;

use super::authority::Authority;
use super::redis::{RedisServer, free_port_of_a_node};
use fencelock_servers::own::free_port;

const SLOTS: usize = 16384;
const MASTERS: usize = 3;
/// A node that does not answer for so long, in milliseconds, is failing.
const NODE_TIMEOUT: &str = "500";
/// How long the nodes may take to find together.
const PATIENCE: Duration = Duration::from_secs(30);

/// The arguments with which nodes speak TLS with each other.
const OVER_TLS: [&str; 4] = ["--tls-cluster", "yes", "--tls-replication", "yes"];

/// Three masters, three replicas; they end when this is dropped.
pub struct ClusterSet {
    /// The servers, whatever their part is now.
    pub nodes: Vec<RedisServer>,
}

/// A slot on its way from one master to another.
pub struct Move {
    /// Which node has it still.
    pub from: usize,
    /// Which node is going to have it.
    pub to: usize,
    slot: String,
}

/// The arguments with which a node is started.
fn words<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let own = ["--cluster-enabled", "yes", "--cluster-node-timeout", NODE_TIMEOUT];
    let replica = ["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"];
    let stays = ["--cluster-allow-replica-migration", "no"];
    [&own[..], &replica, &stays, arguments].concat()
}

impl Default for ClusterSet {
    fn default() -> Self {
        Self::start(&[])
    }
}

impl ClusterSet {
    /// Starts them, with more arguments, and waits until every replica is in step.
    pub fn start(arguments: &[&str]) -> Self {
        let node = || RedisServer::start_on(free_port_of_a_node, &words(arguments));
        Self::join((0..2 * MASTERS).map(|_| node()).collect(), &[])
    }

    /// The same, which speak TLS with each other and, on ports besides, with clients; and those ports.
    pub fn start_over_tls(authority: &Authority, arguments: &[&str]) -> (Self, Vec<u16>) {
        let node = || {
            let port = free_port_of_a_node();
            let own = authority.arguments(port, false);
            let own = own.iter().map(|word| &**word);
            let all: Vec<_> = own.chain(OVER_TLS).chain(words(arguments)).collect();
            (RedisServer::start_on(free_port, &all), port)
        };
        let (nodes, ports): (_, Vec<_>) = (0..2 * MASTERS).map(|_| node()).unzip();
        (Self::join(nodes, &ports), ports)
    }

    /// Makes nodes one cluster. They meet at their ports, or at these instead.
    fn join(nodes: Vec<RedisServer>, ports: &[u16]) -> Self {
        let set = Self { nodes };
        for (at, node) in set.nodes.iter().enumerate() {
            // Epochs that differ from the start need not be sorted out later.
            node.ask::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &(at + 1).to_string()]);
            if at < MASTERS {
                let first = |at: usize| SLOTS * at / MASTERS;
                let slots: Vec<_> =
                    (first(at)..first(at + 1)).map(|slot| slot.to_string()).collect();
                let words: Vec<_> = ["CLUSTER", "ADDSLOTS"]
                    .into_iter()
                    .chain(slots.iter().map(|slot| &**slot))
                    .collect();
                node.ask::<()>(&words);
            }
        }
        let port = ports.first().copied().unwrap_or(set.nodes[0].port()).to_string();
        for node in &set.nodes {
            node.ask::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port]);
        }
        set.until("the nodes know each other", |set| {
            set.nodes.iter().all(|node| {
                node.ask::<String>(&["CLUSTER", "INFO"]).contains("cluster_known_nodes:6")
            })
        });
        for at in MASTERS..2 * MASTERS {
            let master = set.id(at - MASTERS);
            set.nodes[at].ask::<()>(&["CLUSTER", "REPLICATE", &master]);
        }
        set.until("all is served and every replica in step", Self::is_whole);
        set
    }

    /// Where clients ask: some of the nodes.
    pub fn url(&self) -> String {
        let hosts = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port()));
        format!("redis+cluster://{}", hosts.collect::<Vec<_>>().join(","))
    }

    /// Which node has a key's slot.
    pub fn owner(&self, key: &str) -> usize {
        self.told_owner(key, None).expect("every slot has a master")
    }

    /// The same, as a node says that is not `but`; `None` while it knows of no master for the slot, as it may for a moment of a failover.
    fn told_owner(&self, key: &str, but: Option<usize>) -> Option<usize> {
        let asked = (0..self.nodes.len()).find(|at| Some(*at) != but).expect("there are many");
        let node = &self.nodes[asked];
        let slot: u16 = node.ask(&["CLUSTER", "KEYSLOT", key]);
        let Value::Array(ranges) = node.ask(&["CLUSTER", "SLOTS"]) else { panic!("no slots") };
        let port = ranges.into_iter().find_map(|range| {
            let (first, last, master): (u16, u16, Vec<Value>) = {
                let Value::Array(mut words) = range else { return None };
                words.truncate(3);
                redis::from_redis_value(Value::Array(words)).ok()?
            };
            let port = redis::from_redis_value(master.into_iter().nth(1)?).ok()?;
            (first..=last).contains(&slot).then_some(port)
        });
        Some(self.at(port?))
    }

    fn at(&self, port: u16) -> usize {
        self.nodes.iter().position(|node| node.port() == port).expect("the port is a node's")
    }

    /// The nodes that have slots now.
    pub fn masters(&self) -> Vec<&RedisServer> {
        let leads = |node: &&RedisServer| node.info("replication").contains("role:master");
        self.nodes.iter().filter(leads).collect()
    }

    /// A node's name among the others.
    pub fn id(&self, at: usize) -> String {
        self.nodes[at].ask(&["CLUSTER", "MYID"])
    }

    /// Kills the master of a key and waits until its replica has taken over; when that was.
    pub fn fail_over(&mut self, key: &str) -> (usize, Instant) {
        let old = self.owner(key);
        self.nodes[old].kill_hard();
        (old, self.taken_over(key, old))
    }

    /// Waits until a replica has taken over the key from this node; when that was.
    pub fn taken_over(&self, key: &str, old: usize) -> Instant {
        let give_up = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < give_up, "nobody took over");
            let (now, new) = (Instant::now(), self.told_owner(key, Some(old)));
            let is_ok = |new: usize| {
                self.nodes[new].ask::<String>(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
            };
            if new.is_some_and(|new| new != old && is_ok(new)) {
                return now;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Begins to move a key's slot. Keys that are not there are asked for where it goes.
    pub fn begin_move(&self, key: &str) -> Move {
        let from = self.owner(key);
        let to = (from + 1) % MASTERS;
        let slot = self.nodes[0].ask::<u16>(&["CLUSTER", "KEYSLOT", key]).to_string();
        let (source, target) = (self.id(from), self.id(to));
        self.nodes[to].ask::<()>(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source]);
        self.nodes[from].ask::<()>(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target]);
        Move { from, to, slot }
    }

    /// Takes all keys of the slot along.
    pub fn carry(&self, step: &Move) {
        let source = &self.nodes[step.from];
        let port = self.nodes[step.to].port().to_string();
        for key in source.ask::<Vec<String>>(&["CLUSTER", "GETKEYSINSLOT", &step.slot, "100"]) {
            // One that has ended meanwhile is gone: `NOKEY`.
            source.ask::<()>(&["MIGRATE", "127.0.0.1", &port, &key, "0", "1000"]);
        }
    }

    /// The slot has moved.
    pub fn end_move(&self, step: &Move) {
        let target = self.id(step.to);
        for node in [step.to, step.from] {
            self.nodes[node].ask::<()>(&["CLUSTER", "SETSLOT", &step.slot, "NODE", &target]);
        }
    }

    /// Starts a dead node again (it remembers who it is) and waits until all are in step.
    pub fn rejoin(&mut self, dead: usize) {
        self.nodes[dead].restart();
        self.until("all nodes are in step", Self::is_whole);
    }

    fn is_whole(&self) -> bool {
        let whole = |node: &RedisServer| {
            let info = node.ask::<String>(&["CLUSTER", "INFO"]);
            let replication = node.info("replication");
            let paired = replication.contains("state=online")
                || replication.contains("master_link_status:up");
            info.contains("cluster_state:ok") && info.contains("cluster_slots_fail:0") && paired
        };
        self.nodes.iter().all(whole)
    }

    fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let give_up = Instant::now() + PATIENCE;
        while !is_so(self) {
            assert!(Instant::now() < give_up, "{what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
