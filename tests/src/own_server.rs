//! What a server of a test's own stands on: a free port and a folder.

use std::io;
use std::net::TcpListener;

use tempfile::TempDir;

/// A port on 127.0.0.1 that nobody listens on now.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port can be had");
    listener.local_addr().expect("a bound socket has an address").port()
}

/// A folder for data that a server writes much of: where there is a disk in memory, it lies there.
pub(crate) fn folder() -> io::Result<TempDir> {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())
}
