//! A database of the bench's own: a PostgreSQL or a MariaDB whose disk is waited for, and what it counts.

use std::path::Path;
use std::time::{Duration, Instant};

use fencelock_peers::{MYSQL_TABLES, POSTGRES_TABLES};
use fencelock_servers::Start;
use fencelock_servers::mysql::MysqlServer;
use fencelock_servers::postgres::PostgresServer;
use serde_json::Value;

use crate::Result;
use crate::contender::{Entry, race};
use crate::machine::{SERVER, pinning};

/// As whom everybody connects who is measured; what the bench asks itself is not counted.
const USER: &str = "bench";
/// How long connections may take to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// The row of bare statements.
const BARE: &str = "CREATE TABLE bare (name varchar(255) PRIMARY KEY, owner char(32))";
/// A folder on a disk that everybody may reach: PostgreSQL does not run as root.
const ROOM: &str = "/var/tmp";

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    Postgres,
    Mysql,
}

impl Store {
    /// Its name in the titles of the tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Mysql => "MariaDB",
        }
    }

    /// The contender that sends bare statements.
    pub(crate) fn bare(self) -> &'static str {
        match self {
            Self::Postgres => "postgres-bare",
            Self::Mysql => "mysql-bare",
        }
    }

    /// Whether its programs are there.
    pub(crate) fn is_installed(self) -> bool {
        match self {
            Self::Postgres => PostgresServer::is_installed(),
            Self::Mysql => MysqlServer::is_installed(),
        }
    }
}

/// Whether a commit waits for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Commit {
    Durable,
    Relaxed,
}

/// See the module; stopped when this is dropped.
pub(crate) struct Database {
    server: Server,
    commit: Commit,
    /// How many statements a question of the bench's own counts as.
    own: u64,
}

enum Server {
    Postgres(PostgresServer),
    Mysql(MysqlServer),
}

/// The counters of the server so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    /// Statements of clients; a commit is one.
    pub statements: u64,
    /// `BEGIN`, however it is written.
    pub begun: u64,
    /// How often it waited for the disk: to write its log, on MariaDB also its data.
    pub syncs: u64,
}

impl Database {
    /// Starts it, with a user, our tables, and those of the libraries that lock in databases.
    pub(crate) fn start(store: Store) -> Result<Self> {
        let room = Path::new(ROOM);
        let settings: &[&str] = match store {
            Store::Postgres => &[
                "fsync=on",
                "shared_preload_libraries=pg_stat_statements",
                "track_wal_io_timing=off",
            ],
            Store::Mysql => &["innodb-log-file-size=96M", "innodb-buffer-pool-size=128M"],
        };
        let room = room.is_dir().then(|| room.to_owned());
        let start = Start { room, behind: pinning(SERVER), ..Start::with(settings) };
        let server = match store {
            Store::Postgres => {
                let server = PostgresServer::start_as(start);
                server.sql("CREATE EXTENSION pg_stat_statements");
                server.place(USER);
                let schema = fencelock::driver::postgres::schema("fencelock").unwrap();
                let tables = format!(
                    "SET ROLE {USER}; SET search_path = {USER}; {schema}; {BARE}; {POSTGRES_TABLES}"
                );
                server.sql(&tables);
                Server::Postgres(server)
            }
            Store::Mysql => {
                let server = MysqlServer::start_as(start);
                server.place(USER);
                let schema = fencelock::driver::mysql::schema("fencelock").unwrap();
                server.sql(&format!("USE {USER}; {schema}; {BARE}; {MYSQL_TABLES}"));
                Server::Mysql(server)
            }
        };
        let mut database = Self { server, commit: Commit::Durable, own: 0 };
        let first = database.counts()?.statements;
        database.own = database.counts()?.statements - first;
        Ok(database)
    }

    /// From now on commits are like this, whoever connects.
    pub(crate) fn set_commit(&mut self, commit: Commit) {
        self.commit = commit;
        match (&self.server, commit) {
            (Server::Postgres(server), Commit::Durable) => {
                server.sql(&format!("ALTER ROLE {USER} SET synchronous_commit = on"))
            }
            (Server::Postgres(server), Commit::Relaxed) => {
                server.sql(&format!("ALTER ROLE {USER} SET synchronous_commit = off"))
            }
            (Server::Mysql(server), Commit::Durable) => {
                server.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 1")
            }
            (Server::Mysql(server), Commit::Relaxed) => {
                server.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 2")
            }
        };
    }

