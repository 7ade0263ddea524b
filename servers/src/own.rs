//! What a server of one's own stands on: a free port and a folder.

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
    let mut taken = TAKEN.lock().expect("nobody panics here");
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port can be had");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        match UdpSocket::bind(("127.0.0.1", port)) {
            Ok(socket) => {
                taken.push(socket);
                return port;
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => panic!("a loopback port cannot be had: {error}"),
        }
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
    }
}
