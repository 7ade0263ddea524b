//! The program `sim`, as `cargo sim` and `cargo test-all` run it: its exit code, what it prints, and that a world comes again.

use std::process::{Command, Output};

use fencelock::mutation::{Mutant, activate};
use fencelock_tests::ended;
use fencelock_worlds::campaign::{Campaign, cells_plan};
use fencelock_worlds::cells;
use fencelock_worlds::plan::Plan;
use fencelock_worlds::shrink::Seedling;

fn sim(arguments: &str) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_sim"));
    ended::output(program.args(arguments.split_whitespace()))
}

/// What a run printed, and its exit code.
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

/// A violation as the program told it.
struct Found {
    seed: u64,
    /// The rule's name.
    rule: String,
    /// The plan that was printed.
    plan: String,
    /// What happened in that world.
    history: Vec<String>,
    /// What was broken in it.
    violations: Vec<String>,
    /// The line of figures.
    figures: String,
}

/// Takes what was printed of a violation apart.
fn found(arguments: &str) -> Found {
    let (lines, code) = told(arguments);
    assert_eq!(code, Some(1), "{lines:?}");
    let (first, rest) = lines.split_first().unwrap();
    let (seed, what) = first.strip_prefix("seed ").and_then(|rest| rest.split_once(',')).unwrap();
    let (_, what) = what.split_once(": ").unwrap();
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

fn campaign(seeds: u64, mutant: Mutant) -> Campaign {
    Campaign { from: 0, seeds, mutant: Some(mutant), family: None, threads: 1 }
}

fn acts(plan: &Plan) -> usize {
    plan.tasks.iter().map(|task| task.acts.len()).sum()
}

#[test]
fn worlds_that_keep_their_promises_end_with_one_line_and_no_failure() {
    for about in ["locks", "cells"] {
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
    }
}

/// Worlds that broke a promise once, or in which the checker was mistaken.
#[test]
fn worlds_that_were_found_wanting_keep_their_promises() {
    for world in [
        // A waiter went on with an attempt whose lease was a third of its own.
        "--from 130040528",
        // Sessions ended before their heartbeats could be answered.
        "--about sessions --from 130037294",
        // A mutex held with a token of before it, behind readers and writers of its name.
        "--about sessions --from 130051950",
        // Mutexes behind one whose token was drawn anew had lesser ones.
        "--about sessions --from 1182",
    ] {
        let (lines, code) = told(&format!("--seeds 1 {world}"));
        assert_eq!(code, Some(0), "{lines:?}");
    }
}

#[test]
fn a_violation_is_told_with_the_shortest_history_and_fails() {
    let found = found("--seeds 2000 --mutant CancelForgets --threads 1");
    assert!(found.figures.contains(" 1 violations, "), "{}", found.figures);
    // What was cut away did not matter: the same promise is broken.
    let same = |line: &String| line.starts_with(&format!("{} at ", found.rule));
    assert!(found.violations.iter().any(same), "no {} in {:?}", found.rule, found.violations);
    assert!(!found.history.is_empty());

    // It is the drawn world cut down, as far as it goes.
    let campaign = campaign(2000, Mutant::CancelForgets);
    activate(campaign.mutant);
    let outcome = campaign.run();
    let (seed, violation) = outcome.found.as_ref().expect("a violation");
    assert_eq!((*seed, format!("{:?}", violation.rule)), (found.seed, found.rule));
    let drawn = campaign.plan(*seed);
    let cut = fencelock_worlds::shrink::shrink(&drawn, violation.rule);
    assert_eq!(format!("{cut:#?}"), found.plan);
    let size = |plan: &Plan| acts(plan) + plan.faults.len();
    assert!(size(&cut) * 2 <= size(&drawn), "{} of {}", size(&cut), size(&drawn));
    let breaks =
        |plan: &Plan| plan.run(false).violations.iter().any(|broken| broken.rule == violation.rule);
    assert!(breaks(&cut));
    let smaller = cut.smaller().into_iter().find(breaks);
    assert_eq!(smaller, None, "one thing less breaks it too");
}

#[test]
fn a_violation_about_cells_is_cut_down_too() {
    let mutant = cells::MUTANTS[0];
    let found = found(&format!("--seeds 20000 --mutant {mutant:?} --about cells --threads 1"));
    assert!(found.figures.contains(" 1 violations, "), "{}", found.figures);
    let same = |line: &String| line.starts_with(&format!("{} at ", found.rule));
    assert!(found.violations.iter().any(same), "no {} in {:?}", found.rule, found.violations);
    let drawn = format!("{:#?}", cells_plan(found.seed, None));
    assert!(length(&found.plan) < length(&drawn), "{}\nof\n{drawn}", found.plan);
    assert!(!found.history.is_empty());
}

#[test]
fn a_seed_is_the_same_world_again() {
    let first = found("--seeds 2000 --mutant CancelForgets --threads 1");
    let again = found(&format!("--seeds 1 --from {} --mutant CancelForgets", first.seed));
    assert_eq!((again.seed, again.rule), (first.seed, first.rule));
    assert_eq!((again.plan, again.history), (first.plan, first.history));

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
        ("--mutant Nobody", "there is no mutant `Nobody`"),
        ("--about nothing", "there is no family of cells `nothing`"),
    ];
    for (arguments, says) in wrong {
        let output = sim(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(64), 0), "{arguments}");
        assert!(said.starts_with(says) && said.contains("usage: cargo sim"), "{said}");
    }
}
