//! TCP connections to a host at any of its addresses. An idle connection is probed: so what stands between keeps it, and one that has
//! gone is noticed.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

use super::addresses::{first, resolve};
use crate::port::RuntimeHandle;

/// After so long the next address is tried beside those before it.
const STAGGER: Duration = Duration::from_millis(250);
/// A connection that was idle for so long is probed, and so often until it answers.
const IDLE: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_secs(10);
/// After so many probes without an answer it has ended.
#[cfg(unix)]
const RETRIES: u32 = 3;

/// A connection to whichever address of the host answers first.
pub(super) async fn connect(
    name: &str,
    port: u16,
    runtime: &RuntimeHandle,
) -> io::Result<TcpStream> {
    let addresses = resolve(name, port).await?;
    let connected = first(addresses, STAGGER, runtime, TcpStream::connect, |_| false).await;
    let stream =
        connected.map_err(|refusal| refusal.unwrap_or_else(|| io::ErrorKind::NotFound.into()))?;
    stream.set_nodelay(true)?;
    let probes = TcpKeepalive::new().with_time(IDLE).with_interval(AGAIN);
    #[cfg(unix)]
    let probes = probes.with_retries(RETRIES);
    SockRef::from(&stream).set_tcp_keepalive(&probes)?;
    Ok(stream)
}
