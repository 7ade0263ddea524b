//! A ZooKeeper of a test's own.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::runtime::Handle;
use url::Url;
use zookeeper_client::{Acl, Acls, AuthId, Client, CreateMode, Error, Permission};

use crate::freeze::{freeze, resume};
use crate::servers::Authority;
use crate::session_store::SessionServer;
use fencelock_servers::own::{folder, free_port};

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running ZooKeeper of one member on a free loopback port; it ends when this is dropped. Its tick is 200 ms.
pub struct ZookeeperServer {
    process: Child,
    port: u16,
    /// Lines of its settings beside those of every server.
    settings: String,
    folder: TempDir,
    /// Whom [`ZookeeperServer::admin`] logs in as, where locks belong to a user.
    user: Option<&'static str>,
}

/// The user with the rights of `docs/reference/zookeeper.md`, behind the chroot [`CHROOT`].
const CLERK: &str = "clerk:hunter2";
/// Where the clerk's locks lie.
pub const CHROOT: &str = "p";

impl ZookeeperServer {
    /// Starts a server.
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// Starts a server with these settings beside those of every server.
    pub fn start_with(settings: &str) -> Self {
        let folder = folder(None).expect("a temporary folder can be made");
        // Between the search for a free port and the server's own bind somebody else may take it: then the next one.
        for _ in 0..5 {
            let port = free_port();
            if let Some(process) = launch(port, settings, &folder) {
                let settings = settings.to_owned();
                return Self { process, port, settings, folder, user: None };
            }
        }
        panic!(
            "ZooKeeper ended five times right after its start; see its log in the test's output"
        );
    }

    /// Starts a server with a second port that speaks TLS, with these settings beside; and that port.
    pub fn start_secure(authority: &Authority, settings: &str) -> (Self, u16) {
        let port = free_port();
        (Self::start_with(&(authority.settings(port) + settings)), port)
    }

    /// Starts a member of an ensemble with these settings beside those of every server; `None` if it ended instead.
    pub(crate) fn start_member(port: u16, id: usize, settings: String) -> Option<Self> {
        let folder = folder(None).expect("a temporary folder can be made");
        let data = folder.path().join("data");
        let written =
            fs::create_dir(&data).and_then(|()| fs::write(data.join("myid"), id.to_string()));
        written.expect("the folder can be written to");
        let process = launch(port, &settings, &folder)?;
        Some(Self { process, port, settings, folder, user: None })
    }

    /// Starts a server on which a user has the rights that locks need behind a chroot, and nobody else has any.
    pub fn start_with_rights() -> Self {
        let mut server = Self::start();
        server.user = Some(CLERK);
        let rights = Permission::CREATE | Permission::DELETE | Permission::READ | Permission::WRITE;
        let acl = [Acl::new(rights, AuthId::authed())];
        let options = CreateMode::Persistent.with_acls(Acls::new(&acl));
        let making = async {
            let admin = server.admin().await;
            admin.create(&format!("/{CHROOT}"), b"", &options).await.expect("it is made");
        };
        tokio::task::block_in_place(|| Handle::current().block_on(making));
        server
    }

    /// Where the locks of that user lie.
    pub fn url_with_rights(&self) -> Url {
        let port = self.port;
        format!("zookeeper://{CLERK}@127.0.0.1:{port}/{CHROOT}").parse().expect("this is a URL")
    }

    /// The server of those tests of a program that run at this moment and do it no harm. Each has a chroot of its own.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<ZookeeperServer>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = shared.upgrade() {
            return server;
        }
        let server = Arc::new(Self::start());
        *shared = Arc::downgrade(&server);
        server
    }

    /// Ends the server at once, as `kill -9` does.
    pub fn kill_hard(&mut self) {
        let _ = self.process.kill();
        self.process.wait().expect("a killed child can be waited for");
    }

    /// Starts it again on its port, with its data.
    pub fn start_again(&mut self) {
        let started = launch(self.port, &self.settings, &self.folder);
        self.process = started.expect("ZooKeeper starts again");
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

    /// Where locks lie behind a chroot.
    pub fn url(&self, chroot: &str) -> Url {
        url(self.port, chroot)
    }

    /// Somebody who reads and writes beside the locks.
    pub async fn admin(&self) -> Client {
        let mut connector = Client::connector();
        if let Some(user) = self.user {
            connector = connector.with_auth("digest", user.as_bytes());
        }
        connector.connect(&format!("127.0.0.1:{}", self.port)).await.expect("it connects")
    }

    /// The paths of all nodes below this one that no other is below.
    pub async fn leaves(&self, path: &str) -> Vec<String> {
        let client = self.admin().await;
        let (mut leaves, mut next) = (Vec::new(), vec![path.to_owned()]);
        while let Some(path) = next.pop() {
            let children = match client.list_children(&path).await {
                Ok(children) => children,
                Err(Error::NoNode) => continue,
                Err(error) => panic!("{path}: {error}"),
            };
            if children.is_empty() {
                leaves.push(path);
                continue;
            }
            let above = path.trim_end_matches('/');
            next.extend(children.iter().map(|name| format!("{above}/{name}")));
        }
        leaves.sort();
        leaves
    }

    /// The entries of all locks below this path.
    pub async fn entries(&self, path: &str) -> Vec<String> {
        let mut leaves = self.leaves(path).await;
        leaves.retain(|path| path.rsplit('/').next().is_some_and(|name| name.contains("_c_")));
        leaves
    }

    /// How many packets the server has received.
    pub fn packets(&self) -> u64 {
        let told = ask(self.port, "srvr").expect("the server tells its figures");
        let line = told.lines().find_map(|line| line.strip_prefix("Received: "));
        line.and_then(|line| line.parse().ok()).expect("the server counts its packets")
    }

    /// Whether it leads an ensemble.
    pub fn leads(&self) -> bool {
        ask(self.port, "srvr").is_some_and(|told| told.contains("Mode: leader"))
    }

    /// Ends the session of another client, which hears of it from the server.
    pub fn expire(&self, session: i64) {
        let mut connect = Vec::new();
        connect.extend(0_i32.to_be_bytes());
        connect.extend(0_i64.to_be_bytes());
        connect.extend(1000_i32.to_be_bytes());
        connect.extend(session.to_be_bytes());
        connect.extend(16_i32.to_be_bytes());
        connect.extend(password(session));
        connect.push(0);
        let mut close = Vec::new();
        close.extend(1_i32.to_be_bytes());
        close.extend((-11_i32).to_be_bytes());
        let framed = |packet: &[u8]| {
            let length = i32::try_from(packet.len()).expect("it is short").to_be_bytes();
            [&length[..], packet].concat()
        };
        let packets = [framed(&connect), framed(&close)].concat();
        let began = Instant::now();
        loop {
            let mut told = Vec::new();
            let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it connects");
            // Its client takes the session back as fast as it can, and our connection ends with that.
            let _ = stream.write_all(&packets).and_then(|()| stream.read_to_end(&mut told));
            // Behind the length, the version and the timeout: the number of the session, or 0 when it is over.
            if told.get(12..20) == Some(&[0; 8]) {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "the session does not end");
        }
    }
}

