//! A master with replicas under sentinels.

use std::collections::HashMap;
use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::redis::{RedisServer, admin, free_port, program, start};

/// What the sentinels call the master.
const MASTER: &str = "mymaster";
/// A master that does not answer for so long is down.
const DOWN_AFTER: u32 = 300;
/// How many sentinels must miss the master before one begins a failover.
const LEADER: u32 = 2;
/// More than there are: such a sentinel only votes.
const FOLLOWER: u32 = 4;
/// How long the servers may take to find together.
const PATIENCE: Duration = Duration::from_secs(30);

/// One master, two replicas, three sentinels; they end when this is dropped.
pub struct SentinelSet {
    /// The servers, whatever their part is now.
    pub nodes: Vec<RedisServer>,
    sentinels: Vec<Sentinel>,
}

/// What a sentinel knows of somebody.
type Facts = HashMap<String, String>;

struct Sentinel {
    process: Child,
    port: u16,
    /// Its configuration, which it writes itself, and its log.
    folder: TempDir,
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Default for SentinelSet {
    fn default() -> Self {
        Self::start([LEADER; 3])
    }
}

impl SentinelSet {
    /// One of whose sentinels alone begins failovers: no two of them can lead in turn and promote a replica each, which
    /// sentinels take ten seconds to mend.
    pub fn with_one_leader() -> Self {
        Self::start([LEADER, FOLLOWER, FOLLOWER])
    }

    /// Starts them, and waits until every sentinel knows the others and the replicas.
    fn start(quorums: [u32; 3]) -> Self {
        let mut set = Self { nodes: Vec::new(), sentinels: Vec::new() };
        set.nodes.push(RedisServer::start_with(&words(None)));
        let port = set.nodes[0].port();
        for _ in 0..2 {
            set.nodes.push(RedisServer::start_with(&words(Some(&format!("127.0.0.1 {port}")))));
        }
        set.until("the replicas are in step", |set| {
            let master = set.nodes[0].info("replication");
            master.matches("state=online").count() == 2
        });
        set.sentinels = quorums.map(|quorum| sentinel(port, quorum)).into();
        set.until("the sentinels know each other", Self::is_known);
        set
    }

    /// Where clients ask: the sentinels and the master's name.
    pub fn url(&self) -> String {
        let hosts: Vec<_> =
            self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port)).collect();
        format!("redis+sentinel://{}/{MASTER}", hosts.join(","))
    }

    /// Which of the nodes is the master, as most sentinels say.
    pub fn master(&self) -> usize {
        let ports = self.sentinels.iter().map(Sentinel::master);
        let mut ports: Vec<_> = ports.collect();
        ports.sort_unstable();
        let port = ports[ports.len() / 2];
        self.nodes.iter().position(|node| node.port() == port).expect("the master is a node")
    }

    /// Kills the master and waits until another node has taken over; when that was, and which it is.
    pub fn fail_over(&mut self) -> (Instant, usize) {
        let old = self.master();
        self.nodes[old].kill_hard();
        self.taken_over(old)
    }

    /// Waits until another node has taken over from this one; when that was, and which it is.
    pub fn taken_over(&self, old: usize) -> (Instant, usize) {
        let give_up = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < give_up, "nobody took over{}", self.logs());
            let (now, new) = (Instant::now(), self.master());
            if new != old && self.nodes[new].info("replication").contains("role:master") {
                return (now, new);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Starts a dead node again, as a replica of the master, and waits until all are in step. Before that every sentinel has
    /// to have ended the failover: to one that has not, this node would be the master come back.
    pub fn rejoin(&mut self, dead: usize) {
        let port = self.nodes[self.master()].port();
        self.until("the sentinels agree on a master", |set| {
            set.sentinels.iter().all(|sentinel| sentinel.master() == port)
        });
        self.nodes[dead].restart_with(&words(Some(&format!("127.0.0.1 {port}"))));
        self.until("all nodes are in step", |set| {
            let master = set.nodes[set.master()].info("replication");
            master.matches("state=online").count() == 2
        });
        self.until("the sentinels know all nodes again", Self::is_known);
    }

    /// Whether every sentinel knows the others and both replicas, and misses nobody.
    fn is_known(&self) -> bool {
        self.sentinels.iter().all(|sentinel| {
            let others = sentinel.ask::<Vec<Facts>>(&["SENTINELS", MASTER]);
            let replicas = sentinel.ask::<Vec<Facts>>(&["REPLICAS", MASTER]);
            let all = |facts: &[Facts], flags: &str| {
                facts.len() == 2 && facts.iter().all(|fact| fact["flags"] == flags)
            };
            let master = sentinel.ask::<Facts>(&["MASTER", MASTER]);
            master["flags"] == "master" && all(&others, "sentinel") && all(&replicas, "slave")
        })
    }

    /// What the sentinels wrote down last.
    fn logs(&self) -> String {
        let logs = self.sentinels.iter().map(|sentinel| {
            let log = fs::read_to_string(sentinel.folder.path().join("redis.log"));
            let log = log.unwrap_or_default();
            let lines: Vec<_> = log.lines().collect();
            lines[lines.len().saturating_sub(40)..].join("\n")
        });
        logs.fold(String::new(), |all, log| format!("{all}\n--- a sentinel:\n{log}"))
    }

    fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let give_up = Instant::now() + PATIENCE;
        while !is_so(self) {
            assert!(Instant::now() < give_up, "{what}: not so{}", self.logs());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// What a server is started with, the replica of a master or not.
fn words(master: Option<&str>) -> Vec<&str> {
    let own = ["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"];
    own.into_iter().chain(master.into_iter().flat_map(|master| ["--replicaof", master])).collect()
}

impl Sentinel {
    fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let mut connection = admin(self.port).expect("a sentinel takes connections");
        redis::cmd("SENTINEL").arg(words).query(&mut connection).expect("a sentinel answers")
    }

    fn master(&self) -> u16 {
        self.ask::<(String, u16)>(&["GET-MASTER-ADDR-BY-NAME", MASTER]).1
    }
}

fn sentinel(master: u16, quorum: u32) -> Sentinel {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for _ in 0..5 {
        let port = free_port();
        let lines = format!(
            "port {port}\nbind 127.0.0.1\nlogfile redis.log\n\
             sentinel monitor {MASTER} 127.0.0.1 {master} {quorum}\n\
             sentinel down-after-milliseconds {MASTER} {DOWN_AFTER}\n\
             sentinel failover-timeout {MASTER} 1000\n"
        );
        fs::write(folder.path().join("sentinel.conf"), lines)
            .expect("the folder can be written to");
        let mut command = program(&folder);
        command.args(["sentinel.conf", "--sentinel"]);
        if let Some(process) = start(&mut command, port, &folder) {
            return Sentinel { process, port, folder };
        }
    }
    panic!("a sentinel ended five times right after its start; see its log in the test's output")
}
