//! The way to other clients: notices sent to their sockets once the change is safely stored.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use super::address::Addresses;
use super::receiver::Receiver;
use super::socket::{Socket, is_dead, is_refusal};
use crate::driver::datagram;
use crate::port::{Notice, RuntimeHandle};

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

/// Sends to the sockets of the clients of one database.
pub(super) struct Sender {
    addresses: Addresses,
    /// `None` where there are no such sockets: then nobody is told, and waiters live by their refreshes.
    socket: Option<Socket>,
    runtime: RuntimeHandle,
}

/// The result of sending a datagram.
#[derive(PartialEq, Eq)]
enum Sent {
    /// Delivered, or never to be.
    Done,
    /// The receiver lives and its queue is full.
    Full,
}

impl Sender {
    /// A sender to these addresses.
    pub(super) fn new(addresses: Addresses, runtime: RuntimeHandle) -> Self {
        Self { addresses, socket: Socket::unbound().ok(), runtime }
    }

    /// The addresses it sends to.
    pub(super) fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Whether anybody listens on a channel. Where that cannot be told (a waiter without a socket, a socket of another
    /// user or another mount) the answer is yes: such a waiter lives as long as its refreshes come.
    pub(super) fn reachable(&self, channel: &str) -> bool {
        self.addresses.path(channel).is_none_or(|path| !is_dead(&path))
    }

    /// Sends notices, those for `own` without a detour. Never waits.
    pub(super) fn deliver(
        self: &Arc<Self>,
        notices: Vec<(Arc<str>, Notice)>,
        own: Option<&Receiver>,
    ) {
        let mut messages: BTreeMap<Arc<str>, String> = BTreeMap::new();
        for (channel, notice) in notices {
            if let Some(own) = own.filter(|own| own.channel() == &channel) {
                own.tell(notice);
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
        if self.send(&channel, &message) == Sent::Done {
            return;
        }
        let sender = Arc::clone(self);
        self.runtime.spawn(Box::pin(async move {
            for pause in AGAIN_AFTER {
                sender.runtime.sleep_until(sender.runtime.now() + pause).await;
                if sender.send(&channel, &message) == Sent::Done {
                    return;
                }
            }
            tracing::debug!(%channel, "a waiter does not read its notices; its refresh will tell it");
        }));
    }

    fn send(&self, channel: &str, message: &str) -> Sent {
        let (Some(socket), Some(path)) = (&self.socket, self.addresses.path(channel)) else {
            return Sent::Done;
        };
        match socket.send_to(message.as_bytes(), &path) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Sent::Full,
            Err(error) if is_refusal(error.kind()) => self.addresses.mark_dead(&path),
            // Another user's socket, or a path too long from here: its refresh tells it.
            Err(error) => tracing::debug!(%channel, %error, "a waiter cannot be told"),
            Ok(()) => {}
        }
        Sent::Done
    }
}
