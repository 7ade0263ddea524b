//! TCP connections. Of a host all addresses are tried, the next one as soon as the one before was silent for a moment (RFC 8305). An idle
//! connection is probed: so what stands between keeps it, and one that has gone is noticed.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{Either, pending, select};
use futures_util::stream::FuturesUnordered;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, lookup_host};

use crate::port::{BoxFuture, RuntimeHandle};

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
    let stream = first(lookup_host((name, port)).await?.collect(), runtime).await?;
    stream.set_nodelay(true)?;
    let probes = TcpKeepalive::new().with_time(IDLE).with_interval(AGAIN);
    #[cfg(unix)]
    let probes = probes.with_retries(RETRIES);
    SockRef::from(&stream).set_tcp_keepalive(&probes)?;
    Ok(stream)
}

async fn first(addresses: Vec<SocketAddr>, runtime: &RuntimeHandle) -> io::Result<TcpStream> {
    let mut untried = alternating(addresses).into_iter();
    let mut tried = FuturesUnordered::new();
    let mut refusal = io::Error::other("the name has no address");
    loop {
        match untried.next() {
            Some(address) => tried.push(TcpStream::connect(address)),
            None if tried.is_empty() => return Err(refusal),
            None => {}
        }
        let moment: BoxFuture<'_, ()> = match untried.len() {
            0 => Box::pin(pending()),
            _ => Box::pin(runtime.sleep(STAGGER)),
        };
        match select(tried.next(), moment).await {
            Either::Left((Some(Ok(stream)), _)) => return Ok(stream),
            Either::Left((Some(Err(error)), _)) => refusal = error,
            Either::Left((None, _)) | Either::Right(_) => {}
        }
    }
}

/// The addresses of both families in turn, beginning with the first: a whole family may be unreachable.
fn alternating(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let family = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (mut one, mut other): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == family);
    (one, other) = (one.into_iter().rev().collect(), other.into_iter().rev().collect());
    let mut all = Vec::new();
    while !one.is_empty() || !other.is_empty() {
        all.extend(one.pop().into_iter().chain(other.pop()));
    }
    all
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::runtime::TokioRuntime;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn families_take_turns() {
        let all = ["[::1]:1", "[::2]:1", "[::3]:1", "10.0.0.1:1"].map(address);
        let expected = ["[::1]:1", "10.0.0.1:1", "[::2]:1", "[::3]:1"].map(address);
        assert_eq!(alternating(all.to_vec()), expected);
    }

    /// U22: the first address does not answer, and is not waited for.
    #[tokio::test]
    async fn u22_a_silent_address_holds_the_next_one_up_for_a_moment() {
        let runtime: RuntimeHandle = Arc::new(TokioRuntime::current().unwrap());
        // Its queue is full: who connects there is not answered.
        let silent =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        silent.bind(&address("127.0.0.1:0").into()).unwrap();
        silent.listen(0).unwrap();
        let full = silent.local_addr().unwrap().as_socket().unwrap();
        let _first = std::net::TcpStream::connect(full).unwrap();
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let there = server.local_addr().unwrap();
        let stream = first(vec![full, there], &runtime).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), there);
        let refused = first(vec![address("127.0.0.1:1")], &runtime).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}
