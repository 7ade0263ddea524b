//! A proxy before a server that counts round trips: how often a client has sent something after it was answered.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// See the module; it ends when this is dropped.
pub(crate) struct Crossing {
    port: u16,
    trips: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Crossing {
    /// One before the server on this port.
    pub(crate) async fn before(server: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let (port, trips) = (listener.local_addr()?.port(), Arc::new(AtomicU64::new(0)));
        let counted = trips.clone();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, server, counted.clone()));
            }
        });
        Ok(Self { port, trips, task })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn trips(&self) -> u64 {
        self.trips.load(Ordering::Relaxed)
    }
}

impl Drop for Crossing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(client: TcpStream, server: u16, trips: Arc<AtomicU64>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let answered = Arc::new(AtomicBool::new(true));
    let asked = answered.clone();
    tokio::spawn(copy(from_client, to_server, move || {
        if asked.swap(false, Ordering::Relaxed) {
            trips.fetch_add(1, Ordering::Relaxed);
        }
    }));
    copy(from_server, to_client, move || answered.store(true, Ordering::Relaxed)).await;
}

/// Until one of the ends has gone.
async fn copy(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, seen: impl Fn()) {
    let mut buffer = [0; 8192];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        seen();
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
