//! A wire between the workers and a server, which can stop carrying: a slow network that harms nobody else's.

use std::io::Result;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub(super) struct Wire {
    near: SocketAddr,
    carries: watch::Sender<bool>,
}

impl Wire {
    /// A wire to a server. It is served by a thread of its own, so that drawing the show does not slow it down.
    pub(super) fn to(host: String, port: u16) -> Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let near = listener.local_addr()?;
        let (carries, carrying) = watch::channel(true);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::spawn(move || {
            let host = host.trim_matches(['[', ']']).to_owned();
            runtime.block_on(serve(listener, host, port, carrying));
        });
        Ok(Self { near, carries })
    }

    /// Where the workers connect to.
    pub(super) fn near(&self) -> SocketAddr {
        self.near
    }

    /// Whether what is sent arrives.
    pub(super) fn carry(&self, carry: bool) {
        self.carries.send_replace(carry);
    }
}

/// Until the wire is dropped; what it still carries then ends with the runtime.
async fn serve(
    listener: std::net::TcpListener,
    host: String,
    port: u16,
    mut carrying: watch::Receiver<bool>,
) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    loop {
        let near = tokio::select! {
            biased;
            alive = carrying.changed() => if alive.is_ok() { continue } else { return },
            near = listener.accept() => near,
        };
        let Ok((near, _)) = near else { continue };
        // A server that is not there is told to the worker by the end of its connection.
        let Ok(far) = TcpStream::connect((host.as_str(), port)).await else { continue };
        if near.set_nodelay(true).and(far.set_nodelay(true)).is_err() {
            continue;
        }
        let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
        tokio::spawn(pass(near_in, far_out, carrying.clone()));
        tokio::spawn(pass(far_in, near_out, carrying.clone()));
    }
}

async fn pass(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut carrying: watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut bytes).await {
        let carried = carrying.wait_for(|carries| *carries).await.is_ok();
        if !carried || to.write_all(&bytes[..length]).await.is_err() {
            return;
        }
    }
}
