//! Wake-ups between the clients of one file: each that listens has a datagram socket, whose name stands in its tickets.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::{Either, select};

use super::address::Addresses;
use super::socket::{Socket, is_dead};
use crate::driver::datagram;
use crate::port::{Notice, NoticeSink, RuntimeHandle};
use crate::runtime::sync::Mutex;

/// A receiver's queue holds few datagrams (ten, by Linux's default): a full one is tried again after these times, then
/// given up, and the waiter's next refresh finds what it was to hear.
const AGAIN_AFTER: [Duration; 6] = [
    Duration::from_millis(1),
    Duration::from_millis(3),
    Duration::from_millis(10),
    Duration::from_millis(30),
    Duration::from_millis(100),
    Duration::from_millis(300),
];

/// The notices of one client of a file: it hears its own, once it listens, and sends the others theirs.
pub(super) struct Notices {
    addresses: Addresses,
    /// Sends. `None` where there are no such sockets: then nobody is told, and waiters live by their refreshes.
    socket: Option<Socket>,
    runtime: RuntimeHandle,
    own: Mutex<Option<Arc<Receiver>>>,
}

/// Where a client hears. Dropped, it stops listening and takes its socket's file away.
struct Receiver {
    /// Where others reach it. Empty where no socket can be had: nobody counts that as dead, and what this very client does
    /// still reaches it.
    channel: Arc<str>,
    sink: Arc<Mutex<NoticeSink>>,
    /// The socket's file, and what ends its reader when dropped; `None` where no socket could be bound.
    bound: Option<(PathBuf, oneshot::Sender<Infallible>)>,
    process: u32,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // In the child of a fork the socket is its parent's.
        if let Some((path, _)) = &self.bound
            && self.process == std::process::id()
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
    ended: oneshot::Receiver<Infallible>,
) {
    let heard = |bytes: &[u8]| datagram::read(bytes).for_each(|notice| tell(&sink, notice));
    let hears = pin!(socket.hear(datagram::LIMIT, heard));
    if let Either::Right((Err(error), _)) = select(ended, hears).await {
        tracing::warn!(%error, "wake-ups are not heard any more; polling instead");
    }
}

impl Notices {
    /// Those of a client that others reach, and which reaches them, at these addresses.
    pub(super) fn new(addresses: Addresses, runtime: RuntimeHandle) -> Self {
        let (socket, own) = (Socket::unbound().ok(), Mutex::default());
        Self { addresses, socket, runtime, own }
    }

    /// Starts to listen, or delivers to another sink from now on.
    pub(super) fn listen(&self, sink: NoticeSink) {
        let mut own = self.own.lock();
        match &*own {
            Some(own) => *own.sink.lock() = sink,
            None => *own = Some(Arc::new(self.receiver(Arc::new(Mutex::new(sink))))),
        }
    }

    fn receiver(&self, sink: Arc<Mutex<NoticeSink>>) -> Receiver {
        let process = std::process::id();
        for (channel, path) in self.addresses.draw() {
            match Socket::bind(&path) {
                Ok(socket) => {
                    self.addresses.clean(&path);
                    let (end, ended) = oneshot::channel();
                    self.runtime.spawn(Box::pin(receive(socket, sink.clone(), ended)));
                    return Receiver { channel, sink, bound: Some((path, end)), process };
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
        Receiver { channel: "".into(), sink, bound: None, process }
    }

    /// Where this client hears; empty if it does not.
    pub(super) fn channel(&self) -> Arc<str> {
        self.own.lock().as_ref().map_or_else(|| "".into(), |own| own.channel.clone())
    }

    /// Stops listening.
    pub(super) fn close(&self) {
        *self.own.lock() = None;
    }

    /// Whether anybody listens on a channel. Where that cannot be told (a waiter without a socket, a socket of another
    /// user or another mount) the answer is yes: such a waiter lives as long as its refreshes come.
    pub(super) fn reachable(&self, channel: &str) -> bool {
        self.addresses.path(channel).is_none_or(|path| !is_dead(&path))
    }

    /// Sends notices, this client's own without a detour. Never waits.
    pub(super) fn deliver(self: &Arc<Self>, notices: Vec<(Arc<str>, Notice)>) {
        if notices.is_empty() {
            return;
        }
        let own = self.own.lock().clone();
        let mut messages: BTreeMap<Arc<str>, String> = BTreeMap::new();
        for (channel, notice) in notices {
            if let Some(own) = own.as_ref().filter(|own| own.channel == channel) {
                tell(&own.sink, notice);
                continue;
            }
            let message = messages.entry(channel.clone()).or_default();
            datagram::write(message, &notice);
            if message.len() > datagram::LIMIT - 128 {
                self.send_or_retry(channel, std::mem::take(message));
            }
        }
        for (channel, message) in messages {
            self.send_or_retry(channel, message);
        }
    }

    fn send_or_retry(self: &Arc<Self>, channel: Arc<str>, message: String) {
        if self.is_sent(&channel, &message) {
            return;
        }
        let notices = Arc::clone(self);
        self.runtime.spawn(Box::pin(async move {
            for pause in AGAIN_AFTER {
                notices.runtime.sleep_until(notices.runtime.now() + pause).await;
                if notices.is_sent(&channel, &message) {
                    return;
                }
            }
            tracing::debug!(%channel, "a waiter does not read its notices; its refresh will tell it");
        }));
    }

    /// Sends a datagram. `false` if the receiver lives and its queue is full.
    fn is_sent(&self, channel: &str, message: &str) -> bool {
        let (Some(socket), Some(path)) = (&self.socket, self.addresses.path(channel)) else {
            return true;
        };
        match socket.send_to(message.as_bytes(), &path) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            // A client that has gone, another user's socket, a path too long from here: its refresh tells it.
            Err(error) => tracing::debug!(%channel, %error, "a waiter cannot be told"),
            Ok(()) => {}
        }
        true
    }
}
