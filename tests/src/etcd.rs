//! An etcd of a test's own.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use url::Url;

use crate::ended;
use crate::freeze::{freeze, resume};
use crate::session_store::SessionServer;
use fencelock_servers::own::{folder, free_port};

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running `etcd` of one member on free loopback ports; it ends when this is dropped.
pub struct EtcdServer {
    process: Child,
    port: u16,
    peers: u16,
    arguments: Vec<String>,
    folder: TempDir,
    /// Whom `etcdctl` runs as, once the server asks for that.
    user: Option<&'static str>,
}

const MANUAL: &str = include_str!("../../docs/reference/etcd.md");

/// The user with all rights, where there are users.
const ROOT: &str = "root:toor";
/// The user with the rights that fencelock needs, behind the prefix [`PREFIX`].
const CLERK: &str = "clerk:hunter2";
/// Where the clerk's locks lie.
pub const PREFIX: &str = "p";

impl EtcdServer {
    /// Starts a server.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with more arguments. Clients speak TLS with it if it has a certificate.
    pub fn start_with(arguments: &[&str]) -> Self {
        let arguments: Vec<_> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let folder = folder(None).expect("a temporary folder can be made");
        // Between the search for a free port and the server's own bind somebody else may take it: then the next one.
        for _ in 0..5 {
            let (port, peers) = (free_port(), free_port());
            if let Some(process) = launch(port, peers, &arguments, &folder) {
                return Self { process, port, peers, arguments, folder, user: None };
            }
        }
        panic!("etcd ended five times right after its start; see its log in the test's output");
    }

    /// Starts a member of a cluster on these ports, for clients and for members; `None` if it ended instead.
    pub(crate) fn start_member(port: u16, peers: u16, arguments: Vec<String>) -> Option<Self> {
        let folder = folder(None).expect("a temporary folder can be made");
        let process = launch(port, peers, &arguments, &folder)?;
        Some(Self { process, port, peers, arguments, folder, user: None })
    }

    /// Starts a server that asks for a user, and knows one with the rights of `docs/reference/etcd.md`.
    pub fn start_with_rights() -> Self {
        // Each client's password is checked: as quickly as can be.
        let mut server = Self::start_with(&["--bcrypt-cost", "4"]);
        let clerk = CLERK.split(':').next().unwrap_or_default();
        for user in [ROOT, CLERK] {
            server.ctl(&["user", "add", user]);
        }
        server.ctl(&["role", "add", "root"]);
        server.ctl(&["user", "grant-role", "root", "root"]);
        let lines: Vec<_> =
            MANUAL.lines().filter_map(|line| line.strip_prefix("etcdctl ")).collect();
        assert_eq!(lines.len(), 3, "docs/reference/etcd.md says how rights are given");
        for line in lines {
            let line = line.replace("PREFIX", PREFIX).replace("USER", clerk);
            server.ctl(&line.split(' ').collect::<Vec<_>>());
        }
        server.ctl(&["auth", "enable"]);
        server.user = Some(ROOT);
        server
    }

    /// Where the locks of that user lie.
    pub fn url_with_rights(&self) -> Url {
        let port = self.port;
        format!("etcd://{CLERK}@127.0.0.1:{port}/{PREFIX}").parse().expect("this is a URL")
    }

    /// Ends the server at once, as `kill -9` does.
    pub fn kill_hard(&mut self) {
        let _ = self.process.kill();
        self.process.wait().expect("a killed child can be waited for");
    }

    /// Starts it again on its port, with its data.
    pub fn start_again(&mut self) {
        let started = launch(self.port, self.peers, &self.arguments, &self.folder);
        self.process = started.expect("etcd starts again");
    }

    /// Freezes the server (SIGSTOP).
    pub fn stop(&self) {
        freeze(&self.process);
    }

