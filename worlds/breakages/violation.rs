//! The output of the program `sim` for a world that breaks a promise. This is compiled in the copy with the breakages only, and run with
//! each of those that it names.

use std::process::Command;

use fencelock_worlds::campaign::Campaign;
use fencelock_worlds::plan::{Plan, Subject};
use fencelock_worlds::world;

/// Runs `sim`; returns the printed lines and the exit code.
fn told(arguments: &str) -> (Vec<String>, Option<i32>) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_sim"));
    let output = program.args(arguments.split_whitespace()).output().unwrap();
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

/// A violation as the program told it.
struct Found {
    seed: u64,
    /// The rule's name.
    rule: String,
    /// The plan that was printed.
    plan: String,
    /// The events of that world.
    history: Vec<String>,
    /// The rules that were broken in it.
    violations: Vec<String>,
    /// The line of figures.
    figures: String,
}

/// Takes what was printed of a violation apart.
fn found(arguments: &str) -> Found {
    let (lines, code) = told(arguments);
    assert_eq!(code, Some(1), "{lines:?}");
    let (first, rest) = lines.split_first().unwrap();
    let (seed, what) = first.strip_prefix("seed ").and_then(|rest| rest.split_once(": ")).unwrap();
    let plan = rest.iter().position(|line| line == "}").expect("the end of the plan") + 1;
    let (figures, told) = rest[plan..].split_last().unwrap();
    let (trace, told) = told.split_last().unwrap();
    assert!(trace.starts_with("trace "), "{trace}");
    // Each line of a history begins with its moment, in seconds.
    let is_history = |line: &&String| {
        line.starts_with(' ') && line.trim_start().starts_with(|c: char| c.is_ascii_digit())
    };
    let (history, violations) = told.iter().cloned().partition(|line| is_history(&line));
    Found {
        seed: seed.parse().unwrap(),
        rule: what.split(' ').next().unwrap().to_owned(),
        plan: rest[..plan].join("\n"),
        history,
        violations,
        figures: figures.clone(),
    }
}

/// How long a plan is to whoever reads it.
fn length(plan: &str) -> usize {
    plan.lines().count()
}

fn campaign(about: &'static [Subject], seeds: u64) -> Campaign {
    Campaign { about, from: 0, seeds, family: None, threads: 1 }
}

fn acts(plan: &Plan) -> usize {
    plan.tasks.iter().map(|task| task.acts.len()).sum()
}

#[test]
fn a_violation_is_told_with_the_shortest_history_and_fails() {
    let found = found("--seeds 2000 --threads 1");
    assert!(found.figures.contains(" 1 violations, "), "{}", found.figures);
    // What was cut away did not matter: the same promise is broken.
    let same = |line: &String| line.starts_with(&format!("{} at ", found.rule));
    assert!(found.violations.iter().any(same), "no {} in {:?}", found.rule, found.violations);
    assert!(!found.history.is_empty());

    // It is the drawn world cut down, as far as it goes.
    let campaign = campaign(&[Subject::Locks], 2000);
    let outcome = campaign.run();
    let (seed, violation) = outcome.found.as_ref().expect("a violation");
    assert_eq!((*seed, format!("{:?}", violation.rule)), (found.seed, found.rule));
    let drawn = campaign.plan(*seed);
    let cut = fencelock_worlds::shrink::shrink(&drawn, violation.rule);
    assert_eq!(format!("{cut:#?}"), found.plan);
    let size = |plan: &Plan| acts(plan) + plan.faults.len();
    assert!(size(&cut) * 2 <= size(&drawn), "{} of {}", size(&cut), size(&drawn));
    let breaks =
        |plan: &Plan| world::run(plan, false).violations.iter().any(|broken| broken.rule == violation.rule);
    assert!(breaks(&cut));
    let smaller = cut.smaller().into_iter().find(breaks);
    assert_eq!(smaller, None, "one thing less breaks it too");
}

#[test]
fn a_violation_about_cells_is_cut_down_too() {
    let found = found("--seeds 20000 --about cells --threads 1");
    assert!(found.figures.contains(" 1 violations, "), "{}", found.figures);
    let same = |line: &String| line.starts_with(&format!("{} at ", found.rule));
    assert!(found.violations.iter().any(same), "no {} in {:?}", found.rule, found.violations);
    let cells = campaign(&[Subject::Versions, Subject::Jobs, Subject::Elections], 1);
    let drawn = format!("{:#?}", cells.plan(found.seed));
    assert!(length(&found.plan) < length(&drawn), "{}\nof\n{drawn}", found.plan);
    assert!(!found.history.is_empty());
}

#[test]
fn a_seed_breaks_the_same_promise_again() {
    let first = found("--seeds 2000 --threads 1");
    let again = found(&format!("--seeds 1 --from {}", first.seed));
    assert_eq!((again.seed, again.rule), (first.seed, first.rule));
    assert_eq!((again.plan, again.history), (first.plan, first.history));
}
