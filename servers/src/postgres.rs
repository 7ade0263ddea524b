//! A PostgreSQL server of one's own.

use std::fs::File;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::own::{self, free_port};
use crate::{Start, check, ended};

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// The users that may connect, and how. The user `secret` has a password.
const HBA: &str = "local all all trust
hostssl all certified 127.0.0.1/32 trust clientcert=verify-ca
host all secret 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
host replication postgres 127.0.0.1/32 trust
";

/// A running `postgres` on a free loopback port; it ends when this is dropped. Root runs it as the user `postgres`.
pub struct PostgresServer {
    process: Child,
    port: u16,
    start: Start,
    folder: TempDir,
}

impl PostgresServer {
    /// Whether its programs are installed.
    pub fn is_installed() -> bool {
        ["postgres", "initdb", "psql"].into_iter().all(|name| {
            let asked = Command::new(path(name)).arg("--version").stdout(Stdio::null()).status();
            asked.is_ok_and(|status| status.success())
        })
    }

    /// Starts a server.
    pub fn start() -> Self {
        Self::start_as(Start::default())
    }

    /// Starts a server that speaks TLS too, and knows this authority of clients. The user `certified` needs a certificate.
    pub fn start_with_tls(certificate: &Path, key: &Path, authority: &Path) -> Self {
        let folder = folder(None);
        // It takes a key only from a file of its own that nobody else reads.
        let files =
            [(certificate, "server.pem"), (key, "server.key"), (authority, "authority.pem")];
        for (from, to) in files {
            let to = folder.path().join(to);
            std::fs::copy(from, &to).expect("the folder can be written to");
            let own = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(&to, own).expect("the file is ours");
            give(&to);
        }
        let file = |name: &str| folder.path().join(name).display().to_string();
        let settings = [
            "ssl=on",
            &format!("ssl_cert_file={}", file("server.pem")),
            &format!("ssl_key_file={}", file("server.key")),
            &format!("ssl_ca_file={}", file("authority.pem")),
        ];
        Self::start_in(folder, Start::with(&settings))
    }

    /// Starts a server with more settings, such as `fsync=on`.
    pub fn start_with(settings: &[&str]) -> Self {
        Self::start_as(Start::with(settings))
    }

    /// Starts a server in this way.
    pub fn start_as(start: Start) -> Self {
        Self::start_in(folder(start.room.as_deref()), start)
    }

    fn start_in(folder: TempDir, start: Start) -> Self {
        let data = folder.path().join("data");
        let words =
            ["-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D"];
        let made = ended::output(program("initdb", folder.path()).args(words).arg(&data));
        check("initdb", &made);
        std::fs::write(data.join("pg_hba.conf"), HBA).expect("the folder can be written to");
        Self::run(folder, start)
    }

    /// Starts a server that follows this one and takes no writes, until it is promoted.
    pub fn standby(&self) -> Self {
        let folder = folder(None);
        let port = self.port.to_string();
        let words = ["-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-R", "-c", "fast"];
        let mut command = program("pg_basebackup", folder.path());
        let copied = ended::output(command.args(words).args(["--no-sync", "-D", "data"]));
        check("pg_basebackup", &copied);
        Self::run(folder, self.start.clone())
    }

    fn run(folder: TempDir, start: Start) -> Self {
        // Between the search for a free port and the server's own bind somebody else may take it: then the next one.
        for _ in 0..5 {
            let port = free_port();
            if let Some(process) = launch(port, &start, folder.path()) {
                return Self { process, port, start, folder };
            }
        }
        panic!("postgres ended five times right after its start; see its log in the test's output");
    }

    /// Ends the server at once, as `kill -9` does. Its backends end when they see that.
    pub fn kill_hard(&mut self) {
        let _ = self.process.kill();
        self.process.wait().expect("a killed child can be waited for");
    }