impl SessionServer for ZookeeperServer {
    fn url(&self, chroot: &str) -> Url {
        self.url(chroot)
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

    async fn entries_of_x(&self, chroot: &str) -> Vec<String> {
        self.entries(&format!("/{chroot}/x")).await
    }
}

impl Drop for ZookeeperServer {
    fn drop(&mut self) {
        self.kill_hard();
    }
}

/// Where locks lie behind a chroot on the server of this port.
pub fn url(port: u16, chroot: &str) -> Url {
    format!("zookeeper://127.0.0.1:{port}/{chroot}").parse().expect("this is a URL")
}

/// The password that a server makes of a session's number: the first bytes of `java.util.Random`, seeded with it and a constant.
fn password(session: i64) -> [u8; 16] {
    const MASK: i64 = (1 << 48) - 1;
    let mut seed = (session ^ 0xB341_5C00 ^ 0x5_DEEC_E66D) & MASK;
    let mut bytes = [0; 16];
    for four in bytes.chunks_mut(4) {
        seed = seed.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & MASK;
        four.copy_from_slice(&((seed >> 16) as i32).to_le_bytes());
    }
    bytes
}

/// Starts the server and waits until it answers; `None` if it ended instead.
fn launch(port: u16, more: &str, folder: &TempDir) -> Option<Child> {
    let settings = format!(
        "tickTime=200\nminSessionTimeout=400\nmaxSessionTimeout=120000\ndataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\n\
         admin.enableServer=false\n4lw.commands.whitelist=*\nmaxClientCnxns=0\n{more}",
        folder.path().join("data").display()
    );
    let path = folder.path().join("zoo.cfg");
    fs::write(&path, settings).expect("the folder can be written to");
    let log = folder.path().join("zookeeper.log");
    // Debian's package does not name all that its TLS takes.
    let debian = "/usr/share/java/zookeeper.jar:/usr/share/java/netty-codec.jar:/usr/share/java/netty-resolver.jar";
    let jars = std::env::var("FENCELOCK_ZOOKEEPER_JARS").map(|folder| format!("{folder}/*"));
    let mut command = Command::new("java");
    command
        .args(["-Xmx160m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"])
        // Containers that are empty are removed soon.
        .args(["-Dzookeeper.forceSync=no", "-Dznode.container.checkIntervalMs=500"])
        .args(["-cp", jars.as_deref().unwrap_or(debian)])
        // Without members in its settings it stands alone.
        .arg("org.apache.zookeeper.server.quorum.QuorumPeerMain")
        .arg(&path)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&log).expect("the folder can be written to"));
    let mut process = command.spawn().unwrap_or_else(|error| {
        panic!("`java` cannot be run ({error}): install zookeeper and a Java runtime")
    });
    let secure = more.lines().find_map(|line| line.strip_prefix("secureClientPort="));
    let secure: Option<u16> = secure.map(|port| port.parse().expect("it is a port"));
    let give_up = Instant::now() + PATIENCE;
    while Instant::now() < give_up {
        if process.try_wait().expect("a child can be asked for").is_some() {
            eprintln!("{}", fs::read_to_string(&log).unwrap_or_default());
            return None;
        }
        let answers = ask(port, "srvr").is_some_and(|told| told.contains("Mode: "));
        if answers && secure.is_none_or(listens) {
            return Some(process);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = process.kill();
    let _ = process.wait();
    panic!("ZooKeeper did not answer on port {port} within {PATIENCE:?}");
}

/// Whether a server waits for what is said on a port. One that just begins to listen hangs up.
fn listens(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let limited = stream.set_read_timeout(Some(Duration::from_millis(100)));
    limited.is_ok()
        && stream.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// The answer of a server to one of its four-letter words. A server that just begins to listen may not answer.
fn ask(port: u16, word: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
    stream.write_all(word.as_bytes()).ok()?;
    let mut told = String::new();
    stream.read_to_string(&mut told).ok()?;
    Some(told)
}
