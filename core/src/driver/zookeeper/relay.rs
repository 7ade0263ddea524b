//! The way to members that speak TLS. The client library connects by itself, so it is led to ports of this process on the loopback
//! address, and what it says there is carried over TLS.
//!
//! Everybody on this machine can connect to such a port, and would speak to the member in our name. So a connection is carried only
//! once it has told a secret, as a login of a scheme of its own. The login is answered here and goes no further.

use std::io;
use std::net::Ipv4Addr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::{Either, Shared, select};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, split};
use tokio::net::{TcpListener, TcpStream};
use zookeeper_client::Connector;

use super::fault::{unintroduced, unreached};
use crate::driver::hosts::{Host, shown};
use crate::driver::members::Address;
use crate::driver::tls::Tls;
use crate::error::{Code, Error, Result};
use crate::port::RuntimeHandle;
use crate::runtime::sync::Mutex;

/// The scheme of the login that says the secret.
const SCHEME: &str = "fencelock";
/// The login between its number and the secret: the kind of request, a zero, the scheme and the secret's length.
const LOGIN: &[u8] = b"\0\0\0\x64\0\0\0\0\0\0\0\x09fencelock\0\0\0\x10";
/// No request or answer that begins a session is longer.
const LONGEST: usize = 512;
/// How much is carried at once.
const CHUNK: usize = 16 * 1024;
/// How long nothing is accepted when the process has no file descriptor left.
const PAUSE: Duration = Duration::from_millis(20);

/// The ports that lead to the members of an ensemble. They are given back when this is dropped, which must not be before the
/// library has ended: another program could take a port then, and would be told what is meant for a member.
pub(super) struct Relay {
    ports: Vec<Host>,
    secret: [u8; 16],
    failure: Arc<Mutex<Option<Error>>>,
    _over: oneshot::Sender<()>,
}

/// The way to one member.
struct Way {
    host: Host,
    tls: Arc<Tls>,
    secret: u128,
    /// How long it may take to reach the member.
    limit: Duration,
    runtime: RuntimeHandle,
    failure: Arc<Mutex<Option<Error>>>,
    over: Shared<oneshot::Receiver<()>>,
}

impl Relay {
    /// Opens a port for each member. It may take as long as `limit` to reach one.
    pub(super) async fn open(
        address: &Address,
        tls: Arc<Tls>,
        limit: Duration,
        runtime: &RuntimeHandle,
    ) -> Result<Self> {
        let mut secret = [0; 16];
        runtime.random(&mut secret);
        let (sender, over) = oneshot::channel();
        let (over, failure, mut ports) = (over.shared(), Arc::default(), Vec::new());
        for host in &address.hosts {
            let (listener, port) = listen().await?;
            ports.push(Host { name: Ipv4Addr::LOCALHOST.to_string(), port });
            let way = Way {
                host: host.clone(),
                tls: tls.clone(),
                secret: u128::from_be_bytes(secret),
                limit,
                runtime: runtime.clone(),
                failure: Arc::clone(&failure),
                over: over.clone(),
            };
            runtime.spawn(Box::pin(Arc::new(way).serve(listener)));
        }
        Ok(Self { ports, secret, failure, _over: sender })
    }

    /// The ports, as the client library takes them.
    pub(super) fn hosts(&self) -> String {
        shown(&self.ports)
    }

    /// Makes the library tell the secret, before any other login.
    pub(super) fn introduce(&self, connector: Connector) -> Connector {
        connector.with_auth(SCHEME, &self.secret)
    }

    /// Why no member was reached; one that will not be reached later either comes first.
    pub(super) fn failure(&self) -> Option<Error> {
        self.failure.lock().clone()
    }
}

async fn listen() -> Result<(TcpListener, u16)> {
    let listening = async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        Ok((listener, port))
    };
    listening.await.map_err(|error: io::Error| {
        let message = "with TLS, ZooKeeper is spoken to by way of a port on 127.0.0.1, and none can be opened";
        Error::new(Code::Unavailable, message).with("reason", error.to_string())
    })
}

impl Way {
    async fn serve(self: Arc<Self>, listener: TcpListener) {
        loop {
            match select(pin!(listener.accept()), self.over.clone()).await {
                Either::Left((Ok((local, _)), _)) => {
                    let way = self.clone();
                    self.runtime.spawn(Box::pin(async move { way.carry(local).await }));
                }
                Either::Left((Err(_), _)) => {
                    self.runtime.sleep(PAUSE).await;
                }
                Either::Right(_) => return,
            }
        }
    }

