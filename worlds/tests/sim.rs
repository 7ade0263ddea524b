//! The program `sim`, as `cargo sim` and `cargo test-all` run it: its exit code, what it prints, and that a world comes
//! again. `worlds/breakages/violation.rs` has what it prints of a world that breaks a promise.

use std::process::{Command, Output};

use fencelock_tests::ended;

fn sim(arguments: &str) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_sim"));
    ended::output(program.args(arguments.split_whitespace()))
}

/// Runs `sim`; returns the printed lines and the exit code.
fn told(arguments: &str) -> (Vec<String>, Option<i32>) {
    let output = sim(arguments);
    assert!(output.stderr.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    (text.lines().map(without_pid).collect(), output.status.code())
}

/// A client says who it is on the store: the one thing in a history that differs from one run to the next.
fn without_pid(line: &str) -> String {
    let mut parts = line.split(r#"\"pid\":"#);
    let mut clean = parts.next().unwrap_or_default().to_owned();
    clean.extend(parts.map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit())));
    clean
}

#[test]
fn worlds_that_keep_their_promises_end_with_one_line_and_no_failure() {
    for about in ["locks", "sessions", "cells"] {
        let (lines, code) = told(&format!("--seeds 64 --about {about}"));
        let [figures] = &lines[..] else { panic!("more than a line: {lines:?}") };
        assert_eq!(code, Some(0), "{figures}");
        assert!(
            figures.starts_with("64 worlds (") && figures.contains(" 0 violations, "),
            "{figures}"
        );
        let number = |before: &str| {
            let (until, _) = figures.split_once(before).unwrap();
            until.rsplit([' ', '(']).next().unwrap().parse::<u64>().unwrap()
        };
        assert_eq!(number(" faithful") + number(" unfaithful"), 64, "{figures}");
        assert!(number(" grants") > 64, "{figures}");
        assert!(number(" cancels") > 32 && number(" losses") > 8, "{figures}");
    }
}

/// Worlds that broke a promise once, or in which the checker was mistaken.
#[test]
fn worlds_that_were_found_wanting_keep_their_promises() {
    for world in [
        // The first of several locks was lost with the store's data and acquired by another task before the last was won.
        "--family Wiped --from 16267",
        // Readers of a quorum showed the same token and their losses looked like one.
        "--family Minority --from 584",
        // A writer that died waiting kept readers out of a free lock.
        "--family Votes --from 1001",
        // A renewal was answered by a clock that had jumped, and the checker did not know of that lease.
        "--family Jumped --from 30175272",
        // A node granted a hold once more behind the cleanup of its end, whose answer was taken to pay for that too.
        "--family Amnesia --from 50045119",
        // What a crashed client had asked for arrived so late that the checker did not wait for the end of that lease.
        "--family Storm --from 50036939",
        // A push with half of its lease was renewed as late as a whole one.
        "--family Slow --from 500059210",
        // A waiter went on with an attempt whose lease was a third of its own.
        "--from 130040528",
        // Sessions ended before their heartbeats could be answered.
        "--about sessions --from 130037294",
        // A mutex held with a token of before it, behind readers and writers of its name.
        "--about sessions --from 130051950",
    ] {
        let (lines, code) = told(&format!("--seeds 1 {world}"));
        assert_eq!(code, Some(0), "{lines:?}");
    }
}

#[test]
fn a_seed_is_the_same_world_again() {
    for about in ["locks", "cells"] {
        let trace = |seed| told(&format!("--trace {seed} --about {about}"));
        let (one, code) = trace(7);
        assert_eq!(code, Some(0), "{one:?}");
        assert!(one.last().unwrap().starts_with("trace ") && one.len() > 20, "{one:?}");
        assert_eq!(trace(7), (one.clone(), code));
        assert_ne!(trace(8).0.last(), one.last());
    }
}

#[test]
fn what_is_not_understood_is_said() {
    let wrong = [
        ("--seed 10", "`--seed` is not known"),
        ("--seeds", "`--seeds` needs a value"),
        ("--seeds many", "`many` is not a number"),
        ("--family Nobody", "there is no family `Nobody`"),
        ("--about nothing", "there is no subject `nothing`"),
        ("--about jobs --family Quorum", "the family `Quorum` is not drawn for this subject"),
    ];
    for (arguments, says) in wrong {
        let output = sim(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(64), 0), "{arguments}");
        assert!(said.starts_with(says) && said.contains("usage: cargo sim"), "{said}");
    }
}
