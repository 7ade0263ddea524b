//! A proxy between the workers and a server. It can stop forwarding, as a slow network does, which harms no other client of the server.

use std::io::Result;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub(super) struct Proxy {
    near: SocketAddr,
    forwards: watch::Sender<bool>,
}

impl Proxy {
    /// A proxy to a server. It is served by a thread of its own, so that drawing the show does not slow it down.
    pub(super) fn to(host: String, port: u16) -> Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let near = listener.local_addr()?;
        let (forwards, forwarding) = watch::channel(true);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::spawn(move || {
            let host = host.trim_matches(['[', ']']).to_owned();
            runtime.block_on(serve(listener, host, port, forwarding));
        });
        Ok(Self { near, forwards })
    }

    /// Where the workers connect to.
    pub(super) fn near(&self) -> SocketAddr {
        self.near
    }

    /// Whether it forwards what is sent.
    pub(super) fn forward(&self, forward: bool) {
        self.forwards.send_replace(forward);
    }
}

/// Until the proxy is dropped; what it still forwards then ends with the runtime.
async fn serve(
    listener: std::net::TcpListener,
    host: String,
    port: u16,
    mut forwarding: watch::Receiver<bool>,
) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    loop {
        let near = tokio::select! {
            biased;
            alive = forwarding.changed() => if alive.is_ok() { continue } else { return },
            near = listener.accept() => near,
        };
        let Ok((near, _)) = near else { continue };
        // A server that is not there is told to the worker by the end of its connection.
        let Ok(far) = TcpStream::connect((host.as_str(), port)).await else { continue };
        if near.set_nodelay(true).and(far.set_nodelay(true)).is_err() {
            continue;
        }
        let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
        tokio::spawn(pass(near_in, far_out, forwarding.clone()));
        tokio::spawn(pass(far_in, near_out, forwarding.clone()));
    }
}

async fn pass(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut forwarding: watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut bytes).await {
        let forwarded = forwarding.wait_for(|forwards| *forwards).await.is_ok();
        if !forwarded || to.write_all(&bytes[..length]).await.is_err() {
            return;
        }
    }
}