    /// Carries what one connection of the library says, if it is one.
    async fn carry(&self, mut local: TcpStream) {
        let limit = self.runtime.sleep(self.limit);
        let introduced = introduction(&mut local, self.secret);
        let Either::Left((Ok(Some(introduced)), limit)) = select(pin!(introduced), limit).await
        else {
            return;
        };
        let (answer, remote) = match select(pin!(self.reach(&introduced.connect)), limit).await {
            Either::Left((Ok(reached), _)) => reached,
            Either::Left((Err(error), _)) => return self.fail(error),
            Either::Right(_) => return self.fail(unreached(&self.host)),
        };
        *self.failure.lock() = None;
        let _ = local.set_nodelay(true);
        if local.write_all(&[answer, accepted(introduced.xid)].concat()).await.is_err() {
            return;
        }
        // The library has ended by then; what it has said last is still sent.
        let over = self.over.clone().then(|_| {
            let end = self.runtime.now() + self.limit;
            self.runtime.sleep_until(end)
        });
        select(pin!(pass(local, remote)), pin!(over)).await;
    }

    /// Asks the member for a session; its answer. What the library says next must wait for that: a member whose TLS is Netty's may
    /// answer a login first.
    async fn reach(
        &self,
        connect: &[u8],
    ) -> Result<(Vec<u8>, impl AsyncRead + AsyncWrite + use<>)> {
        let mut remote = self.tls.connect(&self.host, &self.runtime).await?;
        let asking = async {
            remote.write_all(connect).await?;
            remote.flush().await?;
            frame(&mut remote).await
        };
        let answer = asking.await.map_err(|error| unintroduced(&self.host, &error))?;
        Ok((answer, remote))
    }

    fn fail(&self, error: Error) {
        let mut failure = self.failure.lock();
        if failure.as_ref().is_none_or(Error::retryable) {
            *failure = Some(error);
        }
    }
}

/// Carries both ways, until either side has ended.
async fn pass(local: TcpStream, remote: impl AsyncRead + AsyncWrite) {
    let (mut from_member, mut to_member) = split(remote);
    let (mut from_library, mut to_library) = local.into_split();
    let there = async {
        let mut said = vec![0; CHUNK];
        loop {
            let Ok(length @ 1..) = from_library.read(&mut said).await else {
                let _ = to_member.shutdown().await;
                return;
            };
            if to_member.write_all(&said[..length]).await.is_err()
                || to_member.flush().await.is_err()
            {
                break;
            }
        }
        // What the member has said before is still heard.
        std::future::pending::<()>().await;
    };
    select(pin!(there), pin!(copy(&mut from_member, &mut to_library))).await;
}

/// How a connection of the library begins.
struct Introduction {
    /// The request for a session.
    connect: Vec<u8>,
    /// The number of the login.
    xid: [u8; 4],
}

/// Reads how a connection begins; `None`: whoever has made it does not know the secret.
async fn introduction(local: &mut TcpStream, secret: u128) -> io::Result<Option<Introduction>> {
    let (connect, login) = (frame(local).await?, frame(local).await?);
    let Some((head, given)) = login.split_last_chunk() else { return Ok(None) };
    let Some(([.., a, b, c, d], rest)) = head.split_first_chunk::<8>() else { return Ok(None) };
    // Two numbers take as long to compare wherever they differ.
    let ours = rest == LOGIN && u128::from_be_bytes(*given) == secret;
    Ok(ours.then_some(Introduction { connect, xid: [*a, *b, *c, *d] }))
}

/// The answer to the login of this number.
fn accepted(xid: [u8; 4]) -> Vec<u8> {
    // Its length, the number, the store's change, no error.
    [&16_i32.to_be_bytes()[..], &xid, &[0; 8], &[0; 4]].concat()
}

/// Reads a request or answer, with its length before it.
async fn frame(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let length = from.read_u32().await?;
    let mut frame = length.to_be_bytes().to_vec();
    match usize::try_from(length) {
        Ok(length) if length <= LONGEST => frame.resize(4 + length, 0),
        _ => return Err(io::Error::other("what it says is not ZooKeeper's")),
    }
    from.read_exact(&mut frame[4..]).await?;
    Ok(frame)
}
