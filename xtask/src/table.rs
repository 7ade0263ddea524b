//! The parts of `cargo test-all`, in the order they run: what is quick to fail comes first.
//!
//! All of them build with the profile `quick`, and all tests over the whole workspace: one set of features, one build.

use crate::check::{deny, mutants, readme, rooms, scenarios};
use crate::need::Need;
use crate::part::{Part, Step, Targets};
use crate::versions;

/// The languages that have a package of ours.
const OURS: &[Need] = &[Need::Python, Need::Node, Need::Java];
/// Those of the other libraries too.
const ALL: &[Need] = &[Need::Python, Need::Node, Need::Java, Need::Go];

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

/// All parts.
pub(crate) const PARTS: &[Part] = &[
    Part {
        name: "fmt",
        tags: &["lint"],
        shows: "rustfmt has nothing to change",
        needs: &[],
        wants: &[],
        steps: &[cargo!("fmt", "--all", "--check")],
        full: &[],
    },
    Part {
        name: "rooms",
        tags: &["lint"],
        shows: "rooms depend on each other as drawn, files stay short, every test is in a part, one version",
        needs: &[],
        wants: &[],
        steps: &[Step::Check(rooms::check)],
        full: &[],
    },
    Part {
        name: "scenarios",
        tags: &["lint"],
        shows: "every bug that other lock libraries had has a test that carries its number",
        needs: &[],
        wants: &[],
        steps: &[Step::Check(scenarios::check)],
        full: &[],
    },
    Part {
        name: "deny",
        tags: &["lint"],
        shows: "dependencies: licences, sources, bans",
        needs: &[],
        wants: &[],
        steps: &[Step::Check(deny::check)],
        full: &[],
    },
    Part {
        name: "clippy",
        tags: &["lint"],
        shows: "no warning, in the workspace and in the core with each feature alone",
        needs: &[],
        wants: &[],
        steps: &[
            cargo!("clippy", QUICK, "--workspace", "--all-targets", "--", "-D", "warnings"),
            clippy_feature!(),
            clippy_feature!("tokio"),
            clippy_feature!("redis"),
            clippy_feature!("host"),
            clippy_feature!("tls"),
            clippy_feature!("sqlite"),
            clippy_feature!("sim", "mutants"),
        ],
        full: &[],
    },
    Part {
        name: "core",
        tags: &["rust", "memory"],
        shows: "unit tests of all crates, and the core over the memory store",
        needs: &[],
        wants: &[],
        steps: &[Step::Tests(Targets::Unit), Step::Tests(Targets::Folder("core/tests"))],
        full: &[],
    },
    Part {
        name: "doc",
        tags: &["rust", "docs"],
        shows: "the documentation builds without a warning; its examples and the README's run",
        needs: &[],
        wants: &[],
        steps: &[
            Step::Cargo {
                args: &["doc", QUICK, "--workspace", "--lib", "--no-deps"],
                env: &[("RUSTDOCFLAGS", "-D warnings")],
                expect: &[],
            },
            Step::Tests(Targets::Docs),
            Step::Tests(Targets::Named(&["programs", "readme"])),
        ],
        full: &[],
    },
    Part {
        name: "readme",
        tags: &["docs"],
        shows: "the README's shell blocks run as they stand",
        needs: &[],
        wants: &[],
        steps: &[Step::Check(readme::check)],
        full: &[],
    },
    Part {
        name: "wasm",
        tags: &[],
        shows: "the core without tokio compiles for wasm32-unknown-unknown",
        needs: &[],
        wants: &[],
        steps: &[Step::Script("scripts/wasm.sh")],
        full: &[],
    },
    Part {
        name: "stateright",
        tags: &["model"],
        shows: "the protocol of mutex and hand-over, every order of events up to a bound",
        needs: &[],
        wants: &[],
        steps: &[Step::Tests(Targets::Named(&["stateright"]))],
        full: &[],
    },
    Part {
        name: "shuttle",
        tags: &["model"],
        shows: "cohort and wheel under many orders of threads",
        needs: &[],
        wants: &[],
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
        name: "sim",
        tags: &["model"],
        shows: "simulated worlds, without a violation; one that is found is told with its history",
        needs: &[],
        wants: &[],
        steps: &[
            Step::Tests(Targets::Named(&["sim"])),
            Step::Program("sim", &["--seeds", "20000"]),
            Step::Program("sim", &["--about", "cells", "--seeds", "10000"]),
        ],
        full: &[
            Step::Tests(Targets::Named(&["sim"])),
            cargo!("sim", "--seeds", "200000"),
            cargo!("sim", "--about", "cells", "--seeds", "100000"),
        ],
    },
    Part {
        name: "mutants",
        tags: &["model"],
        shows: "every deliberate breakage is seen, by the simulator or by a test that names it; every await point is dropped at",
        needs: &[],
        wants: &[],
        steps: &[Step::Check(mutants::check), Step::Tests(Targets::Named(&["mutants", "awaits"]))],
        full: &[],
    },
    Part {
        name: "sqlite",
        tags: &["faults"],
        shows: "SQLite: bad input, faults on real files, killed processes",
        needs: &[],
        wants: &[],
        steps: &[Step::Tests(Targets::Named(&["sqlite_faults"]))],
        full: &[],
    },
    Part {
        name: "redis",
        tags: &["faults"],
        shows: "Redis: bad input, faults on a real server, cut connections",
        needs: &[Need::RedisServer],
        wants: &[],
        steps: &[Step::Tests(Targets::Named(&[
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
        name: "topologies",
        tags: &["faults", "redis"],
        shows: "Redis over TLS, under sentinels, as a cluster; replicas that acknowledge; failovers under load",
        needs: &[Need::RedisServer],
        wants: &[],
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
        name: "versions",
        tags: &["faults", "redis"],
        shows: "the same on Redis 6.2, Redis 8 and Valkey 8",
        needs: &[Need::Python],
        wants: &[],
        steps: versions::STEPS,
        full: &[],
    },
    Part {
        name: "redlock",
        tags: &["redis", "faults"],
        shows: "five Redis servers as one: killed in turn, stopped, flushed, missing",
        needs: &[Need::RedisServer],
        wants: &[],
        steps: &[Step::Tests(Targets::Named(&["redlock"]))],
        full: &[],
    },
    Part {
        name: "equivalence",
        tags: &["redis", "sqlite"],
        shows: "random steps, the model against SQLite and Redis, outcome by outcome",
        needs: &[Need::RedisServer],
        wants: &[],
        steps: &[Step::Tests(Targets::Named(&["equivalence", "equivalence_cells"]))],
        full: &[],
    },
    Part {
        name: "conformance",
        tags: &["rust", "memory", "redis", "sqlite"],
        shows: "the cases on every store and actor, as a grid without a gap",
        needs: &[Need::RedisServer],
        wants: &[],
        steps: &[Step::Tests(Targets::Named(&["conformance", "conformance_sees", "spared"]))],
        full: &[],
    },
    Part {
        name: "interop",
        tags: &["redis"],
        shows: "the clients of other libraries and ours hold the same locks, as a grid without a gap",
        needs: &[Need::RedisServer],
        wants: ALL,
        steps: &[Step::Tests(Targets::Named(&["interop"]))],
        full: &[],
    },
    Part {
        name: "faults",
        tags: &["redis", "sqlite"],
        shows: "cancelled acquires and killed holders leave nothing behind; the blocking twin keeps every promise",
        needs: &[Need::RedisServer],
        wants: &[],
        steps: &[Step::Tests(Targets::Named(&["cancels", "kills", "blocking"]))],
        full: &[],
    },
    Part {
        name: "python",
        tags: &["doors", "redis", "sqlite"],
        shows: "Python: the package's own tests, and the cases played through it as installed",
        needs: &[Need::RedisServer, Need::Python],
        wants: &[],
        steps: &[
            Step::Suite("bindings-python/test.sh"),
            cargo!("test", QUICK, "--workspace", "--test", "doors", "--", "python"),
        ],
        full: &[],
    },
    Part {
        name: "node",
        tags: &["doors", "redis", "sqlite"],
        shows: "Node.js: the package's own tests, and the cases played through it as installed",
        needs: &[Need::RedisServer, Need::Node],
        wants: &[],
        steps: &[
            Step::Suite("bindings-node/test.sh"),
            cargo!("test", QUICK, "--workspace", "--test", "doors", "--", "node"),
        ],
        full: &[],
    },
    Part {
        name: "jvm",
        tags: &["doors", "redis", "sqlite", "java", "kotlin"],
        shows: "Java and Kotlin: the packages' own tests, and the cases played through them as installed",
        needs: &[Need::RedisServer, Need::Java, Need::Python],
        wants: &[],
        steps: &[
            Step::Suite("bindings-jvm/test.sh"),
            cargo!("test", QUICK, "--workspace", "--test", "doors", "--", "java"),
            cargo!("test", QUICK, "--workspace", "--test", "doors", "--", "kotlin"),
        ],
        full: &[],
    },
    Part {
        name: "web",
        tags: &["doors", "redis", "wasm"],
        shows: "WebAssembly: the package's own tests, in Node.js and in Chromium, and the cases played through it",
        needs: &[Need::RedisServer, Need::Node, Need::Chromium],
        wants: &[],
        steps: &[
            Step::Suite("bindings-wasm/test.sh"),
            cargo!("test", QUICK, "--workspace", "--test", "doors", "--", "wasm"),
        ],
        full: &[],
    },
    Part {
        name: "fleet",
        tags: &["doors", "redis", "sqlite", "faults"],
        shows: "all languages and the command line count under one lock while members are killed: exact",
        needs: &[Need::RedisServer],
        wants: OURS,
        steps: &[Step::Build("run"), Step::Tests(Targets::Named(&["fleet"]))],
        full: &[],
    },
    Part {
        name: "cli",
        tags: &[],
        shows: "the command line: run, inspect, ls, exit codes, signals, and the cases played through it",
        needs: &[Need::RedisServer],
        wants: &[],
        steps: &[
            Step::Tests(Targets::Folder("cli/tests")),
            cargo!("test", QUICK, "--workspace", "--test", "doors", "--", "command line"),
        ],
        full: &[],
    },
    Part {
        name: "examples",
        tags: &["rust", "redis"],
        shows: "the shop and the counter: exact with the lock, and visibly not without",
        needs: &[Need::RedisServer, Need::ApacheBench],
        wants: &[],
        steps: &[Step::Build("run"), Step::Tests(Targets::Named(&["seeds"]))],
        full: &[],
    },
    Part {
        name: "demo",
        tags: &[],
        shows: "the shop sells what it has, with the lock; the verdict holds",
        needs: &[],
        wants: &[],
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
        needs: &[Need::RedisServer],
        wants: &[],
        steps: &[
            Step::Tests(Targets::Named(&["words"])),
            Step::Program("fencelock-bench", &["--quick"]),
        ],
        full: &[cargo!("run", "--release", "-p=fencelock-bench")],
    },
];
