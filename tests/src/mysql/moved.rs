//! A MariaDB database whose clock the test moves.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fencelock::driver::mysql::MysqlStore;
use fencelock::options::Options;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, OnceCell};

use super::MysqlServer;
use crate::equivalence::{BEGIN, Subject, await_arrival};
use crate::peer::runtime;

/// The call by which statements read the clock, and the call that replaces it on the way to the server, of the same length.
const CLOCK: &[u8; 10] = b"SYSDATE(6)";
const MOVED: &[u8; 10] = b"moved_t(6)";

/// A user in whose database there is a clock that is a table.
pub struct MovedClock {
    url: String,
    user: String,
    port: u16,
}

impl MovedClock {
    /// On this server.
    pub fn on(server: &MysqlServer, user: &str) -> Self {
        let url = server.place(user);
        server.sql(&format!(
            "CREATE TABLE {user}.clock ENGINE=InnoDB AS SELECT {BEGIN} AS micros;
             CREATE DEFINER = {user} FUNCTION {user}.moved_t(digits int) RETURNS datetime(6) READS SQL DATA
                 RETURN (SELECT TIMESTAMPADD(MICROSECOND, micros, TIMESTAMP'1970-01-01 00:00:00') FROM {user}.clock)"
        ));
        Self { url, user: user.to_owned(), port: server.port() }
    }
}

/// One run on it, which begins with empty tables.
pub struct MysqlSubject<'a> {
    place: &'a MovedClock,
    now: AtomicU64,
    admin: OnceCell<Mutex<Conn>>,
    way: OnceCell<u16>,
}

impl<'a> MysqlSubject<'a> {
    /// See the type.
    pub fn new(place: &'a MovedClock) -> Self {
        Self { place, now: AtomicU64::new(BEGIN), admin: OnceCell::new(), way: OnceCell::new() }
    }

    async fn run(&self, statements: &str) {
        let connect = async || {
            let (url, _) = self.place.url.split_once('?').expect("it has options");
            let opts = Opts::from_url(url).expect("this is a URL");
            Mutex::new(Conn::new(opts).await.expect("the server takes connections"))
        };
        let mut admin = self.admin.get_or_init(connect).await.lock().await;
        admin.query_drop(statements).await.expect("the server answers");
    }

    async fn set_clock(&self) {
        self.run(&format!("UPDATE clock SET micros = {}", self.now())).await;
    }
}

impl Subject for MysqlSubject<'_> {
    type Store = MysqlStore;

    async fn client(&self) -> Self::Store {
        let first = !self.admin.initialized();
        if first {
            self.set_clock().await;
        }
        let port = *self.way.get_or_init(|| rewrite(self.place.port)).await;
        let user = &self.place.user;
        let url = format!("mysql://{user}@127.0.0.1:{port}/{user}").parse();
        let mut options = Options::default();
        options.set("create", &true.into()).expect("the option is known");
        let store =
            MysqlStore::connect(&url.expect("this is a URL"), &[], &options, runtime()).await;
        let store = store.expect("the server takes connections");
        if first {
            self.run("DELETE FROM fencelock; DELETE FROM fencelock_cell").await;
        }
        store
    }

    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    async fn pass<'a>(&'a self, _: impl Iterator<Item = &'a Self::Store>, time: Duration) {
        self.now.fetch_add(time.as_micros() as u64, Ordering::Relaxed);
        self.set_clock().await;
    }

    fn minds_stalls(&self) -> bool {
        false
    }

    fn tells_who_listens(&self) -> bool {
        false
    }

    async fn await_notices(&self, _: &Self::Store, arrived: impl Fn() -> bool) {
        await_arrival(arrived).await;
    }
}

/// A way to the server on which statements read another clock; its port.
async fn rewrite(port: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port can be had");
    let address = listener.local_addr().expect("a bound socket has an address");
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(carry(client, SocketAddr::from(([127, 0, 0, 1], port))));
        }
    });
    address.port()
}

async fn carry(client: TcpStream, server: SocketAddr) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    // What waits for an answer should not wait for more to be sent.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    tokio::spawn(async move {
        let (mut held, mut buffer) = (Vec::new(), vec![0; 65536]);
        while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
            held.extend_from_slice(&buffer[..count]);
            while let Some(at) = held.windows(CLOCK.len()).position(|part| part == CLOCK) {
                held[at..at + MOVED.len()].copy_from_slice(MOVED);
            }
            // What may go on in the next piece is sent with it.
            let most = CLOCK.len().min(held.len() + 1);
            let begun = (2..most).rev().find(|begun| held.ends_with(&CLOCK[..*begun])).unwrap_or(0);
            let rest = held.split_off(held.len() - begun);
            if to_server.write_all(&held).await.is_err() {
                return;
            }
            held = rest;
        }
    });
    let _ = tokio::io::copy(&mut from_server, &mut to_client).await;
}
