//! The part `versions`: the servers it runs on beside the machine's own, what is asked of them, and what cannot be.

use crate::part::Step;

/// A server that `scripts/servers.sh` brings.
pub(crate) struct Server {
    /// Its folder among those.
    pub name: &'static str,
    /// Tests that are not for it, and why.
    except: &'static [(&'static str, &'static str)],
}

/// Redis 6.2 can be built with TLS; that of `PyPI` is not.
const NO_TLS: &str = "this build of the server speaks no TLS";

const REDIS_6_2: Server = Server {
    name: "redis-6.2",
    except: &[
        ("a_cluster_over_tls_knows_the_user", NO_TLS),
        ("a_server_may_ask_who_we_are", NO_TLS),
        ("a_server_that_cannot_prove_itself_is_refused", NO_TLS),
        ("a_server_with_our_own_authority_gives_locks", NO_TLS),
        ("certificates_without_tls_are_refused", NO_TLS),
        ("loading_is_waited_out", "the server cannot be told to answer while it loads so little"),
        ("no_provider_is_installed_for_the_process", NO_TLS),
        ("sentinels_over_tls_lead_a_user_to_the_master", NO_TLS),
        ("the_nodes_of_a_quorum_are_spoken_to_over_tls", NO_TLS),
    ],
};
const REDIS_8: Server = Server { name: "redis-8", except: &[] };
const VALKEY_8: Server = Server { name: "valkey-8", except: &[] };

/// What may depend on the server: how it greets, refuses, pushes, fails over, and what rights it asks for.
const FAULTS: &[&str] = &[
    "--test=redis_acks",
    "--test=redis_faults",
    "--test=redis_gate",
    "--test=redis_guarded",
    "--test=redis_layout",
    "--test=redis_rights",
    "--test=redis_tls",
    "--test=redis_transients",
    "--",
    "--exact",
    // Half a minute of failovers each, which `redis_guarded` has too.
    "--skip=b25_b01_a_hold_that_was_acknowledged_lives_through_a_failover",
    "--skip=b25_without_acks_the_fence_covers_what_a_failover_forgets",
    "--skip=b26_scripts_are_known_again_after_a_failover",
];

/// Every step of the scripts against the model, in a tenth of the cases. One after the other: three at once are too slow to
/// prove anything where there are two cores.
const SCRIPTS: &[&str] = &["--test=equivalence", "--", "--exact", "redis", "redisson"];

/// The cases, in this process.
const CASES: &[&str] = &["--test=conformance", "--", "", "redis / rust"];

/// What waits for most of its time, and has no bounds that another one's work would break.
macro_rules! beside {
    ($($server:ident),+) => {
        Step::Beside(&[$(&[Step::On(&$server, CASES)]),+])
    };
}

/// All steps.
pub(crate) const STEPS: &[Step] = &[
    Step::Script("scripts/servers.sh"),
    Step::On(&REDIS_6_2, FAULTS),
    Step::On(&REDIS_8, FAULTS),
    Step::On(&VALKEY_8, FAULTS),
    Step::On(&REDIS_6_2, SCRIPTS),
    Step::On(&REDIS_8, SCRIPTS),
    Step::On(&VALKEY_8, SCRIPTS),
    beside!(REDIS_6_2, REDIS_8, VALKEY_8),
];

impl Server {
    /// What has the test harness leave out what is not for this server.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = &'static str> {
        self.except.iter().flat_map(|(test, _)| ["--skip", *test])
    }
}

#[cfg(test)]
mod tests {
    use super::{REDIS_6_2, REDIS_8, VALKEY_8};

    /// A test that was given another name would silently be left out no more, one that is gone is no exception.
    #[test]
    fn exceptions_are_tests_and_have_a_reason() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/tests");
        let files = std::fs::read_dir(folder).expect("there are tests");
        let text = |file: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(file?.path());
        let all: String = files.flat_map(text).collect();
        for server in [REDIS_6_2, REDIS_8, VALKEY_8] {
            for (test, why) in server.except {
                assert!(all.contains(&format!("fn {test}()")), "{}: {test}", server.name);
                assert!(!why.is_empty(), "{}: {test}", server.name);
            }
        }
    }
}
