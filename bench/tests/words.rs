//! What the program is told wrongly, it says.
#![allow(missing_docs)]

use std::process::Command;

#[test]
fn a_workload_it_does_not_know_is_named_with_those_it_knows() {
    let output = Command::new(env!("CARGO_BIN_EXE_fencelock-bench"))
        .args(["--only", "nonsense"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("no workload `nonsense`"), "{said}");
    for name in ["pair", "handover", "leases", "doors", "queues", "databases"] {
        assert!(said.contains(name), "{said}");
    }
}
