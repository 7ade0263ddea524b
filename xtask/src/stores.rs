//! The parts about stores beside Redis and SQLite.

use crate::part::{Budget, Part, Step, Targets};

/// etcd as programs use it, and its faults.
pub(crate) const ETCD: Part = Part {
    name: "etcd",
    tags: &["faults"],
    shows: "etcd: random calls beside the model, the clauses of the entry queue, versions and jobs, faults on a real server, killed leaders, TLS, `etcdctl lock`, jetcd, Go's concurrency",
    budget: Budget { seconds: 90, load: 65 },
    steps: &[Step::Tests(Targets::Named(&["etcd", "etcd_clauses"]))],
    full: &[],
};

/// The cases on etcd.
pub(crate) const ETCD_CASES: Part = Part {
    name: "etcd-cases",
    tags: &["conformance", "rust", "etcd"],
    shows: "the cases on etcd, as a grid without a gap",
    budget: Budget { seconds: 60, load: 85 },
    steps: &[Step::Test("conformance", &["", "etcd"])],
    full: &[],
};

/// `ZooKeeper`.
pub(crate) const ZOOKEEPER: Part = Part {
    name: "zookeeper",
    tags: &["faults"],
    shows: "ZooKeeper: random calls beside the model, the clauses of the entry queue, versions and jobs, faults on a real server, killed leaders, TLS, Curator and kazoo on the same path",
    budget: Budget { seconds: 130, load: 85 },
    steps: &[Step::Tests(Targets::Named(&["zookeeper", "zookeeper_clauses", "zookeeper_relay"]))],
    full: &[],
};

/// The cases on `ZooKeeper`.
pub(crate) const ZOOKEEPER_CASES: Part = Part {
    name: "zookeeper-cases",
    tags: &["conformance", "rust", "zookeeper"],
    shows: "the cases on ZooKeeper, as a grid without a gap",
    budget: Budget { seconds: 35, load: 60 },
    steps: &[Step::Test("conformance", &["", "zookeeper"])],
    full: &[],
};

/// `PostgreSQL`.
pub(crate) const POSTGRES: Part = Part {
    name: "postgres",
    tags: &["faults"],
    shows: "PostgreSQL: the table beside the model at every isolation level, sessions, the gate, faults on a real server, a standby, poolers, TLS, rights, ShedLock and Spring on the same tables",
    budget: Budget { seconds: 140, load: 100 },
    steps: &[Step::Tests(Targets::Named(&["postgres"]))],
    full: &[],
};

/// `MySQL` and `MariaDB`.
pub(crate) const MYSQL: Part = Part {
    name: "mysql",
    tags: &["faults"],
    shows: "MySQL and MariaDB: the table beside the model at every isolation level, sessions, the gate, faults on a real server, TLS, rights, ShedLock and Spring on the same tables",
    budget: Budget { seconds: 130, load: 60 },
    steps: &[Step::Tests(Targets::Named(&["mysql"]))],
    full: &[],
};

/// The cases on `PostgreSQL` and on `MariaDB`, in three ways each. Their clients mostly wait.
pub(crate) const SQL_CASES: Part = Part {
    name: "sql-cases",
    tags: &["conformance", "rust", "postgres", "mysql"],
    shows: "the cases on PostgreSQL and on MariaDB, in a table, by session and by row, as grids without a gap",
    budget: Budget { seconds: 180, load: 45 },
    // Each client opens some connections, and all clients do so first of all.
    steps: &[
        Step::Test("conformance", &["", "postgres", "--at-once=12"]),
        Step::Test("conformance", &["", "postgres sessions", "--at-once=12"]),
        Step::Test("conformance", &["", "postgres rows", "--at-once=12"]),
        Step::Test("conformance", &["", "mysql", "--at-once=12"]),
        Step::Test("conformance", &["", "mysql sessions", "--at-once=12"]),
        Step::Test("conformance", &["", "mysql rows", "--at-once=12"]),
    ],
    full: &[],
};
