//! A MariaDB server as the tests of databases use one.

pub use fencelock_servers::mysql::MysqlServer;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};

use crate::database::DatabaseServer;

/// A server whose user `locks` has these rights in the database `locks`, and no others.
pub(crate) fn start_with_rights(grant: &str) -> MysqlServer {
    // Many cases are played at once, and each client has some connections.
    let server = MysqlServer::start_with(&["max-connections=2000"]);
    let schema = fencelock::driver::mysql::schema("fencelock").unwrap();
    server.sql(&format!("CREATE DATABASE locks; USE locks; {schema} CREATE USER locks; {grant}"));
    server
}

impl DatabaseServer for MysqlServer {
    type Kept = Conn;

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
        self.sql(&format!("KILL USER {user}"));
    }

    fn open_transactions(&self, _: &str) -> usize {
        let open = self.sql("SELECT COUNT(*) FROM information_schema.INNODB_TRX");
        open.parse().expect("the server counts")
    }

    fn set_isolation(&self, _: &str, level: &str) {
        self.sql(&format!("SET GLOBAL tx_isolation = '{}'", level.replace(' ', "-")));
    }

    async fn keep_row(&self, user: &str, name: &str) -> Conn {
        let opts = Opts::from_url(&self.url(user)).expect("this is a URL");
        let mut kept = Conn::new(opts).await.expect("the server takes connections");
        let keep = format!("BEGIN; SELECT 1 FROM fencelock WHERE name = '{name}' FOR UPDATE");
        kept.query_drop(keep).await.expect("the row is there");
        kept
    }

    async fn let_go(mut kept: Conn) {
        kept.query_drop("COMMIT").await.expect("the server answers");
    }
}
