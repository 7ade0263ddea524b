//! Wake-ups between the clients of one file: each that listens has a datagram socket, whose name stands in its tickets. The socket is a file
//! beside the database, named after it, or in the temporary directory where that cannot be. Windows has none: waiters ask again by themselves
//! there.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::{Either, select};

pub(super) use self::platform::{Socket, is_dead, made_at};
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
    let pass_on = |bytes: &[u8]| datagram::read(bytes).for_each(|notice| tell(&sink, notice));
    let receiving = pin!(socket.receive(datagram::LIMIT, pass_on));
    if let Either::Right((Err(error), _)) = select(ended, receiving).await {
        tracing::warn!(%error, "wake-ups do not arrive any more; polling instead");
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
                notices.runtime.sleep(pause).await;
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
            Err(error) => tracing::debug!(%channel, %error, "a waiter cannot be notified"),
            Ok(()) => {}
        }
        true
    }
}

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
        pub(in super::super) async fn receive(
            self,
            most: usize,
            mut pass_on: impl FnMut(&[u8]),
        ) -> io::Result<()> {
            let socket = tokio::net::UnixDatagram::from_std(self.0)?;
            let mut buffer = vec![0; most];
            loop {
                let length = socket.recv(&mut buffer).await?;
                pass_on(&buffer[..length]);
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

        #[allow(clippy::unused_async)] // As its counterpart, which awaits.
        pub(in super::super) async fn receive(
            self,
            _: usize,
            _: impl FnMut(&[u8]),
        ) -> io::Result<()> {
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

const MARK: &str = "fencelock-";
const END: &str = ".sock";
const DIGITS: usize = 16;
/// A socket's file exists a moment before it can be reached: a young one is left alone.
const YOUNG: u64 = 10;

/// The addresses of one database's clients.
///
/// A socket beside the file is written into tickets by its file name alone, so that processes which see the directory
/// under different paths (containers with a shared volume) reach each other; one elsewhere by its whole path.
pub(super) struct Addresses {
    directory: PathBuf,
    /// The prefix of the names beside the file; `None` if the file's name is not UTF-8, which tickets are.
    prefix: Option<String>,
    runtime: RuntimeHandle,
}

impl Addresses {
    /// Those of the database at `path`, an absolute path without links.
    pub(super) fn of(path: &Path, runtime: RuntimeHandle) -> Self {
        let name = path.file_name().and_then(|name| name.to_str());
        Self {
            directory: path.parent().unwrap_or(Path::new("/")).to_owned(),
            prefix: name.map(|name| format!("{name}.{MARK}")),
            runtime,
        }
    }

    /// Places to bind a new socket, best first, each as channel and path.
    pub(super) fn draw(&self) -> Vec<(Arc<str>, PathBuf)> {
        let mut bytes = [0; 8];
        self.runtime.random(&mut bytes);
        let end = format!("{:0DIGITS$x}{END}", u64::from_le_bytes(bytes));
        let beside = self.prefix.as_ref().map(|prefix| {
            let name = format!("{prefix}{end}");
            let path = self.directory.join(&name);
            (name.into(), path)
        });
        let path = std::env::temp_dir().join(format!("{MARK}{end}"));
        let elsewhere = path.to_str().filter(|_| path.is_absolute()).map(Arc::from);
        beside.into_iter().chain(elsewhere.map(|channel| (channel, path))).collect()
    }

    /// The path a ticket's channel stands for, if it is one of ours.
    pub(super) fn path(&self, channel: &str) -> Option<PathBuf> {
        let path = Path::new(channel);
        if !is_ours(path) {
            return None;
        }
        (path.is_absolute() || !channel.contains('/')).then(|| self.directory.join(path))
    }

    /// Removes the sockets beside `own` that nobody listens on any more.
    pub(super) fn clean(&self, own: &Path) {
        let Some(directory) = own.parent() else { return };
        // In the temporary directory they are not named after the database.
        let prefix = match &self.prefix {
            Some(prefix) if directory == self.directory => prefix,
            _ => MARK,
        };
        let now = i64::try_from(self.runtime.wall() / 1_000_000).unwrap_or(i64::MAX);
        let is_stale = |path: &Path| {
            made_at(path).is_some_and(|at| at.saturating_add_unsigned(YOUNG) < now) && is_dead(path)
        };
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let named = entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix));
            let path = entry.path();
            if named && is_ours(&path) && is_stale(&path) {
                // Somebody else may have been faster.
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Whether a file is named as our sockets are.
fn is_ours(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let digits = name.strip_suffix(END).and_then(|name| Some(name.rsplit_once(MARK)?.1));
    digits.is_some_and(|digits| {
        digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}
