//! The abilities that a backend lacks, for any actors.

use super::case::Need;
use super::ground::Backend;

/// Why leases of their own are left out.
const OF_SESSION: &str = "a lease lives with its client's session";

impl Backend {
    /// Why this backend cannot play a case that needs this, whoever the actors are; `None` if it can.
    pub(super) fn lacks(self, need: Need) -> Option<&'static str> {
        let lacks = self.lacks_by_session(need);
        if lacks.is_some() {
            return lacks;
        }
        match (need, self) {
            (Need::Order, Self::Redlock) => {
                Some("no order is kept between the clients of a quorum")
            }
            (Need::Urls | Need::UrlOptions, Self::Queue) => {
                Some("no URL names an entry queue in memory")
            }
            (Need::OwnLeases, Self::Queue | Self::Etcd | Self::Zookeeper) => Some(OF_SESSION),
            (Need::Passing, Self::Queue | Self::Etcd | Self::Zookeeper) => {
                Some("entries are served in their order, fair or not")
            }
            (Need::PartSeconds, Self::Etcd) => Some("a session lives for whole seconds"),
            (Need::ForeignHolders, Self::Etcd) => Some(
                "somebody else holds by commands of Redis; tests/tests/etcd/locks.rs has `etcdctl`",
            ),
            (Need::ForeignHolders, Self::Zookeeper) => Some(
                "somebody else holds by commands of Redis; tests/tests/zookeeper/curator.rs has Curator",
            ),
            (Need::Commands, Self::Etcd | Self::Zookeeper) => {
                Some("the server takes no commands of Redis")
            }
            (Need::Forgets, Self::Etcd | Self::Zookeeper) => {
                Some("what it knows outlives a restart")
            }
            (Need::Permits, Self::Redlock) => Some("a quorum has no permits"),
            (Need::Permits, Self::RedisAsRedisson) => Some("permits are not shared with Redisson"),
            (Need::TakingAway, Self::Memory | Self::Sim | Self::Queue) => {
                Some("nobody else reaches what a process remembers")
            }
            (Need::Credentials, Self::Memory | Self::Sim | Self::Queue | Self::Sqlite) => {
                Some("the store asks nobody who they are")
            }
            (Need::ForeignHolders | Need::DialectPlain | Need::Gates, Self::Redis)
            | (Need::ServerControl, Self::Redis | Self::Etcd | Self::Zookeeper)
            | (
                Need::NoDialects,
                Self::Memory
                | Self::Sim
                | Self::Queue
                | Self::Sqlite
                | Self::Postgres
                | Self::PostgresPooled
                | Self::PostgresSessions
                | Self::PostgresRows
                | Self::Mysql
                | Self::MysqlSessions
                | Self::MysqlRows
                | Self::Etcd
                | Self::Zookeeper,
            )
            | (Need::Files, Self::Sqlite)
            | (Need::OwnTables, Self::Postgres | Self::PostgresPooled | Self::Mysql)
            | (Need::VirtualTime, Self::Sim | Self::Queue)
            | (
                Need::Kill
                | Need::SharedStore
                | Need::TakingAway
                | Need::Abort
                | Need::Untyped
                | Need::Cron
                | Need::Urls
                | Need::UrlOptions
                | Need::OwnLeases
                | Need::Passing
                | Need::PartSeconds
                | Need::Cells
                | Need::Commands
                | Need::Credentials
                | Need::Forgets
                | Need::OneClient
                | Need::Order
                | Need::Places
                | Need::TriesInOrder
                | Need::Permits
                | Need::WholeLease
                | Need::Readers
                | Need::Names
                | Need::Details
                | Need::ManyWaits,
                _,
            ) => None,
            (
                Need::Extends | Need::Kinds | Need::LooksAgain | Need::Renews | Need::TellsLoss,
                _,
            ) => Some("there is no other library in this column"),
            (Need::ForeignHolders, _) => Some("the store keeps no locks but fencelock's own"),
            (Need::Gates, _) => Some("this gate stands on one Redis server"),
            (Need::DialectPlain, _) => Some("the store speaks no dialect"),
            (Need::NoDialects, _) => Some("the store speaks dialects"),
            (Need::ServerControl, backend) => Some(who_stops(backend)),
            (Need::OwnTables, _) => Some("the store has no tables of the user's own"),
            (Need::Files, _) => Some("the store lies in no file"),
            (Need::VirtualTime, _) => {
                Some("in real time a stall of the machine would rightly change the outcome")
            }
        }
    }
}

impl Backend {
    /// The same of what sessions of a database lack.
    fn lacks_by_session(self, need: Need) -> Option<&'static str> {
        match self {
            Self::PostgresSessions | Self::PostgresRows | Self::MysqlRows
                if need == Need::Places =>
            {
                Some("a wait is begun anew each second, behind those who came since")
            }
            Self::PostgresPooled if need == Need::Credentials => {
                Some("the pooler asks nobody who they are")
            }
            Self::PostgresSessions => lacks_by_session(need),
            Self::MysqlSessions => lacks_by_name(need),
            Self::PostgresRows if need == Need::TriesInOrder => {
                Some("who asks just as a row becomes free may get it before those who wait")
            }
            Self::PostgresRows | Self::MysqlRows => lacks_by_row(need),
            _ => None,
        }
    }
}

/// The test that stops and kills this backend's server, where cases do not.
fn who_stops(backend: Backend) -> &'static str {
    match backend {
        Backend::Postgres | Backend::PostgresPooled => {
            "tests/tests/postgres/faults.rs stops and kills its server"
        }
        Backend::PostgresSessions | Backend::PostgresRows => {
            "tests/tests/postgres/session_faults.rs stops and kills its server"
        }
        Backend::Mysql => "tests/tests/mysql/faults.rs stops and kills its server",
        Backend::MysqlSessions | Backend::MysqlRows => {
            "tests/tests/mysql/session_faults.rs stops and kills its server"
        }
        _ => "the store has no server",
    }
}

/// Why sessions of a database cannot play a case that needs this, if that is why.
fn lacks_by_session(need: Need) -> Option<&'static str> {
    match need {
        Need::OwnLeases => Some(OF_SESSION),
        Need::Passing => Some("the server serves waiters in their order, fair or not"),
        Need::Permits => Some("the server's locks are exclusive or shared"),
        Need::Cells | Need::Names => Some("the server keeps numbers of locks, and no more"),
        Need::Details => Some("the server tells how many hold and wait, not who"),
        Need::ManyWaits => {
            Some("each wait and each reader of a client takes one of its 32 connections")
        }
        _ => None,
    }
}

/// The same of the named locks of MySQL.
fn lacks_by_name(need: Need) -> Option<&'static str> {
    match need {
        Need::Permits | Need::Readers => Some("a named lock has one holder"),
        need => lacks_by_session(need),
    }
}

/// The same of rows that sessions have locked.
fn lacks_by_row(need: Need) -> Option<&'static str> {
    match need {
        Need::Permits | Need::Readers => Some("a row is locked by one holder"),
        Need::Cells => Some("the rows are locks, and no more"),
        Need::Names => None,
        Need::ManyWaits => Some("each lock of a client takes one of its 32 connections"),
        need => lacks_by_session(need),
    }
}
