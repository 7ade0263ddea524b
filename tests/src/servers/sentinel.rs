//! A master with replicas under sentinels.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::authority::Authority;
use super::redis::{RedisServer, admin, program, start};
use fencelock_servers::own::free_port;

/// The name of the master among the sentinels.
const MASTER: &str = "mymaster";
/// A master that does not answer for so long is down, in milliseconds: longer than a busy machine keeps one waiting.
const DOWN_AFTER: u32 = 1000;
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
    /// The arguments of each server, and the port by which the others know it.
    known: Vec<(Vec<String>, u16)>,
    sentinels: Vec<Sentinel>,
}

/// The demands of the servers and sentinels on those who connect.
#[derive(Clone, Copy, Default)]
pub struct Guard<'a> {
    /// They speak TLS with each other and, on ports besides, with clients, who see it is them by this authority.
    pub authority: Option<&'a Authority>,
    /// The password of the servers' default user.
    pub servers: Option<&'a str>,
    /// The password of the sentinels.
    pub sentinels: Option<&'a str>,
    /// More arguments of the servers.
    pub arguments: &'a [&'a str],
}

/// The fields by which a sentinel describes another instance.
type Facts = HashMap<String, String>;

struct Sentinel {
    process: Child,
    port: u16,
    /// Where clients ask: the same, or the port that speaks TLS.
    open: u16,
    password: Option<String>,
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
        Self::start([LEADER; 3], Guard::default())
    }
}

impl SentinelSet {
    /// One of whose sentinels alone begins failovers: no two of them can lead in turn and promote a replica each, which
    /// sentinels take ten seconds to mend.
    pub fn with_one_leader() -> Self {
        Self::guarded(Guard::default())
    }

    /// The same, and they ask who comes.
    pub fn guarded(guard: Guard<'_>) -> Self {
        Self::start([LEADER, FOLLOWER, FOLLOWER], guard)
    }

    /// Starts them, and waits until every sentinel knows the others and the replicas.
    fn start(quorums: [u32; 3], guard: Guard<'_>) -> Self {
        let mut set = Self { nodes: Vec::new(), known: Vec::new(), sentinels: Vec::new() };
        for _ in 0..3 {
            let tls = guard.authority.map(|authority| (authority, free_port()));
            let own = guard.words(tls.map(|(authority, port)| authority.arguments(port, false)));
            let master = set.known.first().map(|(_, port)| *port);
            let node = RedisServer::start_with(&words(&own, &of(master)));
            set.known.push((own, tls.map_or(node.port(), |(_, port)| port)));
            set.nodes.push(node);
        }
        set.until("the replicas are in step", |set| {
            let master = set.nodes[0].info("replication");
            master.matches("state=online").count() == 2
        });
        let port = set.known[0].1;
        set.sentinels = quorums.map(|quorum| sentinel(port, quorum, guard)).into();
        set.until("the sentinels know each other", Self::is_known);
        set
    }

    /// Where clients ask: the sentinels and the master's name.
    pub fn url(&self) -> String {
        let hosts: Vec<_> =
            self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.open)).collect();
        format!("redis+sentinel://{}/{MASTER}", hosts.join(","))
    }

    /// Which of the nodes is the master, as most sentinels say.
    pub fn master(&self) -> usize {
        let ports = self.sentinels.iter().map(Sentinel::master);
        let mut ports: Vec<_> = ports.collect();
        ports.sort_unstable();
        let port = ports[ports.len() / 2];
        self.known.iter().position(|(_, known)| *known == port).expect("the master is a node")
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
        let port = self.known[self.master()].1;
        self.until("the sentinels agree on a master", |set| {
            set.sentinels.iter().all(|sentinel| sentinel.master() == port)
        });
        self.nodes[dead].restart_with(&words(&self.known[dead].0, &of(Some(port))));
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

    /// The last lines of the sentinels' logs.
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

impl Guard<'_> {
    /// The arguments with which one of its servers is started.
    fn words(&self, tls: Option<[String; 10]>) -> Vec<String> {
        let encrypted = tls.into_iter().flatten().chain(self.over_tls().map(str::to_owned));
        let password = |name: &str| self.servers.map(|word| [name.to_owned(), word.to_owned()]);
        let passwords = ["--requirepass", "--masterauth"].into_iter().filter_map(password);
        let more = self.arguments.iter().map(|&word| word.to_owned());
        encrypted.chain(passwords.flatten()).chain(more).collect()
    }

    /// The arguments with which they speak TLS with each other.
    fn over_tls(&self) -> impl Iterator<Item = &'static str> {
        self.authority.map(|_| ["--tls-replication", "yes"]).into_iter().flatten()
    }

    /// The lines of a sentinel of its own that clients find at this port.
    fn lines(&self, open: u16) -> String {
        let tls = self.authority.map(|authority| authority.arguments(open, false));
        let words: Vec<_> =
            tls.into_iter().flatten().chain(self.over_tls().map(str::to_owned)).collect();
        let mut lines = String::new();
        for pair in words.chunks(2) {
            let _ = writeln!(lines, "{}", pair.join(" ").trim_start_matches("--"));
        }
        if let Some(word) = self.servers {
            let _ = writeln!(lines, "sentinel auth-pass {MASTER} {word}");
        }
        if let Some(word) = self.sentinels {
            let _ = writeln!(lines, "requirepass {word}\nsentinel sentinel-pass {word}");
        }
        lines
    }
}

/// The arguments that make a server the replica of a master at a port, or of none.
fn of(master: Option<u16>) -> Vec<String> {
    let words = |port: u16| ["--replicaof", "127.0.0.1", &port.to_string()].map(str::to_owned);
    master.map(words).into_iter().flatten().collect()
}

/// The arguments with which a server is started.
fn words<'a>(own: &'a [String], more: &'a [String]) -> Vec<&'a str> {
    let prompt = ["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"];
    prompt.into_iter().chain(own.iter().chain(more).map(|word| &**word)).collect()
}

impl Sentinel {
    fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let mut connection =
            admin(self.port, self.password.as_deref()).expect("a sentinel takes connections");
        redis::cmd("SENTINEL").arg(words).query(&mut connection).expect("a sentinel answers")
    }

    fn master(&self) -> u16 {
        self.ask::<(String, u16)>(&["GET-MASTER-ADDR-BY-NAME", MASTER]).1
    }
}

fn sentinel(master: u16, quorum: u32, guard: Guard<'_>) -> Sentinel {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for _ in 0..5 {
        let port = free_port();
        let open = if guard.authority.is_some() { free_port() } else { port };
        let lines = format!(
            "port {port}\nbind 127.0.0.1\nlogfile redis.log\n\
             sentinel monitor {MASTER} 127.0.0.1 {master} {quorum}\n\
             sentinel down-after-milliseconds {MASTER} {DOWN_AFTER}\n\
             sentinel failover-timeout {MASTER} 1000\n{}",
            guard.lines(open)
        );
        fs::write(folder.path().join("sentinel.conf"), lines)
            .expect("the folder can be written to");
        let mut command = program(&folder);
        command.args(["sentinel.conf", "--sentinel"]);
        if let Some(process) = start(&mut command, port, &folder) {
            let password = guard.sentinels.map(str::to_owned);
            return Sentinel { process, port, open, password, folder };
        }
    }
    panic!("a sentinel ended five times right after its start; see its log in the test's output")
}
