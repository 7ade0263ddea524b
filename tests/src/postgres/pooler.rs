//! A pooler of a test's own.

use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use fencelock_servers::own::free_port;
use fencelock_servers::postgres::{folder, give, program};
use tempfile::TempDir;

/// A running `pgbouncer` on a free loopback port; it ends when this is dropped.
pub struct Pooler {
    process: Child,
    port: u16,
    _folder: TempDir,
}

impl Pooler {
    /// Starts one before the server on this port. It asks nobody for a password; `user:password` has one at the server. `mode` is its `pool_mode`.
    pub fn before(server: u16, users: &[&str], mode: &str) -> Self {
        let folder = folder(None);
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("the folder can be written to");
            give(&path);
        };
        let line = |user: &&str| {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            format!("\"{name}\" \"{password}\"\n")
        };
        let list: Vec<_> = users.iter().map(line).collect();
        let list = list.concat();
        file("users", &list);
        let port = free_port();
        file(
            "ini",
            &format!(
                "[databases]\n* = host=127.0.0.1 port={server}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
                 unix_socket_dir =\nauth_type = trust\nauth_file = users\npool_mode = {mode}\n\
                 max_client_conn = 1000\ndefault_pool_size = 50\n"
            ),
        );
        let log = std::fs::File::create(folder.path().join("log"));
        let log = log.expect("the folder can be written to");
        let mut command = program("pgbouncer", folder.path());
        let process = command.arg("ini").stdout(Stdio::null()).stderr(log).spawn();
        let mut process = process.expect("pgbouncer can be run");
        let give_up = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = process.try_wait().expect("a child can be asked for");
            let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
            assert!(ended.is_none() && Instant::now() < give_up, "pgbouncer: {log}");
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { process, port, _folder: folder }
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
