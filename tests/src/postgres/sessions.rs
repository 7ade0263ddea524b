//! Locks that live with sessions of a PostgreSQL server of a test's own.

use std::time::{Duration, Instant};

use fencelock::Client;
use url::Url;

use super::PostgresServer;
use crate::database::connect;
use crate::session_store::{PATIENCE, SessionServer};

/// A server with the tables, and the user whose locks these are.
pub struct PostgresSessions {
    /// The server.
    pub server: PostgresServer,
    user: &'static str,
}

impl PostgresSessions {
    /// The locks of the server's owner.
    pub fn start() -> Self {
        let server = PostgresServer::start();
        server.sql(fencelock::driver::postgres::schema());
        Self { server, user: "postgres" }
    }

    /// The locks of the user `locks`, who may lock and no more.
    pub fn start_with_rights() -> Self {
        let owned = Self::start();
        owned.server.sql(
            "CREATE ROLE locks LOGIN; GRANT SELECT, UPDATE ON SEQUENCE fencelock_token TO locks",
        );
        Self { user: "locks", ..owned }
    }

    /// Where the locks are, on the server or the proxy of this port.
    pub fn at(&self, port: u16, query: &str) -> String {
        format!("postgres+advisory://{}@127.0.0.1:{port}/postgres{query}", self.user)
    }

    /// A client with these options.
    pub async fn client(&self, query: &str) -> Client {
        connect(&self.at(self.server.port(), query)).await
    }

    /// How many have an advisory lock, and how many wait for one.
    pub fn locks(&self) -> String {
        self.server.sql("SELECT count(*) FILTER (WHERE granted), count(*) FILTER (WHERE NOT granted) FROM pg_locks WHERE locktype = 'advisory'")
    }

    /// Completes when so many have one, and so many wait: `1|2`.
    pub async fn comes_to(&self, locks: &str) {
        let began = Instant::now();
        while self.locks() != locks {
            assert!(began.elapsed() < PATIENCE, "{} instead of {locks}", self.locks());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl SessionServer for PostgresSessions {
    fn url(&self, _: &str) -> Url {
        self.at(self.server.port(), "").parse().expect("this is a URL")
    }

    fn stop(&self) {
        self.server.stop();
    }

    fn cont(&self) {
        self.server.cont();
    }

    fn kill_hard(&mut self) {
        self.server.kill_hard();
    }

    fn start_again(&mut self) {
        self.server.start_again();
    }

    async fn entries_of_x(&self, _: &str) -> Vec<String> {
        let locks =
            self.server.sql("SELECT pid, mode, granted FROM pg_locks WHERE locktype = 'advisory'");
        locks.lines().map(str::to_owned).collect()
    }
}
