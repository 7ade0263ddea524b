//! The resources of a server of one's own: a free port and a folder.

use std::io;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::sync::Mutex;

use tempfile::TempDir;

/// The ports of this process' servers. Those of UDP, which none of them uses, stand for them.
static TAKEN: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());

/// A port on 127.0.0.1 that nobody listens on now. No process that asks this gets it again before this one ends: of two servers
/// on one port, the second would not start, and whoever waits until it answers would be answered by the first.
pub fn free_port() -> u16 {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port can be had");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        drop(listener);
        if take_port(port) {
            return port;
        }
    }
}

/// Takes this port as [`free_port`] does; `false` if somebody has it.
pub fn take_port(port: u16) -> bool {
    let found = TcpListener::bind(("127.0.0.1", port))
        .and_then(|_listener| UdpSocket::bind(("127.0.0.1", port)));
    match found {
        Ok(socket) => {
            TAKEN.lock().expect("nobody panics with it").push(socket);
            true
        }
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => false,
        Err(error) => panic!("port {port} of 127.0.0.1 cannot be had: {error}"),
    }
}

/// A folder for data that a server writes much of, in this room; if none is named, on a disk in memory, where there is one.
pub fn folder(room: Option<&Path>) -> io::Result<TempDir> {
    if let Some(room) = room {
        return tempfile::tempdir_in(room);
    }
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// Of 200 drawn from the 28,232 that Linux gives, two are the same in every other run.
    #[test]
    fn a_port_is_given_once() {
        let ports: BTreeSet<u16> = (0..200).map(|_| super::free_port()).collect();
        assert_eq!(ports.len(), 200);
        assert!(!super::take_port(*ports.first().expect("there are 200")));
    }
}
