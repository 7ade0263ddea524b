//! A network that fails on purpose: a TCP proxy on loopback that cuts and holds back.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use url::Url;

/// The faults of a proxy's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weather {
    Fair,
    /// The connection is ended.
    Cut,
    /// The client's end of the connection is closed, and the server hears nothing of it.
    Left,
    /// Of the next reply only so many bytes arrive, then the connection is cut.
    CutAfter(usize),
    /// The next data from clients is lost, and the connection with it.
    CutRequests,
    /// Data from clients stays on the way.
    HoldRequests,
    /// Data from the server stays on the way.
    HoldReplies,
    /// Data from the server comes this much later.
    SlowReplies(Duration),
}

/// A proxy before one server. Its connections end when it is dropped.
pub struct Proxy {
    url: Url,
    /// The weather of the connections made last, and of those to come.
    weather: watch::Sender<Arc<watch::Sender<Weather>>>,
    /// The weather of those that were made before, for as long as there are any.
    before: Mutex<Vec<Arc<watch::Sender<Weather>>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Proxy {
    /// A proxy before the server on this port of the machine.
    pub async fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port can be had");
        let address = listener.local_addr().expect("a bound socket has an address");
        let (weather, now) = watch::channel(Arc::new(watch::channel(Weather::Fair).0));
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let weather = now.borrow().subscribe();
                tokio::spawn(carry(client, SocketAddr::from(([127, 0, 0, 1], port)), weather));
            }
        });
        let url = format!("redis://{address}").parse().expect("this is a URL");
        Self { url, weather, before: Mutex::default(), task }
    }

    /// Where clients connect to.
    pub fn url(&self) -> Url {
        self.url.clone()
    }

    /// Ends the present connections.
    pub fn cut(&self) {
        self.change(Weather::Cut);
    }

    /// Ends the way: clients are disconnected, of which the server hears nothing, and cannot connect again.
    pub fn leave(self) {
        self.change(Weather::Left);
    }

    /// Cuts the present connections after so many bytes of their next reply.
    pub fn cut_after(&self, bytes: usize) {
        self.change(Weather::CutAfter(bytes));
    }

    /// Cuts the present connections at what they send next, of which the server hears nothing.
    pub fn cut_requests(&self) {
        self.change(Weather::CutRequests);
    }

    /// Holds back what the present connections send, until the result is dropped; even if the client has gone by then.
    pub fn hold_requests(&self) -> Held {
        Held(self.change(Weather::HoldRequests))
    }

    /// Holds back what the present connections are answered, until the result is dropped.
    pub fn hold_replies(&self) -> Held {
        Held(self.change(Weather::HoldReplies))
    }

    /// Has everything the present connections are answered come this much later, until the result is dropped.
    pub fn slow_replies(&self, by: Duration) -> Held {
        Held(self.change(Weather::SlowReplies(by)))
    }

    /// Those connected now meet this weather, if they meet no other yet; those who come later meet a fair one.
    fn change(&self, weather: Weather) -> Vec<Arc<watch::Sender<Weather>>> {
        let newest = self.weather.send_replace(Arc::new(watch::channel(Weather::Fair).0));
        let mut present = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        present.push(newest);
        present.retain(|connections| connections.receiver_count() > 0);
        let was_fair = |connections: &&Arc<watch::Sender<Weather>>| {
            connections.send_if_modified(|now| {
                let is_fair = *now == Weather::Fair;
                *now = if is_fair { weather } else { *now };
                is_fair
            })
        };
        present.iter().filter(was_fair).cloned().collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Connections whose data is held back or slow; it flows again when this is dropped.
pub struct Held(Vec<Arc<watch::Sender<Weather>>>);

impl Drop for Held {
    fn drop(&mut self) {
        for connections in &self.0 {
            connections.send_replace(Weather::Fair);
        }
    }
}

async fn carry(client: TcpStream, server: SocketAddr, weather: watch::Receiver<Weather>) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let (mut out, mut leaves) = (weather.clone(), weather.clone());
    let requests = tokio::spawn(async move {
        let mut buffer = [0; 8192];
        loop {
            let read = tokio::select! {
                read = from_client.read(&mut buffer) => Some(read),
                Ok(_) = leaves.wait_for(|weather| *weather == Weather::Left) => None,
            };
            let Some(read) = read else {
                drop(from_client);
                // With this task the server's side would end.
                return std::future::pending().await;
            };
            let Ok(count @ 1..) = read else { return };
            let weather = match out.wait_for(|weather| *weather != Weather::HoldRequests).await {
                Ok(weather) => *weather,
                Err(_) => return,
            };
            // The server's end of the connection ends the client's.
            if weather == Weather::CutRequests
                || to_server.write_all(&buffer[..count]).await.is_err()
            {
                return;
            }
        }
    });
    let (mut back, mut over) = (weather.clone(), weather);
    let mut buffer = [0; 8192];
    loop {
        let count = tokio::select! {
            read = from_server.read(&mut buffer) => match read {
                Ok(count @ 1..) => Ok(count),
                _ => return,
            },
            Ok(now) = over.wait_for(|now| matches!(now, Weather::Cut | Weather::Left)) => Err(*now),
        };
        let count = match count {
            Ok(count) => count,
            Err(Weather::Left) => {
                drop(to_client);
                return std::future::pending().await;
            }
            Err(_) => {
                requests.abort();
                return;
            }
        };
        let weather = match back.wait_for(|weather| *weather != Weather::HoldReplies).await {
            Ok(weather) => *weather,
            Err(_) => return,
        };
        if let Weather::SlowReplies(by) = weather {
            tokio::time::sleep(by).await;
        }
        let cut = match weather {
            Weather::CutAfter(bytes) => Some(bytes.min(count)),
            _ => None,
        };
        // A client that has gone hears nothing; what it sent is carried on all the same.
        let _ = to_client.write_all(&buffer[..cut.unwrap_or(count)]).await;
        if cut.is_some() {
            requests.abort();
            return;
        }
    }
}
