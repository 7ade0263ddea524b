//! A PostgreSQL server as the tests of databases use one.

pub use fencelock_servers::postgres::PostgresServer;
use tokio_postgres::{Client, NoTls};

use crate::database::DatabaseServer;

/// Starts a server with the tables and the user `secret`, who may do what this grants and no more. Many cases are played on it at
/// once, and each client has some connections.
pub(crate) fn start_with_rights(grant: &str) -> PostgresServer {
    let server = PostgresServer::start_with(&["max_connections=1000"]);
    let schema = fencelock::driver::postgres::schema("fencelock").unwrap();
    server.sql(&format!("{schema}; CREATE ROLE secret LOGIN PASSWORD 'hunter2'; {grant}"));
    server
}

impl DatabaseServer for PostgresServer {
    type Kept = Client;

    fn start() -> Self {
        Self::start()
    }

    fn port(&self) -> u16 {
        self.port()
    }

    fn place(&self, user: &str) -> String {
        self.place(user)
    }

    fn sql(&self, statements: &str) -> String {
        self.sql(statements)
    }

    fn kill_hard(&mut self) {
        self.kill_hard();
    }

    fn start_again(&mut self) {
        self.start_again();
    }

    fn url_at(port: u16, user: &str) -> String {
        Self::url_at(port, user)
    }

    fn connections(&self, user: &str) -> usize {
        self.connections(user)
    }

    fn end_connections(&self, user: &str) {
        self.sql(&format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = '{user}'"
        ));
    }

    fn open_transactions(&self, user: &str) -> usize {
        let open = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE usename = '{user}' AND state LIKE 'idle in%'"
        );
        self.sql(&open).parse().expect("the server counts")
    }

    fn set_isolation(&self, user: &str, level: &str) {
        let level = level.to_lowercase();
        self.sql(&format!("ALTER ROLE {user} SET default_transaction_isolation = '{level}'"));
    }

    async fn keep_row(&self, user: &str, name: &str) -> Client {
        let connected = tokio_postgres::connect(&self.url(user), NoTls).await;
        let (kept, connection) = connected.expect("the server takes connections");
        tokio::spawn(connection);
        let keep = format!("BEGIN; SELECT 1 FROM fencelock WHERE name = '{name}' FOR UPDATE");
        kept.batch_execute(&keep).await.expect("the row is there");
        kept
    }

    async fn let_go(kept: Client) {
        kept.batch_execute("COMMIT").await.expect("the server answers");
    }
}
