//! A Redis server of a test's own.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fencelock::driver::redis::RedisStore;
use fencelock::port::LockKey;
use tempfile::TempDir;
use url::Url;

use crate::freeze::{freeze, resume};
use fencelock_servers::own::{free_port, take_port};

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(20);

const MANUAL: &str = include_str!("../../../docs/reference/redis.md");

/// The words of `docs/reference/redis.md` for a user with all the rights fencelock needs, as they stand behind `ACL SETUSER`.
pub fn rights() -> Vec<&'static str> {
    lines_of_rights().next().expect("docs/reference/redis.md has the line").split(' ').collect()
}

/// The words it needs besides in the dialect `redisson`.
pub fn rights_as_redisson() -> Vec<&'static str> {
    lines_of_rights().nth(1).expect("docs/reference/redis.md has the line").split(' ').collect()
}

fn lines_of_rights() -> impl Iterator<Item = &'static str> {
    MANUAL.lines().filter_map(|line| line.strip_prefix("ACL SETUSER "))
}

/// The key that says who holds this mutex.
pub fn held(name: &str) -> String {
    RedisStore::holder_key(&LockKey::new(name))
}

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

    /// Starts a server with more arguments, `["--maxmemory", "2mb"]` for instance. With `--requirepass` the test itself
    /// greets it by that password.
    pub fn start_with(arguments: &[&str]) -> Self {
        Self::start_on(free_port, arguments)
    }

    /// The same on a port of the caller's choice.
    pub(super) fn start_on(choose: impl Fn() -> u16, arguments: &[&str]) -> Self {
        let arguments: Vec<_> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        // Between the search for a free port and the server's own bind somebody else may take it: then the next one.
        for _ in 0..5 {
            let port = choose();
            if let Some(process) = launch(port, &arguments, &folder) {
                return Self { process, port, arguments, folder };
            }
        }
        panic!(
            "redis-server ended five times right after its start; see its log in the test's output"
        );
    }

    /// Starts a server that knows the user of `docs/reference/redis.md`, for locks of any name, lists and every gate.
    pub fn start_with_rights() -> Self {
        let others = rights().into_iter().filter(|word| !word.starts_with('~'));
        let words: Vec<_> =
            ["--user"].into_iter().chain(others).chain(["~*", "+scan", "+incrby"]).collect();
        Self::start_with(&words)
    }

    /// The URL of that user.
    pub fn url_with_rights(&self) -> Url {
        format!("redis://fencelock:PASSWORD@127.0.0.1:{}", self.port)
            .parse()
            .expect("this is a URL")
    }

    /// Ends the server at once, as `kill -9` does.
    pub fn kill_hard(&mut self) {
        let _ = self.process.kill();
        self.process.wait().expect("a killed child can be waited for");
    }

    /// Ends the server at once and starts it again on its port, empty, with these arguments instead of those before.
    pub fn restart_with(&mut self, arguments: &[&str]) {
        self.arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        self.restart();
    }

    /// Ends the server at once and starts it again on its port, empty.
    pub fn restart(&mut self) {
        self.kill_hard();
        self.process =
            launch(self.port, &self.arguments, &self.folder).expect("redis-server starts again");
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

    /// The URL of the server.
    pub fn url(&self) -> Url {
        format!("redis://127.0.0.1:{}", self.port).parse().expect("this is a URL")
    }

    /// A blocking connection for the test itself.
    pub fn admin(&self) -> redis::Connection {
        admin(self.port, self.password()).expect("the server takes connections")
    }

    fn password(&self) -> Option<&str> {
        let at = self.arguments.iter().position(|word| word == "--requirepass")?;
        self.arguments.get(at + 1).map(|word| &**word)
    }

    /// A command that is answered.
    pub fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]).query(&mut self.admin()).expect("the server answers")
    }

    /// A section of what the server tells of itself.
    pub fn info(&self, section: &str) -> String {
        self.ask(&["INFO", section])
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill_hard();
    }
}

/// A port beside which the one that a node of a cluster adds, ten thousand further on, is free too. Of Redis 7 and newer
/// one could ask for another.
pub(super) fn free_port_of_a_node() -> u16 {
    loop {
        let port = free_port();
        if port.checked_add(10_000).is_some_and(take_port) {
            return port;
        }
    }
}

/// A blocking connection to a server of this machine.
pub(super) fn admin(port: u16, password: Option<&str>) -> redis::RedisResult<redis::Connection> {
    let greeting = password.map_or(String::new(), |password| format!(":{password}@"));
    redis::Client::open(format!("redis://{greeting}127.0.0.1:{port}"))?.get_connection()
}

/// The program, with what every one of its processes is given.
pub(super) fn program(folder: &TempDir) -> Command {
    let binary = std::env::var("FENCELOCK_REDIS_SERVER").unwrap_or_else(|_| "redis-server".into());
    let mut command = Command::new(binary);
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Starts the server and waits until it answers; `None` if it ended instead.
fn launch(port: u16, arguments: &[String], folder: &TempDir) -> Option<Child> {
    let mut command = program(folder);
    command
        .args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ])
        .args(["--logfile", "redis.log"])
        .args(arguments);
    start(&mut command, port, folder)
}

/// Starts a process and waits until it answers on its port; `None` if it ended instead.
pub(super) fn start(command: &mut Command, port: u16, folder: &TempDir) -> Option<Child> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut process = command.spawn().unwrap_or_else(|error| {
        panic!(
            "`{name}` cannot be run ({error}): install redis-server, or set FENCELOCK_REDIS_SERVER to its path"
        )
    });
    let give_up = Instant::now() + PATIENCE;
    while Instant::now() < give_up {
        if process.try_wait().expect("a child can be asked for").is_some() {
            let log = std::fs::read_to_string(folder.path().join("redis.log"));
            eprintln!("{}", log.unwrap_or_default());
            return None;
        }
        if let Ok(mut connection) = admin(port, None) {
            match redis::cmd("PING").query::<String>(&mut connection) {
                Ok(_) => return Some(process),
                // It answers: what it wants is the test's affair.
                Err(error)
                    if matches!(
                        error.code(),
                        Some("NOAUTH" | "NOPERM" | "MASTERDOWN" | "LOADING")
                    ) =>
                {
                    return Some(process);
                }
                Err(_) => {}
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = process.kill();
    let _ = process.wait();
    panic!("`{name}` did not answer on port {port} within {PATIENCE:?}");
}

/// The calls that the server counted since `CONFIG RESETSTAT`, by command, but for the queries themselves.
pub fn commands(admin: &mut redis::Connection) -> BTreeMap<String, u64> {
    let info: String = redis::cmd("INFO").arg("commandstats").query(admin).unwrap();
    let counts = info.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((name.to_owned(), rest.split(',').next()?.parse().ok()?))
    });
    counts.filter(|(name, _)| name != "info" && !name.starts_with("config")).collect()
}
