//! The backends of the grid, and the store one case stands on.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tempfile::TempDir;

use super::case::Need;
use crate::etcd::EtcdServer;
use crate::mysql::{self, MysqlServer};
use crate::postgres::{self, Pooler, PostgresServer};
use crate::servers::{Authority, ClusterSet, QuorumSet, RedisServer};
use crate::zookeeper::ZookeeperServer;

/// The schemes of locks that live with sessions of a database server.
const BY_SESSION: [&str; 4] = ["postgres+advisory", "postgres+row", "mysql+getlock", "mysql+row"];

/// A store, and whose time it lives in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Backend {
    /// `memory:`, in real time.
    Memory,
    /// `memory:`, in virtual time: every actor is a machine, and the bounds are exact.
    Sim,
    /// An entry queue in memory, in virtual time.
    Queue,
    /// One SQLite file.
    Sqlite,
    /// An etcd of one member.
    Etcd,
    /// A ZooKeeper of one member.
    Zookeeper,
    /// A PostgreSQL database.
    Postgres,
    /// The same behind a pooler that hands out transactions.
    PostgresPooled,
    /// The same, where locks live with sessions.
    PostgresSessions,
    /// The same, where each lock is a row that a session's transaction has locked.
    PostgresRows,
    /// A MariaDB database.
    Mysql,
    /// The same, where locks live with sessions.
    MysqlSessions,
    /// The same, where each lock is a row that a session's transaction has locked.
    MysqlRows,
    /// A Redis server.
    Redis,
    /// The same over TLS.
    RedisTls,
    /// The same, where only the older protocol is spoken.
    /// A cluster of Redis servers.
    RedisCluster,
    /// A Redis server on which all locks are laid out as Redisson's.
    RedisAsRedisson,
    /// Redlock over three masters.
    Redlock,
}

impl Backend {
    /// Those every case is for.
    pub const ALL: [Self; 12] = [
        Self::Memory,
        Self::Sim,
        Self::Sqlite,
        Self::Postgres,
        Self::PostgresSessions,
        Self::PostgresRows,
        Self::Mysql,
        Self::MysqlSessions,
        Self::MysqlRows,
        Self::Redis,
        Self::Etcd,
        Self::Zookeeper,
    ];
    /// Other ways to Redis.
    pub const WAYS: [Self; 4] =
        [Self::RedisTls, Self::RedisCluster, Self::RedisAsRedisson, Self::Redlock];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sim => "sim",
            Self::Queue => "sim queue",
            Self::Sqlite => "sqlite",
            Self::Etcd => "etcd",
            Self::Zookeeper => "zookeeper",
            Self::Postgres => "postgres",
            Self::PostgresPooled => "postgres pooled",
            Self::PostgresSessions => "postgres sessions",
            Self::PostgresRows => "postgres rows",
            Self::Mysql => "mysql",
            Self::MysqlSessions => "mysql sessions",
            Self::MysqlRows => "mysql rows",
            Self::Redis => "redis",
            Self::RedisTls => "redis over TLS",
            Self::RedisCluster => "redis cluster",
            Self::RedisAsRedisson => "redis as redisson",
            Self::Redlock => "redlock",
        }
    }

    /// Whether every actor is a machine in virtual time.
    pub(super) fn is_simulated(self) -> bool {
        matches!(self, Self::Sim | Self::Queue)
    }

    /// The dialect of all locks there.
    pub(super) fn dialect(self) -> Option<&'static str> {
        (self == Self::RedisAsRedisson).then_some("redisson")
    }
}

/// The stores the cases share.
#[derive(Default)]
pub(super) struct Grounds {
    folder: OnceLock<TempDir>,
    postgres: OnceLock<Arc<PostgresServer>>,
    pooled: OnceLock<Arc<PostgresServer>>,
    pooler: OnceLock<Pooler>,
    sessions: OnceLock<Arc<PostgresServer>>,
    rows: OnceLock<Arc<PostgresServer>>,
    mysql: OnceLock<Arc<MysqlServer>>,
    mysql_sessions: OnceLock<Arc<MysqlServer>>,
    mysql_rows: OnceLock<Arc<MysqlServer>>,
    redis: OnceLock<Arc<Mutex<RedisServer>>>,
    etcd: OnceLock<Arc<Mutex<EtcdServer>>>,
    zookeeper: OnceLock<Arc<Mutex<ZookeeperServer>>>,
    tls: OnceLock<Encrypted>,
    open: OnceLock<Arc<Mutex<RedisServer>>>,
    cluster: OnceLock<Arc<ClusterSet>>,
    quorum: OnceLock<Arc<QuorumSet>>,
    /// Locked by the cell that starts a server, so that one starts at a time.
    starts: Mutex<()>,
}

