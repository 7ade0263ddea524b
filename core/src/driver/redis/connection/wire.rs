//! One connection to one server, in the clear, over TLS or a socket of the machine.

use std::time::Duration;

use futures_util::future::{AbortHandle, abortable};
use redis::aio::{MultiplexedConnection, PubSub};
use redis::{AsyncConnectionConfig, Pipeline, RedisConnectionInfo, RedisError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::driver::hosts;
use crate::driver::redis::address::{Address, Host};
use crate::driver::redis::fault;
use crate::driver::redis::scripts;
use crate::driver::socket_file::SocketFile;
use crate::driver::tcp;
use crate::driver::within::within;
use crate::error::Error;
use crate::port::RuntimeHandle;

/// How long somebody listens for what a server that hangs up says of its own accord.
const PATIENCE: Duration = Duration::from_millis(200);

/// Why there is no connection.
pub(crate) enum Trouble {
    /// The crate's reason, which may quote the server.
    Redis(RedisError),
    Ours(Error),
}

impl From<RedisError> for Trouble {
    fn from(error: RedisError) -> Self {
        Self::Redis(error)
    }
}

impl Trouble {
    pub(crate) fn into_error(self, address: &Address) -> Error {
        match self {
            Self::Redis(error) => fault::unreachable(address, &error),
            Self::Ours(error) => error,
        }
    }
}

/// A task that ends with this value.
pub(crate) struct AbortOnDrop(AbortHandle);

impl AbortOnDrop {
    /// Starts a task.
    pub(crate) fn tie(
        runtime: &RuntimeHandle,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let (task, handle) = abortable(task);
        runtime.spawn(Box::pin(async move {
            // Aborted or at its end: nobody asks.
            let _ = task.await;
        }));
        Self(handle)
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Connects, with the handshake. The second value is the connection's task: dropping it ends what is under way at once.
pub(crate) async fn connect(
    address: &Address,
    host: &Host,
    settings: RedisConnectionInfo,
    config: AsyncConnectionConfig,
    runtime: &RuntimeHandle,
) -> Result<(MultiplexedConnection, AbortOnDrop), Trouble> {
    let stream = open(address, host, runtime).await?;
    match MultiplexedConnection::new_with_config(&settings, stream, config).await {
        Ok((connection, task)) => Ok((connection, AbortOnDrop::tie(runtime, task))),
        Err(error) if error.is_io_error() && address.tls.is_none() => {
            let words = last_words(address, host, runtime).await;
            Err(words.map_or(Trouble::Redis(error), Trouble::Ours))
        }
        Err(error) => Err(error.into()),
    }
}

/// The error that a server sends before it closes every connection, having too many clients or being protected from strangers. A
/// client that is just about to write would lose it, so this one only reads.
async fn last_words(address: &Address, host: &Host, runtime: &RuntimeHandle) -> Option<Error> {
    let Host::Tcp(hosts::Host { name, port }) = host else { return None };
    let listening = async {
        let stream = TcpStream::connect((&**name, *port)).await.ok()?;
        stream.readable().await.ok()?;
        let mut words = [0; 512];
        let count = stream.try_read(&mut words).ok()?;
        Some(String::from_utf8_lossy(words[..count].strip_prefix(b"-")?).trim().to_owned())
    };
    let words = within(runtime, PATIENCE, listening).await??;
    Some(fault::refusal(address, &words, None))
}

/// Makes the first scripts known to the server.
pub(crate) async fn load(connection: &mut MultiplexedConnection) -> Result<(), RedisError> {
    let commands = scripts::load();
    let count = commands.len();
    let mut pipeline = Pipeline::with_capacity(count);
    for command in commands {
        pipeline.add_command(command);
    }
    for reply in connection.send_packed_commands(&pipeline, 0, count).await? {
        reply.extract_error()?;
    }
    Ok(())
}

/// A stream of bytes to a server.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

async fn open(
    address: &Address,
    host: &Host,
    runtime: &RuntimeHandle,
) -> Result<Box<dyn Stream>, Trouble> {
    Ok(match (host, &address.tls) {
        (Host::Unix(path), _) => {
            Box::new(SocketFile::connect(path).await.map_err(RedisError::from)?)
        }
        // The TLS of the crate would install a crypto provider for the whole process, and trust the system beside `cacert`.
        (Host::Tcp(host), Some(tls)) => {
            Box::new(tls.connect(host, runtime).await.map_err(Trouble::Ours)?)
        }
        (Host::Tcp(hosts::Host { name, port }), None) => {
            Box::new(tcp::connect(name, *port, runtime).await.map_err(RedisError::from)?)
        }
    })
}

/// Connects to a sentinel, to listen.
pub(crate) async fn listen(
    address: &Address,
    host: &Host,
    settings: RedisConnectionInfo,
    runtime: &RuntimeHandle,
) -> Result<PubSub, Trouble> {
    Ok(PubSub::new(&settings, open(address, host, runtime).await?).await?)
}
