//! Wrong arguments of the program are reported.
#![allow(missing_docs)]

use std::process::Command;

use fencelock_servers::ended;

#[test]
fn a_workload_it_does_not_know_is_named_with_those_it_knows() {
    let program = env!("CARGO_BIN_EXE_fencelock-bench");
    let output = ended::output(Command::new(program).args(["--only", "nonsense"]));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("no workload `nonsense`"), "{said}");
    for name in ["pair", "handover", "leases", "doors", "queues", "databases"] {
        assert!(said.contains(name), "{said}");
    }
}
