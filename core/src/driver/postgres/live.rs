//! One connection to a server that takes writes, set up and with its statements prepared.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::{Either, select};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls, SimpleQueryMessage};

use super::address::Address;
use super::fault::judge;
use crate::driver::hosts;
use crate::driver::socket_file::SocketFile;
use crate::driver::sql::fault::{absent, read_only};
use crate::driver::sql::first_host::first_host;
use crate::driver::sql::host::Host;
use crate::driver::tcp;
use crate::error::{Code, Error, Result};
use crate::port::RuntimeHandle;
use crate::runtime::sync::Mutex;

/// The callback for the messages of a connection and for its end.
pub(super) type Hear = Arc<dyn Fn(Heard) + Send + Sync>;

/// An event on a connection: a message or the end.
pub(super) enum Heard {
    /// A message on one of its channels.
    Message(String),
    /// Nothing more.
    End,
}

/// See the module. It ends when this is dropped.
pub(super) struct Live<S> {
    pub(super) client: Client,
    pub(super) statements: S,
    /// Its end is what counts.
    open: Mutex<Option<oneshot::Sender<()>>>,
}

/// The byte stream of a connection.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection to the first server that takes writes, in at most `limit`.
pub(super) async fn open_first(
    address: &Address,
    setup: &str,
    hear: Option<Hear>,
    runtime: &RuntimeHandle,
    limit: Duration,
) -> Result<(Live<()>, Host)> {
    let open = |host: Host| {
        let hear = hear.clone();
        async move { open(address, &host, setup, hear, runtime).await }
    };
    first_host(&address.hosts, &address.used, runtime, limit, open).await
}

/// Connects to a server, and has it read `setup`, of which the last statement answers whether it takes no writes and its version.
async fn open(
    address: &Address,
    host: &Host,
    setup: &str,
    hear: Option<Hear>,
    runtime: &RuntimeHandle,
) -> Result<Live<()>> {
    let stream = connect(address, host, runtime).await?;
    let fault = |error: tokio_postgres::Error| judge(address, &error, false).failure.error;
    let (client, connection) = address.config().connect_raw(stream, NoTls).await.map_err(fault)?;
    let ((open, left), used) = (oneshot::channel(), Arc::new(AtomicBool::new(false)));
    runtime.spawn(Box::pin(carry(connection, left, hear, used.clone())));
    let answers = client.simple_query(setup).await.map_err(fault)?;
    let last = answers.iter().rev().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let word = |at| last.and_then(|row| row.get(at)).unwrap_or_default();
    if word(0) != "off" {
        return Err(read_only().with("server", host.to_string()));
    }
    // As a number: 12.3 is 120003.
    if word(1).parse::<u32>().is_ok_and(|version| version < 120_000) {
        let message = "the server is too old: PostgreSQL 12 or newer is needed";
        return Err(Error::new(Code::Unsupported, message).with("server", host.to_string()));
    }
    used.store(true, Ordering::Release);
    Ok(Live { client, statements: (), open: Mutex::new(Some(open)) })
}

impl Live<()> {
    /// The same with its statements.
    pub(super) fn with<S>(self, statements: S) -> Live<S> {
        Live { client: self.client, statements, open: self.open }
    }
}

impl<S> Live<S> {
    /// Ends it, whoever has it yet.
    pub(super) fn end(&self) {
        drop(self.open.lock().take());
    }
}

/// Connects to a server; nothing is said there yet.
pub(super) async fn connect(
    address: &Address,
    host: &Host,
    runtime: &RuntimeHandle,
) -> Result<Box<dyn Stream>> {
    let absent = |error: std::io::Error| absent(host, &error.to_string());
    match host {
        Host::Unix(path) => {
            let stream = SocketFile::connect(path).await.map_err(absent)?;
            Ok(Box::new(stream))
        }
        Host::Tcp(hosts::Host { name, port }) => {
            let mut stream = tcp::connect(name, *port, runtime).await.map_err(absent)?;
            let Some(tls) = &address.tls else { return Ok(Box::new(stream)) };
            // The protocol's request for TLS: its length and its number; the answer is one letter.
            stream.write_all(&[0, 0, 0, 8, 4, 210, 22, 47]).await.map_err(absent)?;
            let mut answer = [0];
            stream.read_exact(&mut answer).await.map_err(absent)?;
            if answer != *b"S" {
                let message = "the server has no TLS, so what is sent there could be read and changed; set it up there, or add `sslmode=disable` if the network between is trusted";
                let error = Error::new(Code::Unavailable, message).with("server", host.to_string());
                return Err(error.with_retryable(false));
            }
            Ok(Box::new(tls.secure(stream, name, *port).await?))
        }
    }
}

/// Runs the connection until it ends or is not wanted any more. The end of one that was refused is no news.
async fn carry(
    mut connection: Connection<Box<dyn Stream>, tokio_postgres::tls::NoTlsStream>,
    left: oneshot::Receiver<()>,
    hear: Option<Hear>,
    used: Arc<AtomicBool>,
) {
    let heard = async {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let (AsyncMessage::Notification(notice), Some(hear)) = (message, &hear) {
                hear(Heard::Message(notice.payload().to_owned()));
            }
        }
    };
    // Asked first: a connection whose client goes says goodbye if it can do so at once.
    let ended = matches!(select(pin!(heard), left).await, Either::Left(_));
    // Before anybody is told: it must not be taken for a sound one.
    drop(connection);
    if let Some(hear) = hear.filter(|_| ended && used.load(Ordering::Acquire)) {
        hear(Heard::End);
    }
}
