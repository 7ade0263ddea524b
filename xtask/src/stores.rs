//! The parts about stores beside Redis and SQLite.

use crate::part::{Budget, Part, Step, Targets};

/// etcd as programs use it, and its faults.
pub(crate) const ETCD: Part = Part {
    name: "etcd",
    tags: &["faults"],
    shows: "etcd: random calls beside the model, the clauses of the entry queue, versions and jobs, faults on a real server, killed leaders, TLS, `etcdctl lock`",
    // Its worlds in real time count milliseconds, so nothing runs beside it.
    budget: Budget { seconds: 60, load: 200 },
    steps: &[Step::Tests(Targets::Named(&[
        "etcd",
        "etcd_cells",
        "etcd_clauses",
        "etcd_cluster",
        "etcd_faults",
        "etcd_model",
        "etcd_tls",
    ]))],
    full: &[],
};

/// The cases on etcd. A session of seconds ends where the server gets no processor for so long, so nothing runs beside it.
pub(crate) const ETCD_CASES: Part = Part {
    name: "etcd-cases",
    tags: &["conformance", "rust", "etcd"],
    shows: "the cases on etcd, as a grid without a gap",
    budget: Budget { seconds: 40, load: 200 },
    steps: &[Step::Test("conformance", &["", "etcd"])],
    full: &[],
};

/// `ZooKeeper`.
pub(crate) const ZOOKEEPER: Part = Part {
    name: "zookeeper",
    tags: &["faults"],
    shows: "ZooKeeper: random calls beside the model, the clauses of the entry queue, faults on a real server, Curator on the same path",
    budget: Budget { seconds: 60, load: 200 },
    steps: &[Step::Tests(Targets::Named(&[
        "zookeeper",
        "zookeeper_clauses",
        "zookeeper_curator",
        "zookeeper_faults",
        "zookeeper_model",
    ]))],
    full: &[],
};

/// `PostgreSQL`.
pub(crate) const POSTGRES: Part = Part {
    name: "postgres",
    tags: &["faults"],
    shows: "PostgreSQL: the table beside the model at every isolation level, the cases, faults on a real server, TLS, rights",
    budget: Budget { seconds: 60, load: 100 },
    steps: &[
        Step::Tests(Targets::Named(&[
            "postgres_faults",
            "postgres_figures",
            "postgres_input",
            "postgres_model",
        ])),
        Step::Test("conformance", &["", "postgres"]),
    ],
    full: &[],
};
