//! Where this client hears: its socket, bound while the client listens.

use std::convert::Infallible;
use std::fs;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;

use futures_channel::oneshot;
use futures_util::future::{Either, select};

use super::address::Addresses;
use super::socket::Socket;
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
            match Socket::bind(&path) {
                Ok(socket) => {
                    addresses.clean(&path);
                    let (end, ended) = oneshot::channel();
                    runtime.spawn(Box::pin(receive(socket, sink.clone(), ended)));
                    return Self { channel, sink, bound: Some((path, end)), process };
                }
                Err(error) => tracing::debug!(%channel, %error, "no socket can be bound there"),
            }
        }
        // On Windows that is no news.
        if cfg!(unix) {
            tracing::warn!(
                "no socket for wake-ups can be bound; waiting locks are polled for instead"
            );
        }
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

async fn receive(
    socket: Socket,
    sink: Arc<Mutex<NoticeSink>>,
    mut ended: oneshot::Receiver<Infallible>,
) {
    let socket = match socket.listen() {
        Ok(socket) => socket,
        Err(error) => return tracing::warn!(%error, "wake-ups are not heard; polling instead"),
    };
    let mut buffer = vec![0; datagram::LIMIT];
    loop {
        let length = match select(&mut ended, pin!(socket.hear(&mut buffer))).await {
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