/// A server with a second port that speaks TLS, and the URL of that.
struct Encrypted {
    server: Arc<Mutex<RedisServer>>,
    url: String,
    // Its files are read at every connect.
    _authority: Authority,
}

impl Encrypted {
    fn start() -> Self {
        let authority = Authority::default();
        let (server, port) = authority.server(false);
        let url = format!("rediss://localhost:{port}?cacert={}", authority.path("ca.pem"));
        Self { server: Arc::new(Mutex::new(server)), url, _authority: authority }
    }
}

/// The store of one case.
pub(super) struct Ground {
    pub url: String,
    pub(super) postgres: Option<Arc<PostgresServer>>,
    pub(super) mysql: Option<Arc<MysqlServer>>,
    pub(super) redis: Option<Arc<Mutex<RedisServer>>>,
    pub(super) etcd: Option<Arc<Mutex<EtcdServer>>>,
    pub(super) zookeeper: Option<Arc<Mutex<ZookeeperServer>>>,
    pub(super) cluster: Option<Arc<ClusterSet>>,
    pub(super) quorum: Option<Arc<QuorumSet>>,
}

impl Grounds {
    /// A server for a case. If it needs one of its own, that is started when no other is: a start takes a processor for a second, and the
    /// cells that are played have leases to keep.
    fn server<S>(
        &self,
        shared: &OnceLock<Arc<Mutex<S>>>,
        needs: &BTreeSet<Need>,
        start: impl FnOnce() -> S,
    ) -> Arc<Mutex<S>> {
        let start = || Arc::new(Mutex::new(start()));
        if needs.contains(&Need::ServerControl) {
            let _turn = lock(&self.starts);
            start()
        } else {
            shared.get_or_init(start).clone()
        }
    }

    /// A store for a case: shared with others, unless it needs a server of its own.
    pub(super) fn store(&self, backend: Backend, case: &str, needs: &BTreeSet<Need>) -> Ground {
        match backend {
            Backend::Memory | Backend::Sim => Ground::without_server(format!("memory:{case}")),
            Backend::Queue => Ground::without_server(format!("queue:{case}")),
            Backend::Sqlite => {
                let make = || tempfile::tempdir().expect("a temporary folder can be made");
                let file = self.folder.get_or_init(make).path().join("locks.db");
                Ground::without_server(format!("sqlite:{}", file.display()))
            }
            Backend::Postgres => postgres(&self.postgres, "postgres", RIGHTS),
            Backend::PostgresPooled => {
                let ground = postgres(&self.pooled, "postgres", RIGHTS);
                let server = ground.postgres.as_ref().expect("it is there").port();
                let before = || Pooler::before(server, &["secret:hunter2"], "transaction");
                let port = self.pooler.get_or_init(before).port();
                Ground { url: PostgresServer::url_at(port, "secret:hunter2"), ..ground }
            }
            Backend::PostgresSessions => postgres(
                &self.sessions,
                "postgres+advisory",
                "GRANT SELECT, UPDATE ON SEQUENCE fencelock_token TO secret",
            ),
            Backend::PostgresRows => postgres(
                &self.rows,
                "postgres+row",
                "GRANT SELECT, UPDATE ON SEQUENCE fencelock_token TO secret;
                 GRANT SELECT, INSERT, UPDATE, DELETE ON fencelock_row TO secret",
            ),
            Backend::Mysql => mysql(
                &self.mysql,
                "mysql",
                "GRANT SELECT, INSERT, UPDATE ON locks.fencelock TO locks;
                 GRANT SELECT, INSERT, UPDATE, DELETE ON locks.fencelock_cell TO locks;
                 CREATE TABLE account (id varchar(90) PRIMARY KEY, version int NOT NULL, balance bigint, owner varchar(9));
                 GRANT SELECT, UPDATE ON locks.account TO locks",
            ),
            Backend::MysqlSessions => mysql(
                &self.mysql_sessions,
                "mysql+getlock",
                "GRANT SELECT, INSERT ON locks.fencelock_token TO locks",
            ),
            Backend::MysqlRows => mysql(
                &self.mysql_rows,
                "mysql+row",
                "GRANT SELECT, INSERT ON locks.fencelock_token TO locks;
                 GRANT SELECT, INSERT, UPDATE, DELETE ON locks.fencelock_row TO locks",
            ),
            Backend::Redis => {
                // The actors have the rights the README asks for, and no others.
                let server = self.server(&self.redis, needs, RedisServer::start_with_rights);
                let url = lock(&server).url_with_rights().to_string();
                Ground { redis: Some(server), ..Ground::without_server(url) }
            }
            Backend::Etcd => {
                let server = self.server(&self.etcd, needs, EtcdServer::start_with_rights);
                let url = lock(&server).url_with_rights().to_string();
                Ground { etcd: Some(server), ..Ground::without_server(url) }
            }
            Backend::Zookeeper => {
                let server = self.server(&self.zookeeper, needs, ZookeeperServer::start_with_rights);
                let url = lock(&server).url_with_rights().to_string();
                Ground { zookeeper: Some(server), ..Ground::without_server(url) }
            }
            Backend::RedisTls => {
                let Encrypted { server, url, .. } = self.tls.get_or_init(Encrypted::start);
                Ground { redis: Some(server.clone()), ..Ground::without_server(url.clone()) }
            }
            Backend::RedisAsRedisson => {
                let start = || Arc::new(Mutex::new(RedisServer::start()));
                let server = self.open.get_or_init(start).clone();
                let url = lock(&server).url().to_string();
                Ground { redis: Some(server), ..Ground::without_server(url) }
            }
            Backend::RedisCluster => {
                let cluster = self.cluster.get_or_init(|| Arc::new(ClusterSet::default())).clone();
                Ground { cluster: Some(cluster.clone()), ..Ground::without_server(cluster.url()) }
            }
            Backend::Redlock => {
                let quorum = self.quorum.get_or_init(Arc::default).clone();
                Ground { quorum: Some(quorum.clone()), ..Ground::without_server(quorum.url()) }
            }
        }
    }
}

