//! The parts of `cargo test-all`, in the order in which they run, and those of `cargo lint`.

use crate::machine::Need::{
    self, ApacheBench, Chromium, Etcd, Go, Java, Mariadb, Node, Pgbouncer, Postgres, Python, Redis,
    Ruby, Zookeeper,
};

/// Commands that run one after another and show one thing.
pub(crate) struct Part {
    pub name: &'static str,
    /// How many seconds it usually takes when all is built. Ten times as long is a hang.
    pub usual: u32,
    /// The property that it shows, in a few words.
    pub shows: &'static str,
    /// The tools that it needs beside the Rust toolchain.
    pub needs: &'static [Need],
    /// `cargo`, a script of the project, or a program that cargo has built. A `+` is a space inside an argument.
    pub run: &'static [&'static str],
    /// Whether it runs only with `--full` or by its name.
    pub full: bool,
}

type Needs = &'static [Need];
type Run = &'static [&'static str];

const fn first(
    name: &'static str,
    usual: u32,
    shows: &'static str,
    needs: Needs,
    run: Run,
) -> Part {
    Part { name, usual, shows, needs, run, full: false }
}

const fn full(name: &'static str, usual: u32, shows: &'static str, needs: Needs, run: Run) -> Part {
    Part { name, usual, shows, needs, run, full: true }
}

/// A cargo command over the tests of the whole workspace: one profile and one set of features, so that everything is built once.
macro_rules! test {
    ($words:literal) => {
        concat!("cargo test --profile=quick --workspace ", $words)
    };
}

/// A subject of the program `stores`, in a process of its own.
macro_rules! store {
    ($name:literal, $module:literal, $usual:literal, $shows:literal, $needs:expr) => {
        full(
            $name,
            $usual,
            $shows,
            $needs,
            &[concat!("cargo test --profile=quick --workspace --test stores -- ", $module, "::")],
        )
    };
}

const ALL_STORES: Needs = &[Redis, Etcd, Zookeeper, Postgres, Mariadb];

#[rustfmt::skip]
pub(crate) const LINT: &[Part] = &[
    first("fmt", 5, "rustfmt changes nothing", &[], &["cargo fmt --all --check"]),
    first("clippy", 120, "no warning in the workspace", &[],
        &["cargo clippy --profile=quick --workspace --all-targets -- -D warnings"]),
    first("doc", 60, "the documentation builds without a warning", &[], &["scripts/doc.sh"]),
];