    /// Starts it again on its port, with its data.
    pub fn start_again(&mut self) {
        // As long as a backend of the one that was killed is there, it will not start.
        let give_up = Instant::now() + PATIENCE;
        while Instant::now() < give_up {
            if let Some(process) = launch(self.port, &self.start, self.folder.path()) {
                self.process = process;
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("postgres does not start again");
    }

    /// Freezes the server, with all its processes.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets a frozen server go on.
    pub fn cont(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let own = Pid::from_child(&self.process);
        let _ = kill_process(own, signal);
        let children = format!("/proc/{own}/task/{own}/children");
        let children = std::fs::read_to_string(children).expect("a process lists its children");
        for child in children.split_whitespace() {
            if let Some(child) = child.parse().ok().and_then(Pid::from_raw) {
                let _ = kill_process(child, signal);
            }
        }
    }

    /// The log since the server was last started.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).expect("the log can be read")
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of its socket file.
    pub fn socket_folder(&self) -> &Path {
        self.folder.path()
    }

    /// The database as this user.
    pub fn url(&self, user: &str) -> String {
        Self::url_at(self.port, user)
    }

    /// The database of the server, or of a proxy before it, on this port, as this user.
    pub fn url_at(port: u16, user: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{port}/postgres")
    }

    /// How many connections this user has.
    pub fn connections(&self, user: &str) -> usize {
        let count = format!("SELECT count(*) FROM pg_stat_activity WHERE usename = '{user}'");
        self.sql(&count).parse().expect("the server counts")
    }

    /// A user of this name with a schema of its own, in which the tables are made; its URL.
    pub fn place(&self, name: &str) -> String {
        self.sql(&format!(
            "CREATE ROLE {name} LOGIN PASSWORD 'hunter2'; CREATE SCHEMA AUTHORIZATION {name}; ALTER ROLE {name} SET search_path = {name}"
        ));
        format!("{}?create=true", self.url(name))
    }

    /// Runs statements as the server's owner; what they print, one line for each row.
    pub fn sql(&self, statements: &str) -> String {
        let output = self.psql("postgres", statements);
        check(statements, &output);
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Runs statements as this user.
    pub fn psql(&self, user: &str, statements: &str) -> Output {
        let mut command = program("psql", self.folder.path());
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1"]);
        command.args([
            "-p",
            &self.port.to_string(),
            "-U",
            user,
            "-d",
            "postgres",
            "-c",
            statements,
        ]);
        ended::output(&mut command)
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // At once, but it gives its shared memory back.
        let _ = kill_process(Pid::from_child(&self.process), Signal::QUIT);
        let give_up = Instant::now() + Duration::from_secs(10);
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < give_up {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.kill_hard();
    }
}

/// A folder for data, in this room or in memory. It belongs to whoever runs the server.
pub fn folder(room: Option<&Path>) -> TempDir {
    let folder = own::folder(room).expect("a temporary folder can be made");
    give(folder.path());
    folder
}

/// Gives a file to whoever runs the server.
pub fn give(file: &Path) {
    if let Some((user, group)) = owner() {
        std::os::unix::fs::chown(file, Some(user), Some(group)).expect("root may give files away");
    }
}

/// The user `postgres` and its group, if this is root, which the server refuses.
fn owner() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut words = users.lines().find(|line| line.starts_with("postgres:"))?.split(':').skip(2);
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// One of the server's programs, run as whoever runs the server.
pub fn program(name: &str, folder: &Path) -> Command {
    as_owner(Command::new(path(name)), folder)
}

fn as_owner(mut command: Command, folder: &Path) -> Command {
    command.current_dir(folder).stdin(Stdio::null()).env("LC_ALL", "C");
    if let Some((user, group)) = owner() {
        command.uid(user).gid(group);
    }
    command
}

/// In the folder `FENCELOCK_POSTGRES`, on the path, or where Debian keeps it: of several versions the newest.
fn path(name: &str) -> PathBuf {
    let named = std::env::var_os("FENCELOCK_POSTGRES").map(|folder| Path::new(&folder).join(name));
    if let Some(program) = named.filter(|program| program.is_file()) {
        return program;
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let programs = versions.filter_map(|version| {
        let number = version.file_name().to_str()?.parse::<u32>().ok()?;
        let program = version.path().join("bin").join(name);
        program.is_file().then_some((number, program))
    });
    // What is run by its administrator is on no user's path.
    let system = Path::new("/usr/sbin").join(name);
    let other = || if system.is_file() { system } else { name.into() };
    programs.max().map_or_else(other, |(_, program)| program)
}

/// Starts the server and waits until it answers; `None` if it ended instead.
fn launch(port: u16, start: &Start, folder: &Path) -> Option<Child> {
    let log = folder.join("log");
    let file = File::create(&log).expect("the folder can be written to");
    let mut command = as_owner(start.command(path("postgres")), folder);
    command.args(["-D", "data", "-p", &port.to_string()]);
    let sockets = format!("unix_socket_directories={}", folder.display());
    let ours = ["listen_addresses=127.0.0.1", &sockets, "max_connections=400", "fsync=off"];
    for setting in ours.into_iter().chain(start.settings.iter().map(String::as_str)) {
        command.args(["-c", setting]);
    }
    let mut process =
        command.stdout(Stdio::null()).stderr(file).spawn().unwrap_or_else(|error| {
            panic!("`postgres` cannot be run ({error}): install postgresql")
        });
    let give_up = Instant::now() + PATIENCE;
    let log = || std::fs::read_to_string(&log).unwrap_or_default();
    while Instant::now() < give_up {
        if process.try_wait().expect("a child can be asked for").is_some() {
            eprintln!("{}", log());
            return None;
        }
        if log().contains("ready to accept") && TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Some(process);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = process.kill();
    let _ = process.wait();
    panic!("`postgres` did not answer on port {port} within {PATIENCE:?}");
}
