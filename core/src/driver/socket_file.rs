//! Servers that listen on a socket file (`redis+unix:`, a path as the host): not on Windows, where their clients have no such
//! sockets.

#[cfg(all(any(feature = "postgres", feature = "redis"), unix))]
pub(super) use tokio::net::UnixStream as SocketFile;

use crate::error::{Code, Error, Result};

/// Refuses a URL that names one, where the system has none.
pub(super) fn check() -> Result<()> {
    const NONE: &str =
        "this system has no Unix sockets for servers; name the server's host and port in the URL";
    if cfg!(unix) { Ok(()) } else { Err(Error::new(Code::Unsupported, NONE)) }
}

/// No such connection exists: [`check`] has refused its URL.
#[cfg(all(any(feature = "postgres", feature = "redis"), not(unix)))]
pub(super) struct SocketFile;

#[cfg(all(any(feature = "postgres", feature = "redis"), not(unix)))]
impl SocketFile {
    #[allow(clippy::unused_async)] // As its counterpart, which does connect.
    pub(super) async fn connect(
        _: impl AsRef<std::path::Path>,
    ) -> std::io::Result<tokio::net::TcpStream> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}