#[rustfmt::skip]
pub(crate) const PARTS: &[Part] = &[
    first("build", 200, "the tests compile", &[], &[test!("--no-run --lib --bin fencelock --bin xtask \
        --test client --test forks --test log --test sim --test awaits --test cases --test program --test pages")]),
    first("unit", 20, "unit tests; the core over memory in virtual time; orders of threads", &[],
        // Some wait for real time, so four run at once.
        &[test!("--lib --bin fencelock --bin xtask --test client --test forks --test log -- --test-threads=4")]),
    first("sim", 15, "simulated worlds of locks, sessions and cells; every await point dropped at", &[],
        &[test!("--test sim --test awaits"),
          "sim --seeds 800", "sim --about cells --seeds 500", "sim --about sessions --seeds 400"]),
    first("breakages", 2, "every deliberate breakage applies as a patch to the core", &[], &["worlds/breakages/hunt.sh check"]),
    first("cases", 25, "every case in virtual time; the short ones in memory and SQLite", &[],
        &[test!("--test cases -- memory sim sim+queue sqlite")]),
    first("redis", 10, "the cases on a Redis server", &[Redis], &[test!("--test cases -- redis")]),
    first("etcd", 10, "the cases on an etcd server", &[Etcd], &[test!("--test cases -- etcd")]),
    first("zookeeper", 10, "the cases on a ZooKeeper server", &[Zookeeper], &[test!("--test cases -- zookeeper")]),
    first("postgres", 20, "the cases on a PostgreSQL server: table, session, row", &[Postgres],
        &[test!("--test cases -- --at-once=8 postgres postgres+sessions postgres+rows")]),
    first("mysql", 15, "the cases on a MariaDB server: table, session, row", &[Mariadb],
        &[test!("--test cases -- --at-once=8 mysql mysql+sessions mysql+rows")]),
    first("cli", 30, "the command line; the basic cases through it", &[Redis, Postgres, Mariadb],
        &[test!("--test program -- input:: run:: job:: look:: gate::"),
          test!("--test cases -- --package command+line")]),
    first("python", 60, "the wheel as installed: its tests, the basic cases", &[Python, Redis],
        &["bindings-python/test.sh", test!("--test cases -- --package python")]),
    first("node", 30, "the npm package as installed: its tests, the basic cases", &[Node, Redis],
        &["bindings-node/test.sh", test!("--test cases -- --package node")]),
    first("wasm", 30, "the WebAssembly package as installed: its tests, the basic cases", &[Node, Redis],
        &["bindings-wasm/test.sh", test!("--test cases -- --package wasm")]),
    first("jvm", 60, "the jars as installed: tests of Java and Kotlin, the basic cases", &[Java, Redis],
        &["bindings-jvm/test.sh", test!("--test cases -- --package java kotlin")]),
    first("pages", 20, "blocks, links and tables of the README and the book; the examples", &[],
        &[test!("--no-run --test program"), test!("--test pages -- blocks:: book:: programs:: tables::"), test!("--doc")]),
    // Of what the tests have built: `cargo demo` itself builds the core once more, with memory and SQLite only.
    first("demo", 10, "the demo: the verdict holds", &[],
        &["cargo build --profile=quick --workspace --bin fencelock-demo --test cases", "fencelock-demo"]),
    // From here on: `--full`.
    full("hunt", 400, "every deliberate breakage is caught", &[], &["worlds/breakages/hunt.sh"]),
    full("worlds", 600, "200,000 simulated worlds of locks, 100,000 each of cells and sessions; orders of threads", &[],
        &[test!("--test sim --test awaits"), test!("--lib -- shuttle::"), "sim --seeds 200000", "sim --about cells --seeds 100000", "sim --about sessions --seeds 100000"]),
    full("grid", 900, "every case on every store, also by programs that are killed and frozen", &[Redis, Etcd, Zookeeper, Postgres, Pgbouncer, Mariadb],
        &[test!("--test cases -- memory sim sim+queue sqlite"),
          test!("--test cases -- redis redis+over+TLS redis+cluster redis+as+redisson redlock"),
          test!("--test cases -- etcd"), test!("--test cases -- zookeeper"),
          test!("--test cases -- --at-once=12 postgres postgres+sessions postgres+rows postgres+pooled"),
          test!("--test cases -- --at-once=12 mysql mysql+sessions mysql+rows")]),
    store!("redis-faults", "redis", 600, "Redis: bad input, faults, cut connections, rights, layouts", &[Redis]),
    store!("topologies", "topologies", 900, "Redis over TLS, under sentinels, as a cluster; failovers under load", &[Redis]),
    store!("redlock", "redlock", 600, "five Redis servers as one: killed in turn, stopped, flushed, missing", &[Redis]),
    store!("sqlite", "sqlite", 200, "SQLite: bad input, faults on real files, killed processes", &[Redis]),
    store!("postgres-faults", "postgres", 1800, "PostgreSQL: model, sessions, gate, faults, standby, poolers, TLS", &[Postgres, Pgbouncer, Java]),
    store!("mysql-faults", "mysql", 1800, "MySQL and MariaDB: model, sessions, gate, faults, TLS, rights", &[Mariadb, Java]),
    store!("etcd-faults", "etcd", 900, "etcd: model, faults, killed leaders, TLS, other libraries", &[Etcd, Java, Go]),
    store!("zookeeper-faults", "zookeeper", 1200, "ZooKeeper: model, faults, killed leaders, TLS, Curator, kazoo", &[Zookeeper, Java, Python]),
    store!("relay", "relay", 60, "ZooKeeper over TLS: nobody else speaks in the client's name", &[Zookeeper]),
    store!("cancels", "cancels", 600, "cancelled acquires leave nothing behind on any store", ALL_STORES),
    store!("severed", "severed", 300, "connections that end or fall silent cost no lock on any store", ALL_STORES),
    store!("kills", "kills", 900, "killed and frozen holders: exact, and the next grant in time", ALL_STORES),
    store!("blocking", "blocking", 60, "the blocking twin keeps every promise", ALL_STORES),
    store!("inherited", "inherited", 60, "a forked child holds nothing", ALL_STORES),
    store!("equivalence", "equivalence", 900, "random steps: the model against SQLite and Redis", &[Redis]),
    store!("equivalence-cells", "equivalence_cells", 300, "random changes: the model of cells against the stores", ALL_STORES),
    store!("sizes", "sizes", 300, "ten thousand readers, permits and locks taken as one", ALL_STORES),
    store!("fleet", "fleet", 600, "all languages count under one lock while members are killed", &[Redis, Postgres, Python, Node, Java, Ruby]),
    full("servers", 900, "Redis 6.2, Redis 8 and Valkey 8: faults, cases, scripts", &[Redis, Python],
        &["scripts/servers.sh", "scripts/on-servers.sh"]),
    full("newer-servers", 600, "etcd 3.6, ZooKeeper 3.9, PostgreSQL 18: cases, models, faults", &[Etcd, Zookeeper, Postgres, Go, Node, Java],
        &["scripts/newer-servers.sh"]),
    full("libraries", 600, "the clients of other libraries and ours hold the same locks", &[Redis, Python, Node, Java, Go],
        &[test!("--test cases -- --libraries")]),
    full("cli-full", 900, "the command line: kills, signals, losses; every case on every store", ALL_STORES,
        &[test!("--test program"), test!("--test cases -- --package command+line --at-once=2")]),
    full("python-full", 1200, "the released wheel: all its tests, every case on every store", &[Python, Redis, Etcd, Zookeeper, Postgres, Mariadb],
        &["bindings-python/test.sh", test!("--test cases -- --package python")]),
    full("node-full", 900, "the released npm package: all its tests, every case on every store", &[Node, Redis, Etcd, Zookeeper, Postgres, Mariadb],
        &["bindings-node/test.sh", test!("--test cases -- --package node")]),
    full("wasm-full", 900, "the released WebAssembly package: all its tests, Chromium too, every case", &[Node, Redis, Chromium],
        &["bindings-wasm/test.sh", test!("--test cases -- --package wasm")]),
    full("jvm-full", 1200, "the released jars: all tests, newer JRE, Spring, every case on every store", &[Java, Python, Redis, Etcd, Zookeeper, Postgres, Mariadb],
        &["bindings-jvm/test.sh", test!("--test cases -- --package java kotlin")]),
    // Nothing of Ruby is in the first length: the generator of its sources takes two minutes of a processor to build.
    full("ruby-full", 900, "the released gem: all its tests, every case on every store", &[Ruby, Redis, Etcd, Zookeeper, Postgres, Mariadb],
        &["bindings-uniffi/ruby/test.sh", test!("--test cases -- --package ruby")]),
    full("uniffi", 600, "Kotlin over JNA: every case on every store; a Swift package is made", &[Java, Redis, Etcd, Zookeeper, Postgres, Mariadb],
        &[test!("--test cases -- --package jna+kotlin"), "bindings-uniffi/swift.sh target/uniffi-swift"]),
    full("examples", 300, "the examples that kill: exact with the lock, visibly not without", &[Redis, Etcd, ApacheBench, Python, Node, Java],
        &[test!("--test pages -- crashes:: seeds::")]),
    full("features", 600, "no warning in the core with each store alone, nor for wasm32; cargo demo", &[],
        &["scripts/features.sh", "scripts/wasm.sh", "cargo demo"]),
    full("targets", 900, "core, command line and bindings compile for every platform", &[Python],
        &["scripts/targets.sh"]),
    full("crates", 400, "the crates pack, and compile as packed; the public API is the one in core/api.txt", &[],
        &["cargo package --allow-dirty -p fencelock -p fencelock-cli", "scripts/api.sh"]),
    full("bench", 1800, "the figures, side by side with peers and the raw floor", &[Redis, Etcd, Zookeeper, Postgres, Mariadb, Python, Node, Java, Go],
        &[test!("--test words"), "cargo run --release -p fencelock-bench"]),
];
