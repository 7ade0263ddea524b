//! The part `features`: the core with each store alone and, in full, with what can be added to one.

use crate::part::Step;

macro_rules! clippy {
    ($($feature:literal),*) => {
        Step::Cargo {
            args: &["clippy", "--profile=quick", "-p=fencelock", "--lib", "--no-default-features", $(concat!("--features=", $feature),)* "--", "-D", "warnings"],
            env: &[],
            expect: &[],
        }
    };
}

/// No store, and each half of them: for most pairs there is a build that has the one without the other. The dependencies are checked
/// anew for each, which is what takes the time. The part `wasm` has `host`.
pub(crate) const HALVES: &[Step] =
    &[clippy!(), clippy!("redis", "etcd", "mysql"), clippy!("sqlite", "zookeeper", "postgres")];

/// Each store alone, TLS for each, and what has no store.
pub(crate) const FULL: &[Step] = &[
    clippy!(),
    clippy!("host"),
    clippy!("redis"),
    clippy!("sqlite"),
    clippy!("etcd"),
    clippy!("zookeeper"),
    clippy!("postgres"),
    clippy!("mysql"),
    clippy!("tls"),
    clippy!("etcd", "tls"),
    clippy!("zookeeper", "tls"),
    clippy!("postgres", "tls"),
    clippy!("mysql", "tls"),
    clippy!("tokio"),
    clippy!("test-hooks", "mutants"),
];
