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

/// Each store alone. The dependencies are checked anew for each, which is what takes the time.
pub(crate) const EACH: &[Step] = FULL.split_at(STORES).0;

/// Also TLS for each store, and what has no store.
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

/// How many of them are a store alone.
const STORES: usize = 8;
