//! One connection to one server, in the clear, over TLS or a socket of the machine.

use std::time::Duration;

use futures_util::future::{AbortHandle, abortable};
use redis::aio::{MultiplexedConnection, PubSub};
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo, Pipeline,
    RedisConnectionInfo, RedisError,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::driver::redis::address::{Address, Host};
use crate::driver::redis::fault;
use crate::driver::redis::scripts;
use crate::driver::tcp;
use crate::driver::tls::Tls;
use crate::driver::within::within;
use crate::error::Error;
use crate::port::RuntimeHandle;

/// How long somebody listens for what a server that hangs up says of its own accord.
const PATIENCE: Duration = Duration::from_millis(200);

/// Why there is no connection.
pub(in crate::driver::redis) enum Trouble {
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
    /// Whether the server, or what stands before it, speaks only the older protocol.
    pub(in crate::driver::redis) fn lacks_resp3(&self) -> bool {
        let Self::Redis(error) = self else { return false };
        let unknown = |detail: &str| detail.to_lowercase().starts_with("unknown command");
        error.kind() == ErrorKind::RESP3NotSupported
            || error.code() == Some("NOPROTO")
            || error.code() == Some("ERR") && error.detail().is_some_and(unknown)
    }

    pub(in crate::driver::redis) fn into_error(self, address: &Address) -> Error {
        match self {
            Self::Redis(error) => fault::unreachable(address, &error),
            Self::Ours(error) => error,
        }
    }
}

/// A task that ends with this value.
pub(in crate::driver::redis) struct AbortOnDrop(AbortHandle);

impl AbortOnDrop {
    /// Starts a task.
    pub(in crate::driver::redis) fn tie(
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

/// Connects, with the handshake. The task, if there is one, holds the connection's task: whoever lets go of it ends what is under
/// way at once. One server in the clear has none: there is nowhere else to go, and its task is the crate's own.
pub(in crate::driver::redis) async fn connect(
    address: &Address,
    host: &Host,
    settings: RedisConnectionInfo,
    config: AsyncConnectionConfig,
    runtime: &RuntimeHandle,
) -> Result<(MultiplexedConnection, Option<AbortOnDrop>), Trouble> {
    if let Some(tls) = &address.tls {
        let stream = secure(tls, host, runtime).await?;
        let (connection, task) =
            MultiplexedConnection::new_with_config(&settings, stream, config).await?;
        return Ok((connection, Some(AbortOnDrop::tie(runtime, task))));
    }
    if let (false, Host::Tcp(name, port)) = (address.is_single(), host) {
        let stream = tcp::connect(name, *port, runtime).await.map_err(RedisError::from)?;
        let (connection, task) =
            MultiplexedConnection::new_with_config(&settings, stream, config).await?;
        return Ok((connection, Some(AbortOnDrop::tie(runtime, task))));
    }
    let client = redis::Client::open(plain(host, settings))?;
    match client.get_multiplexed_async_connection_with_config(&config).await {
        Ok(connection) => Ok((connection, None)),
        Err(error) if error.is_io_error() => Err(last_words(address, host, runtime)
            .await
            .map_or(Trouble::Redis(error), Trouble::Ours)),
        Err(error) => Err(error.into()),
    }
}

/// The error that a server sends before it closes every connection, having too many clients or being protected from strangers. A
/// client that is just about to write would lose it, so this one only reads.
async fn last_words(address: &Address, host: &Host, runtime: &RuntimeHandle) -> Option<Error> {
    let Host::Tcp(name, port) = host else { return None };
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
pub(in crate::driver::redis) async fn load(
    connection: &mut MultiplexedConnection,
) -> Result<(), RedisError> {
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

/// An encrypted connection.
async fn secure(
    tls: &Tls,
    host: &Host,
    runtime: &RuntimeHandle,
) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static, Trouble> {
    let Host::Tcp(name, port) = host else {
        let message = "a socket of the machine is not encrypted";
        return Err(Trouble::Ours(Error::internal(message)));
    };
    // The TLS of the crate would install a crypto provider for the whole process, and trust the system beside `cacert`.
    tls.connect(name, *port, runtime).await.map_err(Trouble::Ours)
}

/// Connects to listen, for servers that cannot push beside their answers.
pub(in crate::driver::redis) async fn listen(
    address: &Address,
    host: &Host,
    settings: RedisConnectionInfo,
    runtime: &RuntimeHandle,
) -> Result<PubSub, Trouble> {
    if let Some(tls) = &address.tls {
        let stream = secure(tls, host, runtime).await?;
        return Ok(PubSub::new(&settings, stream).await?);
    }
    Ok(redis::Client::open(plain(host, settings))?.get_async_pubsub().await?)
}

/// The settings by which the `redis` crate connects to a server without TLS.
fn plain(host: &Host, settings: RedisConnectionInfo) -> ConnectionInfo {
    let place = match host.clone() {
        Host::Tcp(host, port) => ConnectionAddr::Tcp(host, port),
        Host::Unix(path) => ConnectionAddr::Unix(path),
    };
    let info = place.into_connection_info().expect("an address of parts is one");
    let tcp = TcpSettings::default().set_nodelay(true).set_keepalive(tcp::keepalive());
    info.set_redis_settings(settings).set_tcp_settings(tcp)
}
