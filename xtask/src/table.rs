//! The parts of `cargo test-all`. They begin in this order, as far as there is room beside those that run: what is quick to fail comes
//! first, then what takes long, so that little is left to wait for at the end.
//!
//! All tests are built over the whole workspace with the profile `quick`: one set of features, one build. Budgets are of a whole
//! cold run on two quiet cores (`bench/README.md` has the run).

use crate::check::{crates, deny, installs, mutants, promises, readme, rooms, scenarios, statics};
use crate::need::Need;
use crate::part::{Budget, Part, Step, Targets};
use crate::versions;

const QUICK: &str = "--profile=quick";

/// Clippy over one crate feature, alone.
macro_rules! clippy_feature {
    ($($feature:literal),*) => {
        Step::Cargo {
            args: &["clippy", QUICK, "-p=fencelock", "--lib", "--no-default-features", $(concat!("--features=", $feature),)* "--", "-D", "warnings"],
            env: &[],
            expect: &[],
        }
    };
}

macro_rules! cargo {
    ($($arg:expr),+ ; $($expect:literal),*) => {
        Step::Cargo { args: &[$($arg),+], env: &[], expect: &[$($expect),*] }
    };
    ($($arg:expr),+) => { cargo!($($arg),+ ;) };
}

/// A campaign of simulated worlds.
macro_rules! sim {
    ($($arg:literal),+) => {
        Step::Program { built_with: "sim", name: "sim", args: &[$($arg),+] }
    };
}

/// The tag of a part that computes and waits for nothing: it comes after those that have leases to keep.
pub(crate) const COMPUTES: &str = "computes";

