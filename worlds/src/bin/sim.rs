//! `cargo sim --seeds N [--from S] [--about SUBJECT] [--family NAME] [--threads N] [--trace SEED]`: worlds in virtual time,
//! about locks, unless another subject is named.

use std::process::ExitCode;

use fencelock_worlds::campaign::{Campaign, Outcome};
use fencelock_worlds::plan::{Family, Plan, Subject};
use fencelock_worlds::shrink::shrink;
use fencelock_worlds::world;

const USAGE: &str = "usage: cargo sim --seeds N [--from S] [--family NAME] \
                     [--threads N] [--trace SEED] [--about locks|sessions|cells|versions|jobs|elections]";

/// The subjects that can be named.
const SUBJECTS: &[(&str, &[Subject])] = &[
    ("locks", &[Subject::Locks]),
    ("sessions", &[Subject::Sessions]),
    ("cells", &[Subject::Versions, Subject::Jobs, Subject::Elections]),
    ("versions", &[Subject::Versions]),
    ("jobs", &[Subject::Jobs]),
    ("elections", &[Subject::Elections]),
];

fn main() -> ExitCode {
    match read(std::env::args().skip(1)) {
        Ok((campaign, Some(seed))) => show(&campaign.plan(seed)),
        Ok((campaign, None)) => conclude(&campaign, &campaign.run()),
        Err(complaint) => {
            eprintln!("{complaint}\n{USAGE}");
            ExitCode::from(64)
        }
    }
}

/// The worlds to run, and the seed of the one to show.
fn read(mut words: impl Iterator<Item = String>) -> Result<(Campaign, Option<u64>), String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let about: &[Subject] = &[Subject::Locks];
    let mut campaign = Campaign { about, from: 0, seeds: 1000, family: None, threads };
    let mut trace = None;
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("`{word}` needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("`{value}` is not a number"));
        match word.as_str() {
            "--seeds" => campaign.seeds = number()?,
            "--from" => campaign.from = number()?,
            "--threads" => campaign.threads = number()? as usize,
            "--trace" => trace = Some(number()?),
            "--about" => {
                let found = SUBJECTS.iter().find(|(name, _)| *name == value);
                campaign.about = found.ok_or_else(|| format!("there is no subject `{value}`"))?.1;
            }
            "--family" => {
                let found = Family::ALL.iter().find(|family| format!("{family:?}") == value);
                campaign.family = Some(*found.ok_or_else(|| {
                    format!("there is no family `{value}`; there are {:?}", Family::ALL)
                })?);
            }
            _ => return Err(format!("`{word}` is not known")),
        }
    }
    let drawn =
        |family: Family| campaign.about.iter().all(|about| about.families().contains(&family));
    match campaign.family {
        Some(family) if !drawn(family) => {
            Err(format!("the family `{family:?}` is not drawn for this subject"))
        }
        _ => Ok((campaign, trace)),
    }
}

/// Tells how the worlds went.
fn conclude(campaign: &Campaign, outcome: &Outcome) -> ExitCode {
    for seed in &outcome.unsteady {
        println!("seed {seed} did not give the same twice");
    }
    if let Some((seed, violation)) = &outcome.found {
        println!("seed {seed}: {violation}");
        show(&shrink(&campaign.plan(*seed), violation.rule));
    }
    println!("{outcome}");
    if outcome.failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Prints a world's plan and history.
fn show(plan: &Plan) -> ExitCode {
    println!("{plan:#?}");
    let ending = world::run(plan, true);
    for (at, line) in &ending.history {
        println!("{:>12.6} {line}", at.as_secs_f64());
    }
    for violation in &ending.violations {
        println!("{violation}");
    }
    println!("trace {:016x}", ending.trace);
    if ending.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
