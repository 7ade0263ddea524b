//! An etcd of three members of a test's own.

use std::thread;
use std::time::{Duration, Instant};

use crate::ended;
use crate::etcd::EtcdServer;
use fencelock_servers::own::free_port;

const NAMES: [&str; 3] = ["one", "two", "three"];
/// How long the others may take to agree on a leader.
const PATIENCE: Duration = Duration::from_secs(20);

/// Three members, each of which can be killed and started again with its data.
pub struct EtcdCluster {
    members: Vec<EtcdServer>,
}

impl EtcdCluster {
    /// Starts three members that have agreed on a leader.
    pub fn start() -> Self {
        for _ in 0..5 {
            let ports = NAMES.map(|_| (free_port(), free_port()));
            let all = NAMES.iter().zip(ports);
            let all: Vec<_> =
                all.map(|(name, (_, peers))| format!("{name}=http://127.0.0.1:{peers}")).collect();
            let all = all.join(",");
            // None of them answers before two are there.
            let starting = NAMES.map(|name| {
                let words = ["--name", name, "--initial-cluster", &all].map(str::to_owned);
                let at = NAMES.iter().position(|known| *known == name).unwrap_or_default();
                let (port, peers) = ports[at];
                thread::spawn(move || EtcdServer::start_member(port, peers, words.into()))
            });
            let started = starting.map(|thread| thread.join().expect("a member answers"));
            if let Some(members) = started.into_iter().collect() {
                return Self { members };
            }
        }
        panic!("members ended five times right after their start; see their logs");
    }

    /// The URL of all members, with locks behind a prefix.
    pub fn url(&self, prefix: &str) -> String {
        let hosts: Vec<_> =
            self.members.iter().map(|member| format!("127.0.0.1:{}", member.port())).collect();
        format!("etcd://{}/{prefix}", hosts.join(","))
    }

    /// The keys that begin with this.
    pub fn keys(&self, prefix: &str) -> Vec<String> {
        self.members[0].keys(prefix)
    }

    /// Ends the session of one of the clients behind a prefix, as its expiry does. When that was.
    pub fn end_session(&mut self, prefix: &str, which: usize) -> Instant {
        let folder = format!("{prefix}/!session!");
        let sessions = self.keys(&folder);
        let lease = &sessions[which % sessions.len()][folder.len()..];
        self.members[0].ctl(&["lease", "revoke", lease]);
        Instant::now()
    }

    /// The member that leads; none if those who are asked know of none.
    fn leader(&self, but: Option<usize>) -> Option<usize> {
        let asked = (0..NAMES.len()).filter(|at| Some(*at) != but);
        let mut leads = asked.filter(|at| {
            let told = ended::output(
                &mut self.members[*at].ctl_command(&["endpoint", "status", "-w", "json"]),
            );
            let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap_or_default();
            let status = &told[0]["Status"];
            let (member, leader) = (&status["header"]["member_id"], &status["leader"]);
            member.is_u64() && member == leader
        });
        leads.next()
    }

    /// Kills the leader. Which member it was, and when another one led.
    pub fn kill_leader(&mut self) -> (usize, Instant) {
        let old = self.leader(None).expect("somebody leads");
        self.members[old].kill_hard();
        let give_up = Instant::now() + PATIENCE;
        while self.leader(Some(old)).is_none() {
            assert!(Instant::now() < give_up, "no other member leads");
            thread::sleep(Duration::from_millis(5));
        }
        (old, Instant::now())
    }

    /// Lets the leader stand still for so long.
    pub fn freeze_leader(&self, long: Duration) {
        let leader = &self.members[self.leader(None).expect("somebody leads")];
        leader.stop();
        thread::sleep(long);
        leader.cont();
    }

    /// Starts a member that was killed again.
    pub fn rejoin(&mut self, at: usize) {
        self.members[at].start_again();
    }

    /// Kills all members but one.
    pub fn lose_majority(&mut self) {
        self.members[1..].iter_mut().for_each(EtcdServer::kill_hard);
    }

    /// Starts them again, at once: none answers before most are there.
    pub fn regain_majority(&mut self) {
        thread::scope(|scope| {
            for member in &mut self.members[1..] {
                scope.spawn(|| member.start_again());
            }
        });
    }
}
