//! A ZooKeeper of three members of a test's own.

use std::fmt::Write;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use crate::proxy::Proxy;
use crate::servers::Authority;
use crate::zookeeper::ZookeeperServer;
use fencelock_servers::own::free_port;

/// How long the others may take to agree on a leader.
const PATIENCE: Duration = Duration::from_secs(30);

/// A member that is silent for so many ticks of 200 ms is left by the others.
const SYNC_LIMIT: u32 = 10;

/// Three members, each of which can be killed and started again with its data.
pub struct ZookeeperEnsemble {
    members: Vec<ZookeeperServer>,
    /// Where they speak TLS, if they do.
    secure: Vec<u16>,
    /// The ways from one member to another, if they can be ended.
    ways: Vec<(usize, usize, Proxy)>,
}

impl ZookeeperEnsemble {
    /// Starts three members that have agreed on a leader.
    pub fn start() -> Self {
        Self::start_with(None, SYNC_LIMIT, false)
    }

    /// Starts three members of which a leader takes 30 s to see that the others have left it, as [`Self::leave_leader`] has them do.
    pub fn start_with_a_late_leader() -> Self {
        Self::start_with(None, 15 * SYNC_LIMIT, true)
    }

    /// Starts three members that speak TLS too, with the certificate of this authority.
    pub fn start_secure(authority: &Authority) -> Self {
        Self::start_with(Some(authority), SYNC_LIMIT, false)
    }

    fn start_with(authority: Option<&Authority>, sync_limit: u32, with_ways: bool) -> Self {
        for _ in 0..5 {
            let ports = [1, 2, 3].map(|id| (id, free_port(), free_port(), free_port()));
            let mut ways = Vec::new();
            let mut way = |from: usize, to: usize, port: u16| {
                if !with_ways || from == to {
                    return port;
                }
                let proxy = Handle::current().block_on(Proxy::before(port));
                let way = proxy.url().port().expect("a proxy has a port");
                ways.push((from - 1, to - 1, proxy));
                way
            };
            let settings = ports.map(|(from, ..)| {
                let mut settings = format!("initLimit=50\nsyncLimit={sync_limit}\n");
                for (to, _, leader, election) in ports {
                    let (leader, election) = (way(from, to, leader), way(from, to, election));
                    let _ = writeln!(settings, "server.{to}=127.0.0.1:{leader}:{election}");
                }
                settings
            });
            // None of them answers before two are there.
            let secure = authority.map(|_| ports.map(|_| free_port()));
            let starting = ports.map(|(id, port, ..)| {
                let secure = authority.zip(secure.map(|ports| ports[id - 1]));
                let more = secure.map(|(authority, port)| authority.settings(port));
                let settings = settings[id - 1].clone() + &more.unwrap_or_default();
                thread::spawn(move || ZookeeperServer::start_member(port, id, settings))
            });
            let started = starting.map(|thread| thread.join().expect("a member answers"));
            if let Some(members) = started.into_iter().collect() {
                let secure = secure.map(Vec::from).unwrap_or_default();
                return Self { members, secure, ways };
            }
        }
        panic!("members ended five times right after their start; see their logs");
    }

    /// The URL of all members over TLS, with locks behind a chroot.
    pub fn secure_url(&self, chroot: &str) -> String {
        let hosts: Vec<_> = self.secure.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        format!("zookeepers://{}/{chroot}", hosts.join(","))
    }

    /// The URL of all members, with locks behind a chroot.
    pub fn url(&self, chroot: &str) -> String {
        let hosts: Vec<_> =
            self.members.iter().map(|member| format!("127.0.0.1:{}", member.port())).collect();
        format!("zookeeper://{}/{chroot}", hosts.join(","))
    }

    /// The entries of all locks behind a chroot.
    pub fn entries(&self, chroot: &str) -> Vec<String> {
        Handle::current().block_on(self.members[0].entries(&format!("/{chroot}")))
    }

    /// Ends the session of one of those who hold or wait behind a chroot, as its expiry does. When that was.
    pub fn end_session(&self, chroot: &str, which: usize) -> Instant {
        let give_up = Instant::now() + PATIENCE;
        while Instant::now() < give_up {
            let entries = self.entries(chroot);
            let Some(entry) = entries.get(which % entries.len().max(1)) else { continue };
            let stat = async { self.members[0].admin().await.check_stat(entry).await };
            // Whoever has it may be quicker than this.
            if let Ok(Some(stat)) = Handle::current().block_on(stat) {
                self.members[0].expire(stat.ephemeral_owner);
                return Instant::now();
            }
        }
        panic!("nobody holds or waits");
    }

    /// Kills the leader. Which member it was, and when another one led.
    pub fn kill_leader(&mut self) -> (usize, Instant) {
        let old = self.members.iter().position(ZookeeperServer::leads).expect("somebody leads");
        self.members[old].kill_hard();
        let give_up = Instant::now() + PATIENCE;
        while !self.members.iter().any(ZookeeperServer::leads) {
            assert!(Instant::now() < give_up, "no other member leads");
            thread::sleep(Duration::from_millis(5));
        }
        (old, Instant::now())
    }

    /// The port of the member that leads, and those of the other two.
    pub fn ports(&self) -> (u16, [u16; 2]) {
        let at = self.members.iter().position(ZookeeperServer::leads).expect("somebody leads");
        (self.members[at].port(), [1, 2].map(|by| self.members[(at + by) % 3].port()))
    }

    /// Has the others leave the leader: they are disconnected from it and connect to it no more, of which it hears nothing. When this ends, it
    /// believes to lead, and another one leads.
    pub fn leave_leader(&mut self) {
        let old = self.members.iter().position(ZookeeperServer::leads).expect("somebody leads");
        for (from, to, way) in std::mem::take(&mut self.ways) {
            if to == old {
                way.leave();
            } else if from == old {
                way.cut();
            } else {
                self.ways.push((from, to, way));
            }
        }
        let give_up = Instant::now() + PATIENCE;
        while self.members.iter().filter(|member| member.leads()).count() < 2 {
            assert!(Instant::now() < give_up, "no other member leads");
            assert!(self.members[old].leads(), "it has heard of it");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Starts a member that was killed again.
    pub fn rejoin(&mut self, at: usize) {
        self.members[at].start_again();
    }

    /// Kills all members but one.
    pub fn lose_majority(&mut self) {
        self.members[1..].iter_mut().for_each(ZookeeperServer::kill_hard);
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