/// All parts.
pub(crate) const PARTS: &[Part] = &[
    Part {
        name: "fmt",
        tags: &["lint", "quick"],
        shows: "rustfmt has nothing to change",
        budget: Budget { seconds: 10, load: 100 },
        steps: &[cargo!("fmt", "--all", "--check")],
        full: &[],
    },
    Part {
        name: "rooms",
        tags: &["lint", "quick"],
        shows: "rooms depend on each other as drawn, files stay short, every test is in a part, one version, installers say what is missing; no child of a fork waits for what it copied",
        budget: Budget { seconds: 10, load: 100 },
        steps: &[
            Step::Check(rooms::check),
            Step::Check(statics::check),
            Step::Check(installs::check),
        ],
        full: &[],
    },
    Part {
        name: "scenarios",
        tags: &["lint", "quick"],
        shows: "every bug that other lock libraries had, and every promise of the README, has a test that names it",
        budget: Budget { seconds: 10, load: 100 },
        steps: &[Step::Check(scenarios::check), Step::Check(promises::check)],
        full: &[],
    },
    Part {
        name: "deny",
        tags: &["lint", "quick"],
        shows: "dependencies: licences, sources, bans; the crates as they are packed",
        budget: Budget { seconds: 10, load: 100 },
        steps: &[Step::Check(deny::check), Step::Check(crates::check)],
        full: &[],
    },
    Part {
        name: "core",
        tags: &["rust", "memory", "quick"],
        shows: "unit tests of all crates, and the core over the memory store",
        budget: Budget { seconds: 30, load: 70 },
        steps: &[Step::Tests(Targets::Unit), Step::Tests(Targets::Folder("core/tests"))],
        full: &[],
    },
    Part {
        name: "stateright",
        tags: &["model", COMPUTES],
        shows: "the protocol of mutex and hand-over, every order of events up to a bound",
        budget: Budget { seconds: 60, load: 140 },
        steps: &[Step::Tests(Targets::Named(&["stateright"]))],
        full: &[],
    },
    Part {
        name: "jvm",
        tags: &["doors", "redis", "sqlite", "java", "kotlin"],
        shows: "Java and Kotlin: the packages' own tests, and the cases played through them as installed",
        budget: Budget { seconds: 420, load: 100 },
        steps: &[
            Step::Suite("bindings-jvm/test.sh", &[Need::RedisServer, Need::Java, Need::Python]),
            Step::Door("java", &[Need::Java]),
            Step::Door("kotlin", &[Need::Java]),
        ],
        full: &[],
    },
    Part {
        name: "topologies",
        tags: &["faults", "redis"],
        shows: "Redis over TLS, under sentinels, as a cluster; replicas that acknowledge; failovers under load",
        budget: Budget { seconds: 140, load: 25 },
        steps: &[Step::Tests(Targets::Named(&[
            "redis_acks",
            "redis_cluster",
            "redis_guarded",
            "redis_redisson_cluster",
            "redis_sentinel",
            "redis_tls",
            "redis_transients",
        ]))],
        full: &[],
    },
    Part {
        name: "web",
        tags: &["doors", "redis", "wasm"],
        shows: "WebAssembly: the package's own tests, in Node.js and in Chromium, and the cases played through it",
        budget: Budget { seconds: 400, load: 70 },
        steps: &[
            Step::Suite("bindings-wasm/test.sh", &[Need::RedisServer, Need::Node, Need::Chromium]),
            Step::Door("wasm", &[Need::Node]),
        ],
        full: &[],
    },
    Part {
        name: "python",
        tags: &["doors", "redis", "sqlite"],
        shows: "Python: the package's own tests, and the cases played through it as installed",
        budget: Budget { seconds: 420, load: 70 },
        steps: &[
            Step::Suite("bindings-python/test.sh", &[Need::RedisServer, Need::Python]),
            Step::Door("python", &[Need::Python]),
        ],
        full: &[],
    },
    Part {
        name: "clippy",
        tags: &["lint", "quick", COMPUTES],
        shows: "no warning in the workspace",
        budget: Budget { seconds: 110, load: 150 },
        steps: &[cargo!("clippy", QUICK, "--workspace", "--all-targets", "--", "-D", "warnings")],
        full: &[],
    },
    Part {
        name: "node",
        tags: &["doors", "redis", "sqlite"],
        shows: "Node.js: the package's own tests, and the cases played through it as installed",
        budget: Budget { seconds: 280, load: 80 },
        steps: &[
            Step::Suite("bindings-node/test.sh", &[Need::RedisServer, Need::Node]),
            Step::Door("node", &[Need::Node]),
        ],
        full: &[],
    },
    Part {
        name: "equivalence",
        tags: &["redis", "sqlite", COMPUTES],
        shows: "random steps, the model against SQLite and Redis, outcome by outcome; thousands at one lock",
        budget: Budget { seconds: 260, load: 110 },
        steps: &[Step::Tests(Targets::Named(&["equivalence", "equivalence_cells", "sizes"]))],
        full: &[],
    },
    Part {
        name: "cli",
        tags: &[],
        shows: "the command line: run, inspect, ls, exit codes, signals, and the cases played through it",
        budget: Budget { seconds: 110, load: 50 },
        steps: &[
            Step::Tests(Targets::Folder("cli/tests")),
            Step::Build("run"),
            Step::Door("command line", &[]),
        ],
        full: &[],
    },
    Part {
        name: "mutants",
        tags: &["model", "quick", COMPUTES],
        shows: "every deliberate breakage is seen, by the simulator or by a test that names it; every await point is dropped at",
        budget: Budget { seconds: 180, load: 120 },
        steps: &[Step::Check(mutants::check), Step::Tests(Targets::Named(&["mutants", "awaits"]))],
        full: &[],
    },
    Part {
        name: "versions",
        tags: &["faults", "redis"],
        shows: "the same on Redis 6.2, Redis 8 and Valkey 8",
        budget: Budget { seconds: 100, load: 90 },
        steps: versions::STEPS,
        full: versions::FULL,
    },
    Part {
        name: "interop",
        tags: &["redis"],
        shows: "the clients of other libraries and ours hold the same locks, as a grid without a gap",
        budget: Budget { seconds: 190, load: 110 },
        steps: &[Step::Tests(Targets::Named(&["interop"]))],
        full: &[],
    },
    Part {
        name: "redis-faults",
        tags: &["faults", "redis"],
        shows: "Redis: bad input, faults on a real server, cut connections",
        budget: Budget { seconds: 130, load: 40 },
        steps: &[Step::Tests(Targets::Named(&[
            "redis_clock",
            "redis_eviction",
            "redis_cuts",
            "redis_faults",
            "redis_gate",
            "redis_late",
            "redis_layout",
            "redis_rights",
            "redis_scenarios",
            "redis_neighbours",
            "redis_redisson",
            "redis_redisson_kinds",
            "redis_votes",
        ]))],
        full: &[],
    },
    Part {
        name: "cases",
        tags: &["conformance", "rust", "memory", "sqlite", "quick"],
        shows: "the cases in memory, in virtual time and in SQLite, as a grid without a gap",
        budget: Budget { seconds: 60, load: 80 },
        steps: &[
            Step::Alone("conformance", &["", "memory", "sim", "sim queue", "sqlite"]),
            Step::Alone("conformance_sees", &[]),
            Step::Alone("spared", &[]),
        ],
        full: &[],
    },
    Part {
        name: "redis-cases",
        tags: &["conformance", "rust", "redis"],
        shows: "the cases on Redis, however it is reached, as a grid without a gap",
        budget: Budget { seconds: 60, load: 80 },
        steps: &[Step::Test("conformance", &["", "!memory", "!sim", "!sim queue", "!sqlite"])],
        full: &[],
    },
    Part {
        name: "doc",
        tags: &["rust", "docs", COMPUTES],
        shows: "the documentation builds without a warning; its examples and the README's run; every link of the book leads somewhere",
        budget: Budget { seconds: 90, load: 120 },
        steps: &[
            Step::Cargo {
                args: &["doc", QUICK, "--workspace", "--lib", "--no-deps"],
                env: &[("RUSTDOCFLAGS", "-D warnings")],
                expect: &[],
            },
            Step::Tests(Targets::Docs),
            Step::Tests(Targets::Named(&["book", "programs", "readme"])),
        ],
        full: &[],
    },
    Part {
        name: "features",
        tags: &["lint", COMPUTES],
        shows: "no warning in the core with each feature alone",
        budget: Budget { seconds: 100, load: 130 },
        steps: &[
            clippy_feature!(),
            clippy_feature!("tokio"),
            clippy_feature!("redis"),
            clippy_feature!("host"),
            clippy_feature!("tls"),
            clippy_feature!("etcd"),
            clippy_feature!("etcd", "tls"),
            clippy_feature!("sqlite"),
            clippy_feature!("test-hooks", "mutants"),
        ],
        full: &[],
    },
    Part {
        name: "wasm",
        tags: &[COMPUTES],
        shows: "the core without tokio compiles for wasm32-unknown-unknown",
        budget: Budget { seconds: 60, load: 120 },
        steps: &[Step::Script("scripts/wasm.sh", &[])],
        full: &[],
    },
    Part {
        name: "redlock",
        tags: &["redis", "faults"],
        shows: "five Redis servers as one: killed in turn, stopped, flushed, missing",
        budget: Budget { seconds: 50, load: 70 },
        steps: &[Step::Tests(Targets::Named(&["redlock"]))],
        full: &[],
    },
    Part {
        name: "fleet",
        tags: &["doors", "redis", "sqlite", "faults"],
        shows: "all languages and the command line count under one lock while members are killed: exact",
        budget: Budget { seconds: 100, load: 80 },
        steps: &[Step::Build("run"), Step::Tests(Targets::Named(&["fleet"]))],
        full: &[],
    },
    Part {
        name: "faults",
        tags: &["redis", "sqlite"],
        shows: "cancelled acquires and killed holders leave nothing behind; a forked child holds nothing; the blocking twin keeps every promise",
        budget: Budget { seconds: 70, load: 40 },
        steps: &[Step::Tests(Targets::Named(&[
            "cancels",
            "kills",
            "blocking_stores",
            "inherited",
        ]))],
        full: &[],
    },
    Part {
        name: "sim",
        tags: &["model", "quick", COMPUTES],
        shows: "simulated worlds, without a violation; one that is found is told with its history",
        budget: Budget { seconds: 60, load: 160 },
        steps: &[
            Step::Tests(Targets::Named(&["sim"])),
            sim!("--seeds", "20000"),
            sim!("--about", "cells", "--seeds", "10000"),
            sim!("--about", "sessions", "--seeds", "10000"),
        ],
        full: &[
            Step::Tests(Targets::Named(&["sim"])),
            sim!("--seeds", "200000"),
            sim!("--about", "cells", "--seeds", "100000"),
            sim!("--about", "sessions", "--seeds", "100000"),
        ],
    },
    Part {
        name: "shuttle",
        tags: &["model", "quick", COMPUTES],
        shows: "cohort and renewer under many orders of threads",
        budget: Budget { seconds: 120, load: 110 },
        steps: &[cargo!(
            "test",
            QUICK,
            "-p=fencelock",
            "--lib",
            "--features=shuttle,mutants",
            "shuttle"
        )],
        full: &[],
    },
    Part {
        name: "readme",
        tags: &["docs"],
        shows: "the shell blocks of the README and the book run as they stand",
        budget: Budget { seconds: 120, load: 80 },
        steps: &[Step::Build("run"), Step::Check(readme::check)],
        full: &[],
    },
    Part {
        name: "examples",
        tags: &["rust", "redis"],
        shows: "the shop and the counter: exact with the lock, and visibly not without",
        budget: Budget { seconds: 40, load: 50 },
        steps: &[Step::Build("run"), Step::Tests(Targets::Named(&["seeds"]))],
        full: &[],
    },
    Part {
        name: "sqlite",
        tags: &["faults", "quick"],
        shows: "SQLite: bad input, faults on real files, killed processes",
        budget: Budget { seconds: 20, load: 15 },
        steps: &[Step::Tests(Targets::Named(&["sqlite_faults", "sqlite_identity"]))],
        full: &[],
    },
    Part {
        name: "etcd",
        tags: &["faults"],
        shows: "etcd: random calls beside the model, the clauses of the entry queue, faults on a real server, TLS, `etcdctl lock`",
        budget: Budget { seconds: 60, load: 60 },
        steps: &[Step::Tests(Targets::Named(&[
            "etcd",
            "etcd_clauses",
            "etcd_faults",
            "etcd_model",
            "etcd_tls",
        ]))],
        full: &[],
    },
    Part {
        name: "demo",
        tags: &[],
        shows: "the shop sells what it has, with the lock; the verdict holds",
        budget: Budget { seconds: 60, load: 110 },
        steps: &[cargo!(
            "demo", "--", "--json" ;
            r#""sold":1000"#, r#""oversold":0"#, r#""counter":1000"#, r#""held":true"#
        )],
        full: &[],
    },
    Part {
        name: "bench",
        tags: &[],
        shows: "the workloads run; figures are shown, no ratio is asserted",
        budget: Budget { seconds: 80, load: 110 },
        steps: &[
            Step::Tests(Targets::Named(&["words"])),
            Step::Program { built_with: "words", name: "fencelock-bench", args: &["--quick"] },
        ],
        full: &[cargo!("run", "--release", "-p=fencelock-bench")],
    },
];
