//! What a server of one's own stands on: a free port and a folder.

use std::io;
use std::net::TcpListener;
use std::path::Path;

use tempfile::TempDir;

/// A port on 127.0.0.1 that nobody listens on now.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port can be had");
    listener.local_addr().expect("a bound socket has an address").port()
}

/// A folder for data that a server writes much of, in this room; if none is named, on a disk in memory, where there is one.
pub fn folder(room: Option<&Path>) -> io::Result<TempDir> {
    if let Some(room) = room {
        return tempfile::tempdir_in(room);
    }
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())
}
