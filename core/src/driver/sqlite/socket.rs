//! The sockets by which clients wake each other: each a file that datagrams are sent to.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// One that sends, or is bound to a file. It never blocks.
pub(super) struct Socket(UnixDatagram);

impl Socket {
    /// One that only sends.
    pub(super) fn unbound() -> io::Result<Self> {
        Self::nonblocking(UnixDatagram::unbound()?)
    }

    /// One that hears what is sent to this file, to which nobody but this user may write.
    pub(super) fn bind(path: &Path) -> io::Result<Self> {
        Self::nonblocking(bind_private(path)?)
    }

    fn nonblocking(socket: UnixDatagram) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self(socket))
    }

    /// Sends a datagram.
    pub(super) fn send_to(&self, bytes: &[u8], path: &Path) -> io::Result<()> {
        self.0.send_to(bytes, path).map(drop)
    }

    /// From now on it hears.
    pub(super) fn listen(self) -> io::Result<Ear> {
        tokio::net::UnixDatagram::from_std(self.0).map(Ear)
    }
}

/// A socket that hears.
pub(super) struct Ear(tokio::net::UnixDatagram);

impl Ear {
    /// The length of the next datagram.
    pub(super) async fn hear(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.recv(buffer).await
    }
}

/// Whether nobody listens there, for certain.
pub(super) fn is_dead(path: &Path) -> bool {
    let tried = UnixDatagram::unbound().and_then(|socket| socket.connect(path));
    tried.is_err_and(|error| is_refusal(error.kind()))
}

/// Whether an error says that nobody listens there, rather than that it cannot be told.
pub(super) fn is_refusal(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConnectionRefused | ErrorKind::NotFound)
}

/// Since when a socket is there, in seconds; `None` if there is none.
pub(super) fn made_at(path: &Path) -> Option<i64> {
    let found = fs::symlink_metadata(path).ok()?;
    found.file_type().is_socket().then(|| found.mtime())
}

/// Linux gives the file the mode that the socket has. Set later, by its path, it could be the mode of another file that
/// somebody has put there meanwhile.
#[cfg(target_os = "linux")]
fn bind_private(path: &Path) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    rustix::fs::fchmod(&socket, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)?;
    rustix::net::bind(&socket, &rustix::net::SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

#[cfg(not(target_os = "linux"))]
fn bind_private(path: &Path) -> io::Result<UnixDatagram> {
    use std::os::unix::fs::PermissionsExt;
    let socket = UnixDatagram::bind(path)?;
    if let Err(error) = fs::set_permissions(path, fs::Permissions::from_mode(0o600)) {
        let _ = fs::remove_file(path);
        return Err(error);
    }
    Ok(socket)
}
