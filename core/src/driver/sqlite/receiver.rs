//! Where this client hears: its socket, bound while the client listens.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use futures_channel::oneshot;
use futures_util::future::{Either, select};

use super::address::Addresses;
use crate::driver::datagram;
use crate::port::{Notice, NoticeSink, RuntimeHandle};
use crate::runtime::sync::Mutex;

/// This client's notices. Dropped, it stops listening and takes its socket's file away.
pub(super) struct Receiver {
    channel: Arc<str>,
    sink: Arc<Mutex<NoticeSink>>,
    /// The socket's file, and what ends its reader when dropped; `None` where no socket could be bound.
    bound: Option<(PathBuf, oneshot::Sender<Infallible>)>,
    process: u32,
}

impl Receiver {
    /// Starts to listen. Where no socket can be had the channel is empty, which others cannot reach and never count as
    /// dead; what this very client does still reaches it.
    pub(super) fn open(addresses: &Addresses, sink: NoticeSink, runtime: &RuntimeHandle) -> Self {
        let sink = Arc::new(Mutex::new(sink));
        let process = std::process::id();
        for (channel, path) in addresses.draw() {
            match bind(&path) {
                Ok(socket) => {
                    addresses.clean(&path);
                    let (end, ended) = oneshot::channel();
                    runtime.spawn(Box::pin(receive(socket, sink.clone(), ended)));
                    return Self { channel, sink, bound: Some((path, end)), process };
                }
                Err(error) => tracing::debug!(%channel, %error, "no socket can be bound there"),
            }
        }
        tracing::warn!("no socket for wake-ups can be bound; waiting locks are polled for instead");
        Self { channel: "".into(), sink, bound: None, process }
    }

    /// Where others reach it; empty if they cannot.
    pub(super) fn channel(&self) -> &Arc<str> {
        &self.channel
    }

    /// Delivers to another sink from now on.
    pub(super) fn redirect(&self, sink: NoticeSink) {
        *self.sink.lock() = sink;
    }

    /// Delivers a notice.
    pub(super) fn tell(&self, notice: Notice) {
        tell(&self.sink, notice);
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Some((path, _)) = self.bound.as_ref().filter(|_| self.process == std::process::id())
        {
            let _ = fs::remove_file(path);
        }
    }
}

fn tell(sink: &Mutex<NoticeSink>, notice: Notice) {
    let sink = sink.lock().clone();
    sink(notice);
}

/// A socket nobody but this user may write to.
fn bind(path: &Path) -> io::Result<UnixDatagram> {
    let socket = bind_private(path)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
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

async fn receive(
    socket: UnixDatagram,
    sink: Arc<Mutex<NoticeSink>>,
    mut ended: oneshot::Receiver<Infallible>,
) {
    let socket = match tokio::net::UnixDatagram::from_std(socket) {
        Ok(socket) => socket,
        Err(error) => return tracing::warn!(%error, "wake-ups are not heard; polling instead"),
    };
    let mut buffer = vec![0; datagram::LIMIT];
    loop {
        let length = match select(&mut ended, pin!(socket.recv(&mut buffer))).await {
            Either::Left(_) => return,
            Either::Right((Ok(length), _)) => length,
            Either::Right((Err(error), _)) => {
                return tracing::warn!(%error, "wake-ups are not heard any more; polling instead");
            }
        };
        for notice in datagram::read(&buffer[..length]) {
            tell(&sink, notice);
        }
    }
}
