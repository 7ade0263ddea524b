//! The sockets by which clients wake each other: each a file that datagrams are sent to. Windows has none: waiters ask again
//! by themselves there.

pub(super) use self::platform::{Socket, is_dead, made_at};

#[cfg(unix)]
mod platform {
    use std::fs::{Permissions, set_permissions, symlink_metadata};
    use std::io::{self, ErrorKind};
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
    use std::os::unix::net::UnixDatagram;
    use std::path::Path;

    /// One that sends, or is bound to a file. It never blocks.
    pub(in super::super) struct Socket(UnixDatagram);

    impl Socket {
        /// One that only sends.
        pub(in super::super) fn unbound() -> io::Result<Self> {
            Self::nonblocking(UnixDatagram::unbound()?)
        }

        /// One that hears what is sent to this file, to which nobody but this user may write.
        pub(in super::super) fn bind(path: &Path) -> io::Result<Self> {
            let socket = UnixDatagram::bind(path)?;
            set_permissions(path, Permissions::from_mode(0o600))?;
            Self::nonblocking(socket)
        }

        fn nonblocking(socket: UnixDatagram) -> io::Result<Self> {
            socket.set_nonblocking(true)?;
            Ok(Self(socket))
        }

        /// Sends a datagram.
        pub(in super::super) fn send_to(&self, bytes: &[u8], path: &Path) -> io::Result<()> {
            self.0.send_to(bytes, path).map(drop)
        }

        /// Passes on what is sent here, until that fails.
        pub(in super::super) async fn hear(
            self,
            most: usize,
            mut heard: impl FnMut(&[u8]),
        ) -> io::Result<()> {
            let socket = tokio::net::UnixDatagram::from_std(self.0)?;
            let mut buffer = vec![0; most];
            loop {
                let length = socket.recv(&mut buffer).await?;
                heard(&buffer[..length]);
            }
        }
    }

    /// Whether nobody listens there, for certain.
    pub(in super::super) fn is_dead(path: &Path) -> bool {
        let tried = UnixDatagram::unbound().and_then(|socket| socket.connect(path));
        tried.is_err_and(|error| {
            matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound)
        })
    }

    /// Since when a socket is there, in seconds; `None` if there is none.
    pub(in super::super) fn made_at(path: &Path) -> Option<i64> {
        let found = symlink_metadata(path).ok()?;
        found.file_type().is_socket().then(|| found.mtime())
    }
}

#[cfg(not(unix))]
mod platform {
    use std::convert::Infallible;
    use std::io::{self, ErrorKind};
    use std::path::Path;

    /// There is none.
    pub(in super::super) struct Socket(Infallible);

    impl Socket {
        pub(in super::super) fn unbound() -> io::Result<Self> {
            Err(ErrorKind::Unsupported.into())
        }

        pub(in super::super) fn bind(_: &Path) -> io::Result<Self> {
            Self::unbound()
        }

        pub(in super::super) fn send_to(&self, _: &[u8], _: &Path) -> io::Result<()> {
            match self.0 {}
        }

        #[allow(clippy::unused_async)] // As its counterpart, which does hear.
        pub(in super::super) async fn hear(self, _: usize, _: impl FnMut(&[u8])) -> io::Result<()> {
            match self.0 {}
        }
    }

    /// That cannot be told: others may listen where this system has no way to look.
    pub(in super::super) fn is_dead(_: &Path) -> bool {
        false
    }

    pub(in super::super) fn made_at(_: &Path) -> Option<i64> {
        None
    }
}
