//! The backends of the grid, and the store one case stands on.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tempfile::TempDir;

use super::case::Need;
use super::step::Server;
use crate::etcd::{EtcdServer, PREFIX};
use crate::postgres::PostgresServer;
use crate::servers::{Authority, ClusterSet, QuorumSet, RedisServer};

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
    /// A PostgreSQL database.
    Postgres,
    /// A Redis server.
    Redis,
    /// The same over TLS.
    RedisTls,
    /// The same, where only the older protocol is spoken.
    RedisResp2,
    /// A cluster of Redis servers.
    RedisCluster,
    /// A Redis server on which all locks are laid out as Redisson's.
    RedisAsRedisson,
    /// Redlock over three masters.
    Redlock,
}

impl Backend {
    /// Those every case is for.
    pub const ALL: [Self; 6] =
        [Self::Memory, Self::Sim, Self::Sqlite, Self::Postgres, Self::Redis, Self::Etcd];
    /// Other ways to Redis.
    pub const WAYS: [Self; 5] = [
        Self::RedisTls,
        Self::RedisResp2,
        Self::RedisCluster,
        Self::RedisAsRedisson,
        Self::Redlock,
    ];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sim => "sim",
            Self::Queue => "sim queue",
            Self::Sqlite => "sqlite",
            Self::Etcd => "etcd",
            Self::Postgres => "postgres",
            Self::Redis => "redis",
            Self::RedisTls => "redis over TLS",
            Self::RedisResp2 => "redis by RESP2",
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

    /// Why this backend cannot play a case that needs this, whoever the actors are; `None` if it can.
    pub(super) fn lacks(self, need: Need) -> Option<&'static str> {
        match (need, self) {
            (Need::Order, Self::Redlock) => {
                Some("no order is kept between the clients of a quorum")
            }
            (Need::Urls | Need::UrlOptions, Self::Queue) => {
                Some("no URL names an entry queue in memory")
            }
            (Need::OwnLeases, Self::Queue | Self::Etcd) => {
                Some("a lease lives with its client's session")
            }
            (Need::Passing, Self::Queue | Self::Etcd) => {
                Some("entries are served in their order, fair or not")
            }
            (Need::PartSeconds, Self::Etcd) => Some("a session lives for whole seconds"),
            (Need::ForeignHolders, Self::Etcd) => {
                Some("somebody else holds by commands of Redis; tests/tests/etcd.rs has `etcdctl`")
            }
            (Need::Commands, Self::Etcd) => Some("the server takes no commands of Redis"),
            (Need::Forgets, Self::Etcd) => Some("what it knows outlives a restart"),
            (Need::Permits, Self::Redlock) => Some("a quorum has no permits"),
            (Need::ForeignHolders | Need::DialectPlain, Self::Redis)
            | (Need::ServerControl, Self::Redis | Self::Etcd)
            | (
                Need::NoDialects,
                Self::Memory | Self::Sim | Self::Queue | Self::Sqlite | Self::Postgres | Self::Etcd,
            )
            | (Need::Files, Self::Sqlite)
            | (Need::VirtualTime, Self::Sim | Self::Queue)
            | (
                Need::Kill
                | Need::SharedStore
                | Need::Abort
                | Need::Untyped
                | Need::RunRelease
                | Need::Urls
                | Need::UrlOptions
                | Need::OwnLeases
                | Need::Passing
                | Need::PartSeconds
                | Need::Cells
                | Need::Commands
                | Need::Forgets
                | Need::OneClient
                | Need::Order
                | Need::Permits
                | Need::WholeLease,
                _,
            ) => None,
            (
                Need::Extends | Need::Kinds | Need::LooksAgain | Need::Renews | Need::TellsLoss,
                _,
            ) => Some("there is no other library in this column"),
            (Need::ForeignHolders, _) => Some("the store keeps no locks but fencelock's own"),
            (Need::DialectPlain, _) => Some("the store speaks no dialect"),
            (Need::NoDialects, _) => Some("the store speaks dialects"),
            (Need::ServerControl, Self::Postgres) => {
                Some("tests/postgres_faults.rs stops and kills its server")
            }
            (Need::ServerControl, _) => Some("the store has no server"),
            (Need::Files, _) => Some("the store lies in no file"),
            (Need::VirtualTime, _) => {
                Some("in real time a stall of the machine would rightly change the outcome")
            }
        }
    }
}

/// The stores the cases share.
#[derive(Default)]
pub(super) struct Grounds {
    folder: OnceLock<TempDir>,
    postgres: OnceLock<Arc<PostgresServer>>,
    redis: OnceLock<Arc<Mutex<RedisServer>>>,
    etcd: OnceLock<Arc<Mutex<EtcdServer>>>,
    tls: OnceLock<Encrypted>,
    resp2: OnceLock<Arc<Mutex<RedisServer>>>,
    open: OnceLock<Arc<Mutex<RedisServer>>>,
    cluster: OnceLock<Arc<ClusterSet>>,
    quorum: OnceLock<Arc<QuorumSet>>,
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
    postgres: Option<Arc<PostgresServer>>,
    redis: Option<Arc<Mutex<RedisServer>>>,
    etcd: Option<Arc<Mutex<EtcdServer>>>,
    cluster: Option<Arc<ClusterSet>>,
    quorum: Option<Arc<QuorumSet>>,
}

