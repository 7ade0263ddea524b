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
const FAULTS: &[&str] = &["redis_faults", "topologies"];
const OF_SERVERS: &[&str] = &[
    "server::",
    "gate::",
    "layout::",
    "rights::",
    "acks::",
    "guarded::",
    "tls::",
    "transients::",
    // Half a minute of failovers each, which `guarded` has too.
    "--skip=b25_b01_a_hold_that_was_acknowledged_lives_through_a_failover",
    "--skip=b25_without_acks_the_fence_covers_what_a_failover_forgets",
    "--skip=b26_scripts_are_known_again_after_a_failover",
];

/// Every step of the scripts against the model, in a tenth of the cases.
const EQUIVALENCE: &[&str] = &["equivalence"];
const SCRIPTS: &[&str] = &["--exact", "redis", "redisson"];

/// The faults and the cases on one server. The cases run in this process; words may give it a share of them.
macro_rules! on {
    ($server:ident $(, $share:literal)?) => {
        &[
            Step::On(&$server, FAULTS, OF_SERVERS),
            Step::On(&$server, &["conformance"], &["", "redis / rust" $(, $share)?]),
        ]
    };
}

/// The scripts on one server.
macro_rules! scripts {
    ($($server:ident),+) => { &[$(Step::On(&$server, EQUIVALENCE, SCRIPTS)),+] };
}

/// The steps of a short run: the machine's own server plays all cases, each of these plays a third of them.
pub(crate) const STEPS: &[Step] = &[
    Step::Script("scripts/servers.sh"),
    Step::Beside(&[
        on!(REDIS_6_2, "--share=0/3"),
        on!(REDIS_8, "--share=1/3"),
        on!(VALKEY_8, "--share=2/3"),
        scripts!(REDIS_6_2, REDIS_8, VALKEY_8),
    ]),
];

/// Every case on every server.
pub(crate) const FULL: &[Step] = &[
    Step::Script("scripts/servers.sh"),
    Step::Beside(&[on!(REDIS_6_2), on!(REDIS_8), on!(VALKEY_8)]),
    Step::Beside(&[scripts!(REDIS_6_2, REDIS_8, VALKEY_8)]),
];

impl Server {
    /// What has the test harness leave out what is not for this server.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = String> {
        self.except.iter().map(|(test, _)| format!("--skip={test}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{OF_SERVERS, REDIS_6_2, REDIS_8, VALKEY_8};

    /// A test that was given another name would silently be left out no more, one that is gone is no exception.
    #[test]
    fn exceptions_are_tests_and_have_a_reason() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/tests");
        let files = crate::check::files(folder.as_ref(), "rs");
        let all: String = files.iter().flat_map(std::fs::read_to_string).collect();
        for word in OF_SERVERS {
            let test = word.strip_prefix("--skip=").map(|test| format!("fn {test}()"));
            let module = || format!("mod {};", word.trim_end_matches("::"));
            assert!(all.contains(&test.unwrap_or_else(module)), "{word}");
        }
        for server in [REDIS_6_2, REDIS_8, VALKEY_8] {
            for (test, why) in server.except {
                assert!(all.contains(&format!("fn {test}()")), "{}: {test}", server.name);
                assert!(!why.is_empty(), "{}: {test}", server.name);
            }
        }
    }
}
