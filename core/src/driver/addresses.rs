//! The addresses of a host. All are tried, the next one as soon as the one before was silent for a moment (RFC 8305).

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{Either, pending, select};
use futures_util::stream::FuturesUnordered;
use tokio::net::lookup_host;

use crate::port::{BoxFuture, RuntimeHandle};

/// The addresses that a name has.
pub(super) async fn resolve(name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let addresses = alternating(lookup_host((name, port)).await?.collect());
    if addresses.is_empty() {
        Err(io::Error::other("the name has no address"))
    } else {
        Ok(addresses)
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

/// The result of `open` at whichever address succeeds first; the next one is tried beside those before it after each `stagger`, or as
/// soon as one has failed. Fails with the first error that is `clear`, otherwise with the last.
#[allow(dead_code, reason = "ZooKeeper's library connects by itself")]
pub(super) async fn first<T, E, F: Future<Output = Result<T, E>>>(
    addresses: Vec<SocketAddr>,
    stagger: Duration,
    runtime: &RuntimeHandle,
    open: impl Fn(SocketAddr) -> F,
    clear: impl Fn(&E) -> bool,
) -> Result<T, Option<E>> {
    let mut untried = addresses.into_iter();
    let mut tried = FuturesUnordered::new();
    let mut refusal = None;
    loop {
        match untried.next() {
            Some(address) => tried.push(open(address)),
            None if tried.is_empty() => return Err(refusal),
            None => {}
        }
        let moment: BoxFuture<'_, ()> = match untried.len() {
            0 => Box::pin(pending()),
            _ => Box::pin(runtime.sleep(stagger)),
        };
        match select(tried.next(), moment).await {
            Either::Left((Some(Ok(opened)), _)) => return Ok(opened),
            Either::Left((Some(Err(error)), _)) if clear(&error) => return Err(Some(error)),
            Either::Left((Some(Err(error)), _)) => refusal = Some(error),
            Either::Left((None, _)) | Either::Right(_) => {}
        }
    }
}

#[cfg(all(test, feature = "redis"))]
mod tests {
    use std::sync::Arc;

    use tokio::net::TcpStream;

    use super::*;
    use crate::runtime::TokioRuntime;

    const MOMENT: Duration = Duration::from_millis(250);

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
        let stream = first(vec![full, there], MOMENT, &runtime, TcpStream::connect, |_| false)
            .await
            .unwrap();
        assert_eq!(stream.peer_addr().unwrap(), there);
        let refused =
            first(vec![address("127.0.0.1:1")], MOMENT, &runtime, TcpStream::connect, |_| false)
                .await
                .unwrap_err();
        assert_eq!(refused.unwrap().kind(), io::ErrorKind::ConnectionRefused);
    }
}
