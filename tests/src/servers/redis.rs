//! A Redis server of a test's own.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use url::Url;

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running `redis-server` on a free loopback port, without persistence; it ends when this is dropped.
pub struct RedisServer {
    process: Child,
    port: u16,
    arguments: Vec<String>,
    folder: TempDir,
}

impl RedisServer {
    /// Starts a server.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with more arguments, `["--maxmemory", "2mb"]` for instance.
    pub fn start_with(arguments: &[&str]) -> Self {
        let arguments: Vec<_> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        // Between the search for a free port and the server's own bind somebody else may take it: then the next one.
        for _ in 0..5 {
            let port = free_port();
            if let Some(process) = launch(port, &arguments, &folder) {
                return Self { process, port, arguments, folder };
            }
        }
        panic!(
            "redis-server ended five times right after its start; see its log in the test's output"
        );
    }

    /// Ends the server at once, as `kill -9` does.
    pub fn kill_hard(&mut self) {
        let _ = self.process.kill();
        self.process.wait().expect("a killed child can be waited for");
    }

    /// Ends the server at once and starts it again on its port, empty.
    pub fn restart(&mut self) {
        self.kill_hard();
        self.process =
            launch(self.port, &self.arguments, &self.folder).expect("redis-server starts again");
    }

    /// Freezes the server (SIGSTOP).
    pub fn stop(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets a frozen server go on (SIGCONT).
    pub fn cont(&self) {
        self.signal(Signal::CONT);
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of the server.
    pub fn url(&self) -> Url {
        format!("redis://127.0.0.1:{}", self.port).parse().expect("this is a URL")
    }

    /// A blocking connection for the test itself.
    pub fn admin(&self) -> redis::Connection {
        let client = redis::Client::open(self.url()).expect("this is a Redis URL");
        client.get_connection().expect("the server takes connections")
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.process);
        kill_process(pid, signal).expect("the server is running");
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill_hard();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port can be had");
    listener.local_addr().expect("a bound socket has an address").port()
}

/// Starts the server and waits until it answers; `None` if it ended instead.
fn launch(port: u16, arguments: &[String], folder: &TempDir) -> Option<Child> {
    let binary = std::env::var("FENCELOCK_REDIS_SERVER").unwrap_or_else(|_| "redis-server".into());
    let mut process = Command::new(&binary)
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .arg("--dir")
        .arg(folder.path())
        .args(["--logfile", "redis.log"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| {
            panic!(
                "`{binary}` cannot be run ({error}): install redis-server, or set FENCELOCK_REDIS_SERVER to its path"
            )
        });
    let client = redis::Client::open(("127.0.0.1", port)).expect("this is a Redis address");
    let give_up = Instant::now() + PATIENCE;
    while Instant::now() < give_up {
        if process.try_wait().expect("a child can be asked for").is_some() {
            let log = std::fs::read_to_string(folder.path().join("redis.log"));
            eprintln!("{}", log.unwrap_or_default());
            return None;
        }
        if let Ok(mut connection) = client.get_connection() {
            match redis::cmd("PING").query::<String>(&mut connection) {
                Ok(_) => return Some(process),
                // It answers: what it wants is the test's affair.
                Err(error) if matches!(error.code(), Some("NOAUTH" | "NOPERM")) => {
                    return Some(process);
                }
                Err(_) => {}
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = process.kill();
    let _ = process.wait();
    panic!("`{binary}` did not answer on port {port} within {PATIENCE:?}");
}

/// What the server counted since `CONFIG RESETSTAT`, by command, but for the questions themselves.
pub fn commands(admin: &mut redis::Connection) -> BTreeMap<String, u64> {
    let info: String = redis::cmd("INFO").arg("commandstats").query(admin).unwrap();
    let counts = info.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((name.to_owned(), rest.split(',').next()?.parse().ok()?))
    });
    counts.filter(|(name, _)| name != "info" && !name.starts_with("config")).collect()
}
