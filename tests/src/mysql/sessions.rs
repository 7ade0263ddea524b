//! Locks that live with sessions of a MariaDB server of a test's own, in either way.

use url::Url;

use super::MysqlServer;
use crate::database_sessions::{DatabaseSessions, Way};
use crate::session_store::SessionServer;

/// How URLs of such locks begin.
fn scheme(way: Way) -> &'static str {
    match way {
        Way::Names => "mysql+getlock",
        Way::Rows => "mysql+row",
    }
}

/// The name by which the server knows a lock, in SQL.
pub(crate) fn key(name: &str) -> String {
    format!(
        "CONCAT('fencelock:', LEFT(SHA2(CONCAT(CAST(DATABASE() AS BINARY), 0x00, '{name}'), 256), 48))"
    )
}

/// The name that whoever has this row of fencelock's own has taken too, in SQL.
pub(crate) fn mark(name: &str) -> String {
    format!(
        "CONCAT('fencelock-row:', LEFT(SHA2(CONCAT(CAST(DATABASE() AS BINARY), 0x00, 'fencelock_row', 0x00, CAST({name} AS BINARY)), 256), 48))"
    )
}

/// A server with the tables, and the user whose locks these are.
pub struct MysqlSessions {
    /// The server.
    pub server: MysqlServer,
    way: Way,
    user: &'static str,
}

impl MysqlSessions {
    /// The same on a server with more settings.
    pub fn start_with(way: Way, settings: &[&str]) -> Self {
        // It tells who has which named lock.
        let settings = [&["plugin-load-add=metadata_lock_info"], settings].concat();
        let server = MysqlServer::start_with(&settings);
        server.sql(&format!(
            "CREATE DATABASE locks; USE locks; {} CREATE USER owner; GRANT ALL ON locks.* TO owner",
            fencelock::driver::mysql::schema("fencelock").unwrap()
        ));
        Self { server, way, user: "owner" }
    }

    /// Runs statements in the database as the server's owner.
    pub fn sql(&self, statements: &str) -> String {
        self.server.sql(&format!("USE locks; {statements}"))
    }

    /// The numbers of the connections that have a lock, and of those that wait for one. Whoever has a row has its mark.
    fn held_and_waited_for(&self) -> [String; 2] {
        let (mark, waiting) = match self.way {
            Way::Names => ("fencelock:%", "SELECT CONNECTION_ID(), GET_LOCK%"),
            Way::Rows => ("fencelock-row:%", "SELECT CONNECTION_ID(), % FOR UPDATE"),
        };
        let held = format!(
            "SELECT THREAD_ID FROM information_schema.METADATA_LOCK_INFO WHERE LOCK_TYPE = 'User lock' AND TABLE_SCHEMA LIKE '{mark}'"
        );
        let waited_for = format!(
            "SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND = 'Query' AND INFO LIKE '{waiting}'"
        );
        [held, waited_for]
    }
}

impl DatabaseSessions for MysqlSessions {
    fn start(way: Way) -> Self {
        Self::start_with(way, &[])
    }

    fn start_with_rights(way: Way) -> Self {
        let owned = Self::start(way);
        owned.sql("CREATE USER locks; GRANT SELECT, INSERT ON locks.fencelock_token TO locks");
        if way == Way::Rows {
            owned.sql("GRANT SELECT, INSERT, UPDATE, DELETE ON locks.fencelock_row TO locks");
        }
        Self { user: "locks", ..owned }
    }

    fn port(&self) -> u16 {
        self.server.port()
    }

    fn at(&self, port: u16, query: &str) -> String {
        format!("{}://{}@127.0.0.1:{port}/locks{query}", scheme(self.way), self.user)
    }

    fn locks(&self) -> String {
        let [held, waited_for] = self.held_and_waited_for();
        let count = format!(
            "SELECT CONCAT_WS('|', (SELECT COUNT(*) FROM ({held}) AS h), (SELECT COUNT(*) FROM ({waited_for}) AS w))"
        );
        self.server.sql(&count)
    }

    fn end_connections(&self, holders: bool) {
        let [held, waited_for] = self.held_and_waited_for();
        let numbers = self.server.sql(&if holders { held } else { waited_for });
        let kills: Vec<_> = numbers.lines().map(|number| format!("KILL {number}")).collect();
        self.server.sql(&kills.join("; "));
    }

    fn end_all_connections(&self) {
        self.server.sql(&format!("KILL USER {}", self.user));
    }

    fn connections(&self) -> usize {
        self.server.connections(self.user)
    }

    fn turn_tokens_back(&self) {
        self.sql("ALTER SEQUENCE fencelock_token RESTART WITH 64");
    }

    fn sees_dead_waiters(&self) -> bool {
        // Who waits for a row is asked nothing until it is its turn.
        self.way == Way::Names
    }
}

impl SessionServer for MysqlSessions {
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
        let [held, waited_for] = self.held_and_waited_for();
        let locks = self.server.sql(&format!("{held} UNION ALL {waited_for}"));
        locks.lines().map(str::to_owned).collect()
    }
}