    /// Its port on 127.0.0.1.
    pub(crate) fn port(&self) -> u16 {
        match &self.server {
            Server::Postgres(server) => server.port(),
            Server::Mysql(server) => server.port(),
        }
    }

    /// Where we and bare statements find it, or a proxy before it, on this port; and where JDBC does.
    pub(crate) fn words(&self, port: u16) -> [String; 2] {
        match &self.server {
            Server::Postgres(_) => {
                // fencelock has to be told: it takes no server's word for it.
                let relaxed = match self.commit {
                    Commit::Durable => "",
                    Commit::Relaxed => "?durability=relaxed",
                };
                let url = PostgresServer::url_at(port, USER);
                let jdbc = format!("jdbc:postgresql://127.0.0.1:{port}/postgres?user={USER}");
                [format!("url={url}{relaxed}"), format!("jdbc={jdbc}")]
            }
            Server::Mysql(_) => {
                let url = MysqlServer::url_at(port, USER);
                let jdbc = format!("jdbc:mariadb://127.0.0.1:{port}/{USER}?user={USER}");
                [format!("url={url}"), format!("jdbc={jdbc}")]
            }
        }
    }

    /// How commits are now.
    pub(crate) fn commit(&self) -> Commit {
        self.commit
    }

    /// Reads the counters. A PostgreSQL backend reports its waits for the disk only when it ends: for that, see [`Self::settled`].
    fn counts(&self) -> Result<Counts> {
        match &self.server {
            Server::Postgres(server) => {
                let told = server.sql(&format!(
                    "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements AS s JOIN pg_roles AS r ON r.oid = s.userid WHERE rolname = '{USER}';
                     SELECT coalesce(sum(calls), 0) FROM pg_stat_statements AS s JOIN pg_roles AS r ON r.oid = s.userid
                         WHERE rolname = '{USER}' AND (query ILIKE 'BEGIN%' OR query ILIKE 'START TRANSACTION%');
                     SELECT wal_sync FROM pg_stat_wal; SELECT dealloc FROM pg_stat_statements_info"
                ));
                let counts =
                    told.lines().map(str::parse).collect::<std::result::Result<Vec<u64>, _>>()?;
                match counts[..] {
                    [statements, begun, syncs, 0] => Ok(Counts { statements, begun, syncs }),
                    _ => Err(format!("PostgreSQL has not counted every statement: {told}").into()),
                }
            }
            Server::Mysql(server) => {
                let told = server.sql("SHOW GLOBAL STATUS");
                let count = |wanted: &str| -> Result<u64> {
                    let mut lines = told.lines().filter_map(|line| line.split_once('\t'));
                    let found = lines.find(|(name, _)| *name == wanted);
                    let (_, count) =
                        found.ok_or_else(|| format!("MariaDB does not tell {wanted}"))?;
                    Ok(count.parse()?)
                };
                let (statements, begun) = (count("Questions")?, count("Com_begin")?);
                Ok(Counts { statements, begun, syncs: count("Innodb_data_fsyncs")? })
            }
        }
    }

    /// The same once nobody is connected any more.
    async fn settled(&self) -> Result<Counts> {
        let give_up = Instant::now() + PATIENCE;
        let connections = || match &self.server {
            Server::Postgres(server) => server.connections(USER),
            Server::Mysql(server) => server.connections(USER),
        };
        while connections() > 0 {
            if Instant::now() > give_up {
                return Err("connections of a program that has ended are still there".into());
            }
            // A proxy tells the server that its client has gone.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.counts()
    }

    /// Races, and tells what that took: statements from its start to its end; fsyncs from before anybody was connected until nobody is.
    pub(crate) async fn raced(
        &self,
        entries: Vec<Entry>,
        lasts: Duration,
    ) -> Result<(Vec<Value>, Counts)> {
        let syncs = self.settled().await?.syncs;
        let mut begin = None;
        let go = || self.counts().map(|counts| begin = Some(counts));
        let (figures, end) = race(entries, lasts, go, || self.counts()).await?;
        let begin = begin.ok_or("it was never started")?;
        let spent = Counts {
            statements: end.statements - begin.statements - self.own,
            begun: end.begun - begin.begun,
            syncs: self.settled().await?.syncs - syncs,
        };
        Ok((figures, spent))
    }
}