    /// Lets a frozen server go on (SIGCONT).
    pub fn cont(&self) {
        resume(&self.process);
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where locks lie behind a prefix.
    pub fn url(&self, prefix: &str) -> Url {
        url(self.port, prefix)
    }

    /// Runs `etcdctl` with these words; what it prints.
    pub fn ctl(&self, words: &[&str]) -> String {
        let output = ended::output(&mut self.ctl_command(words));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "etcdctl {words:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// `etcdctl` with these words, not yet run.
    pub fn ctl_command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("etcdctl");
        let endpoint = format!("127.0.0.1:{}", self.port);
        command.env("ETCDCTL_API", "3").args(["--endpoints", &endpoint]);
        command.args(self.user.iter().flat_map(|user| ["--user", user])).args(words);
        command
    }

    /// The keys that begin with this.
    pub fn keys(&self, prefix: &str) -> Vec<String> {
        let told = self.ctl(&["get", "--prefix", "--keys-only", prefix]);
        told.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// How many requests of this method the server has begun with.
    pub fn requests(&self, method: &str) -> u64 {
        let told = get(self.port, "/metrics").expect("the server tells its figures");
        let name = format!("grpc_method=\"{method}\"");
        let line = told
            .lines()
            .find(|line| line.starts_with("grpc_server_started_total") && line.contains(&name));
        let number = line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        number.expect("the server counts its requests") as u64
    }
}

impl SessionServer for EtcdServer {
    fn url(&self, prefix: &str) -> Url {
        self.url(prefix)
    }

    fn stop(&self) {
        self.stop();
    }

    fn cont(&self) {
        self.cont();
    }

    fn kill_hard(&mut self) {
        self.kill_hard();
    }

    fn start_again(&mut self) {
        self.start_again();
    }

    async fn entries_of_x(&self, prefix: &str) -> Vec<String> {
        self.keys(&format!("{prefix}/x/"))
    }
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        self.kill_hard();
    }
}

/// Where locks lie behind a prefix on the server of this port.
pub fn url(port: u16, prefix: &str) -> Url {
    format!("etcd://127.0.0.1:{port}/{prefix}").parse().expect("this is a URL")
}

/// Starts the server and waits until it answers; `None` if it ended instead.
fn launch(port: u16, peers: u16, arguments: &[String], folder: &TempDir) -> Option<Child> {
    let secure = arguments.iter().any(|word| word == "--cert-file");
    let clients = format!("{}://127.0.0.1:{port}", if secure { "https" } else { "http" });
    let peers = format!("http://127.0.0.1:{peers}");
    let log = folder.path().join("etcd.log");
    let mut command = Command::new("etcd");
    command
        .args(["--name", "one", "--data-dir", "data", "--unsafe-no-fsync"])
        .args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients])
        .args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers])
        .args(["--initial-cluster", &format!("one={peers}")])
        // A lease of one second needs a leader that is missed sooner.
        .args(["--heartbeat-interval", "50", "--election-timeout", "500"])
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&log).expect("the folder can be written to"));
    let mut process = command.spawn().unwrap_or_else(|error| {
        panic!("`etcd` cannot be run ({error}): install etcd-server and etcd-client")
    });
    let give_up = Instant::now() + PATIENCE;
    while Instant::now() < give_up {
        if process.try_wait().expect("a child can be asked for").is_some() {
            eprintln!("{}", std::fs::read_to_string(&log).unwrap_or_default());
            return None;
        }
        let there = if secure {
            std::fs::read_to_string(&log).unwrap_or_default().contains("ready to serve client")
        } else {
            get(port, "/health").is_some_and(|told| told.contains(r#""health":"true""#))
        };
        if there {
            return Some(process);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = process.kill();
    let _ = process.wait();
    panic!("`etcd` did not answer on port {port} within {PATIENCE:?}");
}

/// The answer of a server over plain HTTP.
fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
    let mut told = String::new();
    stream.read_to_string(&mut told).ok()?;
    Some(told)
}
