//! A MariaDB server of one's own.

use std::fs::File;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::own::{folder, free_port};
use crate::{Start, check, ended};

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// The data of a server that was never used. To make them takes two seconds, to copy them a tenth of one.
static NEW: Mutex<Weak<TempDir>> = Mutex::new(Weak::new());

/// A running `mariadbd` on a free loopback port; it ends when this is dropped.
pub struct MysqlServer {
    process: Child,
    port: u16,
    start: Start,
    folder: TempDir,
    #[allow(dead_code)] // The next server is made of it.
    new: Arc<TempDir>,
}

impl MysqlServer {
    /// Whether its programs are installed.
    pub fn is_installed() -> bool {
        [path(), "mariadb".into(), "mariadb-install-db".into()].into_iter().all(|name| {
            let mut asked = Command::new(name);
            asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            asked.status().is_ok()
        })
    }

    /// Starts a server.
    pub fn start() -> Self {
        Self::start_as(Start::default())
    }

    /// Starts a server that speaks TLS too, and knows this authority of clients.
    pub fn start_with_tls(certificate: &Path, key: &Path, authority: &Path) -> Self {
        let (certificate, key) = (certificate.display(), key.display());
        Self::start_with(&[
            &format!("ssl-cert={certificate}"),
            &format!("ssl-key={key}"),
            &format!("ssl-ca={}", authority.display()),
        ])
    }

    /// Starts a server with more settings, such as `read-only=1`.
    pub fn start_with(settings: &[&str]) -> Self {
        Self::start_as(Start::with(settings))
    }

    /// Starts a server in this way.
    pub fn start_as(start: Start) -> Self {
        let new = new();
        let folder = folder(start.room.as_deref()).expect("a temporary folder can be made");
        let mut copy = Command::new("cp");
        copy.arg("-r").arg(new.path().join("data")).arg(folder.path());
        check("cp", &ended::output(&mut copy));
        // Between the search for a free port and the server's own bind somebody else may take it: then the next one.
        for _ in 0..5 {
            let port = free_port();
            if let Some(process) = launch(port, &start, folder.path()) {
                return Self { process, port, start, folder, new };
            }
        }
        panic!("mariadbd ended five times right after its start; see its log in the test's output");
    }

    /// Ends the server at once, as `kill -9` does.
    pub fn kill_hard(&mut self) {
        let _ = self.process.kill();
        self.process.wait().expect("a killed child can be waited for");
    }

    /// Freezes the server.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets a frozen server go on.
    pub fn cont(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.process), signal);
    }

    /// Starts it again on its port, with its data.
    pub fn start_again(&mut self) {
        let started = launch(self.port, &self.start, self.folder.path());
        self.process = started.expect("mariadbd starts again");
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its socket file.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// This user's database of the same name.
    pub fn url(&self, user: &str) -> String {
        Self::url_at(self.port, user)
    }

    /// The database of this user on the server, or on a proxy before it, on this port.
    pub fn url_at(port: u16, user: &str) -> String {
        format!("mysql://{user}@127.0.0.1:{port}/{user}")
    }

    /// A user of this name with a database of the same name, in which the tables are made; its URL.
    pub fn place(&self, name: &str) -> String {
        self.sql(&format!(
            "CREATE DATABASE {name}; CREATE USER {name}; GRANT ALL ON {name}.* TO {name}"
        ));
        format!("{}?create=true", self.url(name))
    }

    /// Runs statements as the server's owner; what they print, one line for each row.
    pub fn sql(&self, statements: &str) -> String {
        let mut command = Command::new("mariadb");
        command.args(["--no-defaults", "--user=root", "--batch", "--skip-column-names", "--raw"]);
        command.arg(format!("--socket={}", self.socket().display()));
        let output = ended::output(command.arg("--execute").arg(statements));
        check(statements, &output);
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// How many connections this user has.
    pub fn connections(&self, user: &str) -> usize {
        let count =
            format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = '{user}'");
        self.sql(&count).parse().expect("the server counts")
    }
}

impl Drop for MysqlServer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.folder.path().join("log"));
            eprintln!("{}", log.unwrap_or_default());
        }
        // Its data go with it.
        self.signal(Signal::KILL);
        let _ = self.process.wait();
    }
}

/// A folder with the data of a new server.
fn new() -> Arc<TempDir> {
    let mut shared = NEW.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(new) = shared.upgrade() {
        return new;
    }
    let new = Arc::new(folder(None).expect("a temporary folder can be made"));
    let data = new.path().join("data");
    let mut command = Command::new("mariadb-install-db");
    command.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
    command.args(["--skip-name-resolve", "--innodb-log-file-size=4M"]);
    command.args(as_root()).arg(format!("--datadir={}", data.display()));
    check("mariadb-install-db", &ended::output(&mut command));
    *shared = Arc::downgrade(&new);
    new
}

/// Root says that it means it.
fn as_root() -> Option<&'static str> {
    rustix::process::geteuid().is_root().then_some("--user=root")
}

/// Starts the server and waits until it answers; `None` if it ended instead.
fn launch(port: u16, start: &Start, folder: &Path) -> Option<Child> {
    let log = folder.join("log");
    let file = File::create(&log).expect("the folder can be written to");
    let file_in = |name: &str| folder.join(name).display().to_string();
    let mut command = start.command(path());
    command.arg("--no-defaults").args(as_root()).arg(format!("--port={port}"));
    command.arg(format!("--datadir={}", file_in("data")));
    command.arg(format!("--socket={}", file_in("socket")));
    command.arg(format!("--pid-file={}", file_in("pid")));
    command.args(["--bind-address=127.0.0.1", "--skip-name-resolve", "--max-connections=1000"]);
    command.arg(format!("--tmpdir={}", folder.display()));
    command.args(["--innodb-log-file-size=4M", "--innodb-buffer-pool-size=32M", "--skip-log-bin"]);
    command
        .args(start.settings.iter().map(|setting| format!("--{setting}")))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(file);
    let mut process = command.spawn().unwrap_or_else(|error| {
        panic!("`mariadbd` cannot be run ({error}): install mariadb-server")
    });
    let give_up = Instant::now() + PATIENCE;
    let log = || std::fs::read_to_string(&log).unwrap_or_default();
    while Instant::now() < give_up {
        if process.try_wait().expect("a child can be asked for").is_some() {
            eprintln!("{}", log());
            return None;
        }
        if log().contains("ready for connections")
            && TcpStream::connect(("127.0.0.1", port)).is_ok()
        {
            return Some(process);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = process.kill();
    let _ = process.wait();
    panic!("`mariadbd` did not answer on port {port} within {PATIENCE:?}");
}

/// On the path, or where it is for administrators.
fn path() -> PathBuf {
    let known = Path::new("/usr/sbin/mariadbd");
    if known.is_file() { known.into() } else { "mariadbd".into() }
}
