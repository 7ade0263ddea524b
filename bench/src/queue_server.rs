//! A store with entry queues: an etcd or a `ZooKeeper` of the bench's own, of one member, and how many requests it has had.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use fencelock_servers::own::free_port;

use crate::Result;
use crate::machine::{SERVER, pinned};

/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long one question may take: a server that only just listens may leave a connection without an answer.
const ANSWER: Duration = Duration::from_secs(5);

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    Etcd,
    Zookeeper,
}

/// See the module; stopped when this is dropped.
pub(crate) struct QueueServer {
    store: Store,
    process: Child,
    port: u16,
}

impl Store {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::Zookeeper => "zookeeper",
        }
    }
}

impl QueueServer {
    /// Starts it on a free port. Nothing waits for the disk: that is measured neither of us nor of others.
    pub(crate) fn start(store: Store, room: &Path) -> Result<Self> {
        // Somebody else may have taken the port before it did: then the next one.
        let mut ended = String::new();
        for _ in 0..5 {
            match Self::launch(store, room)? {
                Ok(server) => return Ok(server),
                Err(log) => ended = log,
            }
        }
        Err(format!("{} ended five times right after its start: {ended}", store.name()).into())
    }

    /// The server, or its last words if it ended.
    fn launch(store: Store, room: &Path) -> Result<std::result::Result<Self, String>> {
        let folder = tempfile::tempdir_in(room)?.keep();
        let (port, members) = (free_port(), free_port());
        let mut command = match store {
            Store::Etcd => {
                let (clients, members) =
                    (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{members}"));
                let mut command = pinned(SERVER, Path::new("etcd"));
                command
                    .args(["--name", "one", "--data-dir", "data", "--unsafe-no-fsync"])
                    .args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients])
                    .args(["--listen-peer-urls", &members])
                    .args(["--initial-advertise-peer-urls", &members])
                    .args(["--initial-cluster", &format!("one={members}")]);
                command
            }
            Store::Zookeeper => {
                let mut settings = format!("dataDir={}\n", folder.join("data").display());
                writeln!(settings, "clientPort={port}\nclientPortAddress=127.0.0.1")?;
                settings +=
                    "admin.enableServer=false\n4lw.commands.whitelist=*\nmaxClientCnxns=0\n";
                std::fs::write(folder.join("zoo.cfg"), settings)?;
                let mut command = pinned(SERVER, Path::new("java"));
                command
                    .args(["-Dzookeeper.forceSync=no", "-cp", "/usr/share/java/zookeeper.jar"])
                    .args(["org.apache.zookeeper.server.quorum.QuorumPeerMain", "zoo.cfg"]);
                command
            }
        };
        let log = File::create(folder.join("log"))?;
        command.current_dir(&folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let name = store.name();
        let process = command
            .spawn()
            .map_err(|error| format!("{name} cannot be started ({error}); install it"))?;
        let mut server = Self { store, process, port };
        let last_words = || {
            let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
            log.lines().rev().take(5).collect::<Vec<_>>().join(" | ")
        };
        let give_up = Instant::now() + PATIENCE;
        while let Err(error) = server.requests() {
            if server.process.try_wait()?.is_some() {
                return Ok(Err(last_words()));
            }
            if Instant::now() > give_up {
                return Err(format!("{name} does not answer: {error}; {}", last_words()).into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(Ok(server))
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// How many requests it has had of clients: calls and messages of streams on etcd, packets on `ZooKeeper`.
    pub(crate) fn requests(&self) -> Result<u64> {
        let (question, counter) = match self.store {
            Store::Etcd => ("GET /metrics HTTP/1.0\r\n\r\n", "grpc_server_msg_received_total"),
            Store::Zookeeper => ("mntr", "zk_packets_received"),
        };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(ANSWER))?;
        stream.write_all(question.as_bytes())?;
        let mut told = String::new();
        stream.read_to_string(&mut told)?;
        let counts = told.lines().filter(|line| line.starts_with(counter));
        let counts = counts.filter_map(|line| line.split_whitespace().last()?.parse::<f64>().ok());
        let counts: Vec<f64> = counts.collect();
        if counts.is_empty() {
            return Err(format!("{} does not tell {counter}", self.store.name()).into());
        }
        Ok(counts.iter().sum::<f64>() as u64)
    }
}

impl Drop for QueueServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