impl Grounds {
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
            Backend::Postgres => {
                let start = || {
                    // Many cases are played at once, and each client has some connections.
                    let server = PostgresServer::start_with(&["max_connections=1000"]);
                    // The actors have the rights the reference asks for, and no others.
                    server.sql(&format!(
                        "{}; CREATE ROLE locks LOGIN; GRANT SELECT, INSERT, UPDATE ON fencelock TO locks;
                         GRANT SELECT, INSERT, UPDATE, DELETE ON fencelock_cell TO locks",
                        fencelock::driver::postgres::schema()
                    ));
                    Arc::new(server)
                };
                let server = self.postgres.get_or_init(start).clone();
                let url = server.url("locks");
                Ground { postgres: Some(server), ..Ground::without_server(url) }
            }
            Backend::Redis => {
                // The actors have the rights the README asks for, and no others.
                let start = || Arc::new(Mutex::new(RedisServer::start_with_rights()));
                let own = needs.contains(&Need::ServerControl);
                let server = if own { start() } else { self.redis.get_or_init(start).clone() };
                let url = lock(&server).url_with_rights().to_string();
                Ground { redis: Some(server), ..Ground::without_server(url) }
            }
            Backend::Etcd => {
                let start = || Arc::new(Mutex::new(EtcdServer::start_with_rights()));
                let own = needs.contains(&Need::ServerControl);
                let server = if own { start() } else { self.etcd.get_or_init(start).clone() };
                let url = lock(&server).url_with_rights().to_string();
                Ground { etcd: Some(server), ..Ground::without_server(url) }
            }
            Backend::RedisTls => {
                let Encrypted { server, url, .. } = self.tls.get_or_init(Encrypted::start);
                Ground { redis: Some(server.clone()), ..Ground::without_server(url.clone()) }
            }
            Backend::RedisResp2 => {
                let words = ["--rename-command", "HELLO", ""];
                let start = || Arc::new(Mutex::new(RedisServer::start_with(&words)));
                let server = self.resp2.get_or_init(start).clone();
                let url = lock(&server).url().to_string();
                Ground { redis: Some(server), ..Ground::without_server(url) }
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

fn lock<S>(server: &Mutex<S>) -> std::sync::MutexGuard<'_, S> {
    server.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ground {
    fn without_server(url: String) -> Self {
        Self { url, postgres: None, redis: None, etcd: None, cluster: None, quorum: None }
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

    /// A raw command, as somebody else; what the server answers, as text.
    pub(super) fn command(&self, words: &[String]) -> Result<String, String> {
        let server = self.redis.as_ref().ok_or("this store takes no raw commands")?;
        tokio::task::block_in_place(|| run(&lock(server), words))
    }

    /// Has something happen to the server.
    pub(super) fn control(&self, what: Server) -> Result<(), String> {
        if let Some(server) = &self.etcd {
            tokio::task::block_in_place(|| {
                let mut server = lock(server);
                match what {
                    Server::Restart => {
                        server.kill_hard();
                        server.start_again();
                    }
                    Server::Stop => server.stop(),
                    Server::Resume => server.cont(),
                    Server::Kill => server.kill_hard(),
                }
            });
            return Ok(());
        }
        let server = self.redis.as_ref().ok_or("this store has no server")?;
        tokio::task::block_in_place(|| {
            let mut server = lock(server);
            match what {
                Server::Restart => server.restart(),
                Server::Stop => server.stop(),
                Server::Resume => server.cont(),
                Server::Kill => server.kill_hard(),
            }
        });
        Ok(())
    }

    /// Every key of the case that has no end, and every lock key that is still there: there must be none. On etcd all keys are such.
    pub(super) fn leftovers(&self, prefix: &str) -> Result<Vec<String>, String> {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        tokio::task::block_in_place(|| {
            let guard = self.redis.as_ref().map(|server| lock(server));
            let nodes = self.cluster.iter().flat_map(|cluster| cluster.masters());
            let nodes = nodes.chain(self.quorum.iter().flat_map(|quorum| &quorum.masters));
            let entries = self.etcd.iter();
            let entries = entries.flat_map(|etcd| lock(etcd).keys(&format!("{PREFIX}/{prefix}")));
            let mut left: Vec<_> = entries.map(|key| format!("the key {key}")).collect();
            if let Some(server) = &self.postgres {
                let held = server.sql(&format!(
                    "SELECT name FROM fencelock WHERE name LIKE '%{prefix}%' AND expires_at > clock_timestamp()"
                ));
                left.extend(held.lines().map(|name| format!("a hold of {name}")));
            }
            for server in guard.as_deref().into_iter().chain(nodes) {
                let keys = run(server, &words(&["KEYS", &format!("*{prefix}*")]))?;
                for key in keys.lines().filter(|key| !key.is_empty()) {
                    let content = || run(server, &words(&["GET", key]));
                    let permits = || content().is_ok_and(|text| text.parse::<u32>().is_ok());
                    let endless = run(server, &words(&["PTTL", key]))? == "-1";
                    if key.contains("}:version:") || endless && permits() {
                        // A user's value stays for as long as the user wants, and so do the permits of Redisson's.
                        continue;
                    }
                    let record = key.starts_with("fencelock:{");
                    if !record {
                        left.push(format!("the key {key}"));
                    } else if endless {
                        left.push(format!("the key {key}, which has no end"));
                    }
                }
            }
            Ok(left)
        })
    }
}

fn run(server: &RedisServer, words: &[String]) -> Result<String, String> {
    let (name, arguments) = words.split_first().ok_or("a command has a name")?;
    let answer = redis::cmd(name).arg(arguments).query(&mut server.admin());
    answer.map(|value| text(&value)).map_err(|error| error.to_string())
}

fn text(value: &redis::Value) -> String {
    match value {
        redis::Value::Nil => "nil".to_owned(),
        redis::Value::Int(number) => number.to_string(),
        redis::Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        redis::Value::SimpleString(text) => text.clone(),
        redis::Value::Okay => "OK".to_owned(),
        redis::Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join("\n"),
        other => format!("{other:?}"),
    }
}
