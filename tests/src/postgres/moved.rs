//! A PostgreSQL database whose clock the test moves.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fencelock::driver::postgres::PostgresStore;
use fencelock::options::Options;
use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls};

use super::PostgresServer;
use crate::equivalence::{BEGIN, Subject, await_arrival};
use crate::peer::runtime;

/// A user for whom `clock_timestamp()` is a function that reads a table.
pub struct MovedClock {
    url: String,
}

impl MovedClock {
    /// On this server, with sessions of this isolation level.
    pub fn on(server: &PostgresServer, name: &str, isolation: &str) -> Self {
        let url = server.place(name);
        server.sql(&format!(
            "CREATE TABLE {name}.clock AS SELECT 0::bigint AS micros;
             CREATE FUNCTION {name}.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
                 'SELECT timestamptz ''1970-01-01Z'' + micros * interval ''1 microsecond'' FROM {name}.clock';
             ALTER TABLE {name}.clock OWNER TO {name};
             ALTER ROLE {name} SET search_path = {name}, pg_catalog;
             ALTER ROLE {name} SET default_transaction_isolation = '{isolation}'"
        ));
        Self { url }
    }
}

/// One run on it, which begins with empty tables.
pub struct PostgresSubject<'a> {
    place: &'a MovedClock,
    now: AtomicU64,
    admin: OnceCell<Client>,
}

impl<'a> PostgresSubject<'a> {
    /// See the type.
    pub fn new(place: &'a MovedClock) -> Self {
        Self { place, now: AtomicU64::new(BEGIN), admin: OnceCell::new() }
    }

    async fn admin(&self) -> &Client {
        let connect = async || {
            let (url, _) = self.place.url.split_once('?').expect("it has options");
            let connected = tokio_postgres::connect(url, NoTls).await;
            let (client, connection) = connected.expect("the server takes connections");
            tokio::spawn(connection);
            client
        };
        self.admin.get_or_init(connect).await
    }

    async fn run(&self, statements: &str) {
        self.admin().await.batch_execute(statements).await.expect("the server answers");
    }

    async fn set_clock(&self) {
        self.run(&format!("UPDATE clock SET micros = {}", self.now())).await;
    }
}

impl Subject for PostgresSubject<'_> {
    type Store = PostgresStore;

    async fn client(&self) -> Self::Store {
        let first = !self.admin.initialized();
        if first {
            self.set_clock().await;
        }
        let (url, query) = self.place.url.split_once('?').expect("it has options");
        let mut options = Options::default();
        let (name, value) = query.split_once('=').expect("it has one option");
        options.set(name, &value.into()).expect("the option is known");
        let url = url.parse().expect("this is a URL");
        let store = PostgresStore::connect(&url, &[], &options, runtime()).await;
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

    fn merges_notices(&self) -> bool {
        // `NOTIFY` does, within a transaction.
        true
    }

    async fn await_notices(&self, _: &Self::Store, arrived: impl Fn() -> bool) {
        await_arrival(arrived).await;
    }
}
