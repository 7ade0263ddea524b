//! Locks that live with sessions of a PostgreSQL server of a test's own, in either way.

use std::time::{Duration, Instant};

use fencelock::Client;
use url::Url;

use super::PostgresServer;
use crate::database::connect;
use crate::session_store::{PATIENCE, SessionServer};

/// What sessions lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The numbers of names.
    Advisory,
    /// Rows of fencelock's own table.
    Rows,
}

impl Way {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Advisory, Self::Rows];

    /// How URLs of such locks begin.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::Advisory => "postgres+advisory",
            Self::Rows => "postgres+row",
        }
    }

    /// The locks of the server that are held so, and those that are waited for.
    fn held_and_waited_for(self) -> [&'static str; 2] {
        match self {
            Self::Advisory => {
                ["locktype = 'advisory' AND granted", "locktype = 'advisory' AND NOT granted"]
            }
            // Whoever has a row locked has a transaction with a number. Who waits has a place at the row, or waits for that.
            Self::Rows => ["locktype = 'transactionid' AND granted", "locktype = 'tuple'"],
        }
    }
}

/// A server with the tables, and the user whose locks these are.
pub struct PostgresSessions {
    /// The server.
    pub server: PostgresServer,
    way: Way,
    user: &'static str,
}

impl PostgresSessions {
    /// The locks of the server's owner.
    pub fn start(way: Way) -> Self {
        // A client has up to 32 connections.
        let server = PostgresServer::start_with(&["max_connections=300"]);
        server.sql(fencelock::driver::postgres::schema());
        Self { server, way, user: "postgres" }
    }

    /// The locks of the user `locks`, who may lock and no more.
    pub fn start_with_rights(way: Way) -> Self {
        let owned = Self::start(way);
        owned.server.sql(
            "CREATE ROLE locks LOGIN; GRANT SELECT, UPDATE ON SEQUENCE fencelock_token TO locks",
        );
        if way == Way::Rows {
            owned.server.sql("GRANT SELECT, INSERT, UPDATE, DELETE ON fencelock_row TO locks");
        }
        Self { user: "locks", ..owned }
    }

    /// Where the locks are, on the server or the proxy of this port.
    pub fn at(&self, port: u16, query: &str) -> String {
        format!("{}://{}@127.0.0.1:{port}/postgres{query}", self.way.scheme(), self.user)
    }

    /// A client with these options.
    pub async fn client(&self, query: &str) -> Client {
        connect(&self.at(self.server.port(), query)).await
    }

    /// How many have a lock, and how many wait for one.
    pub fn locks(&self) -> String {
        let [held, waited_for] = self.way.held_and_waited_for();
        self.server.sql(&format!(
            "SELECT count(*) FILTER (WHERE {held}), count(*) FILTER (WHERE {waited_for}) FROM pg_locks"
        ))
    }

    /// Ends the backends that have a lock, or those that wait for one.
    pub fn end_backends(&self, holders: bool) {
        let [held, waited_for] = self.way.held_and_waited_for();
        let which = if holders { held } else { waited_for };
        self.server.sql(&format!("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE {which}"));
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
        let [held, waited_for] = self.way.held_and_waited_for();
        let locks = self
            .server
            .sql(&format!("SELECT pid, mode, granted FROM pg_locks WHERE {held} OR {waited_for}"));
        locks.lines().map(str::to_owned).collect()
    }
}