/// The rights of the actors in the tables. The table of the user's own is that of the cases with SQL.
const RIGHTS: &str = "GRANT SELECT, INSERT, UPDATE ON fencelock TO secret;
    GRANT SELECT, INSERT, UPDATE, DELETE ON fencelock_cell TO secret;
    CREATE TABLE account (id text PRIMARY KEY, version integer NOT NULL, balance bigint, owner text);
    GRANT SELECT, UPDATE ON account TO secret";

/// A place on a PostgreSQL server. The actors have the rights the reference asks for, and no others.
fn postgres(server: &OnceLock<Arc<PostgresServer>>, scheme: &str, grant: &str) -> Ground {
    let server = server.get_or_init(|| Arc::new(postgres::start_with_rights(grant))).clone();
    let url = server.url("secret:hunter2").replacen("postgres", scheme, 1);
    Ground { postgres: Some(server), ..Ground::without_server(url) }
}

/// The same on a MariaDB server.
fn mysql(server: &OnceLock<Arc<MysqlServer>>, scheme: &str, grant: &str) -> Ground {
    let server = server.get_or_init(|| Arc::new(mysql::start_with_rights(grant))).clone();
    let url = server.url("locks").replacen("mysql", scheme, 1);
    Ground { mysql: Some(server), ..Ground::without_server(url) }
}

pub(super) fn lock<S>(server: &Mutex<S>) -> std::sync::MutexGuard<'_, S> {
    server.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ground {
    fn without_server(url: String) -> Self {
        let (postgres, mysql, redis, etcd, zookeeper) = Default::default();
        Self { url, postgres, mysql, redis, etcd, zookeeper, cluster: None, quorum: None }
    }

    /// Whether it tells what is left of a lease. `ZooKeeper` does not tell when a session ends, neither do databases.
    pub(super) fn tells_ends(&self) -> bool {
        self.zookeeper.is_none() && self.tells_who()
    }

    /// Whether it tells who holds a lock and who waits for it. Databases tell of sessions only how many there are.
    pub(super) fn tells_who(&self) -> bool {
        !BY_SESSION.iter().any(|scheme| self.url.starts_with(scheme))
    }

    /// Whether it is a quorum.
    pub(super) fn is_voted(&self) -> bool {
        self.quorum.is_some()
    }

    /// Lets the actors do everything: other libraries need other commands, and waking their waiters does too.
    pub(super) fn lift_rights(&mut self) {
        if let Some(server) = &self.redis {
            self.url = lock(server).url().to_string();
        }
    }
}
