//! Locks that live with sessions of a PostgreSQL server of a test's own, in either way.

use url::Url;

use super::PostgresServer;
use crate::database_sessions::{DatabaseSessions, Way};
use crate::session_store::SessionServer;

/// How URLs of such locks begin.
fn scheme(way: Way) -> &'static str {
    match way {
        Way::Names => "postgres+advisory",
        Way::Rows => "postgres+row",
    }
}

/// The locks of the server that are held so, and those that are waited for.
fn held_and_waited_for(way: Way) -> [&'static str; 2] {
    match way {
        Way::Names => {
            ["locktype = 'advisory' AND granted", "locktype = 'advisory' AND NOT granted"]
        }
        // Whoever has a row locked has a transaction with a number. Who waits has a place at the row, or waits for that.
        Way::Rows => ["locktype = 'transactionid' AND granted", "locktype = 'tuple'"],
    }
}

/// A server with the tables, and the user whose locks these are.
pub struct PostgresSessions {
    /// The server.
    pub server: PostgresServer,
    way: Way,
    user: &'static str,
}

impl DatabaseSessions for PostgresSessions {
    fn start(way: Way) -> Self {
        // A client has up to 32 connections.
        let server = PostgresServer::start_with(&["max_connections=300"]);
        server.sql(&fencelock::driver::postgres::schema("fencelock").unwrap());
        Self { server, way, user: "postgres" }
    }

    fn start_with_rights(way: Way) -> Self {
        let owned = Self::start(way);
        owned.server.sql(
            "CREATE ROLE locks LOGIN; GRANT SELECT, UPDATE ON SEQUENCE fencelock_token TO locks",
        );
        if way == Way::Rows {
            owned.server.sql("GRANT SELECT, INSERT, UPDATE, DELETE ON fencelock_row TO locks");
        }
        Self { user: "locks", ..owned }
    }

    fn port(&self) -> u16 {
        self.server.port()
    }

    fn at(&self, port: u16, query: &str) -> String {
        format!("{}://{}@127.0.0.1:{port}/postgres{query}", scheme(self.way), self.user)
    }

    fn locks(&self) -> String {
        let [held, waited_for] = held_and_waited_for(self.way);
        self.server.sql(&format!(
            "SELECT count(*) FILTER (WHERE {held}), count(*) FILTER (WHERE {waited_for}) FROM pg_locks"
        ))
    }

    fn end_connections(&self, holders: bool) {
        let [held, waited_for] = held_and_waited_for(self.way);
        let which = if holders { held } else { waited_for };
        self.server.sql(&format!("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE {which}"));
    }

    fn end_all_connections(&self) {
        let user = self.user;
        self.server.sql(&format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{user}' AND pid <> pg_backend_pid()"
        ));
    }

    fn connections(&self) -> usize {
        let user = self.user;
        let count = format!("SELECT count(*) FROM pg_stat_activity WHERE usename = '{user}'");
        self.server.sql(&count).parse().expect("the server counts")
    }

    fn turn_tokens_back(&self) {
        self.server.sql("SELECT setval('fencelock_token', 64)");
    }

    fn sees_dead_waiters(&self) -> bool {
        true
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
        let [held, waited_for] = held_and_waited_for(self.way);
        let locks = self
            .server
            .sql(&format!("SELECT pid, mode, granted FROM pg_locks WHERE {held} OR {waited_for}"));
        locks.lines().map(str::to_owned).collect()
    }
}
