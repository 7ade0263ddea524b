//! `cargo sim --seeds N [--from S] [--family NAME] [--threads N] [--trace SEED]`: worlds in virtual time,
//! about locks. `--about sessions`: over a store whose locks live with sessions. `--about cells`, or one of their families: about values with versions, jobs and elections.

use std::fmt::Debug;
use std::process::ExitCode;

use fencelock_worlds::campaign::{About, Campaign, Outcome, cells_plan};
use fencelock_worlds::cells;
use fencelock_worlds::plan::{Family, Plan};
use fencelock_worlds::shrink::{Seedling, shrink};
use fencelock_worlds::world::Ending;

const USAGE: &str = "usage: cargo sim --seeds N [--from S] [--family NAME] \
                     [--threads N] [--trace SEED] [--about locks|sessions|cells|Versions|Jobs|Elections]";

/// The arguments of the command line.
struct Wish {
    campaign: Campaign,
    trace: Option<u64>,
    about: About,
}

fn main() -> ExitCode {
    match read(std::env::args().skip(1)) {
        Ok(Wish { campaign, trace: Some(seed), about }) => match about {
            About::Locks => show(&campaign.plan(seed)),
            About::Sessions => show(&Plan::over_sessions(seed, campaign.family)),
            About::Cells(family) => show(&cells_plan(seed, family)),
        },
        Ok(Wish { campaign, trace: None, about }) => {
            let outcome = about.run(&campaign);
            match about {
                About::Locks => conclude(&outcome, |seed| campaign.plan(seed)),
                About::Sessions => {
                    conclude(&outcome, |seed| Plan::over_sessions(seed, campaign.family))
                }
                About::Cells(family) => conclude(&outcome, |seed| cells_plan(seed, family)),
            }
        }
        Err(complaint) => {
            eprintln!("{complaint}\n{USAGE}");
            ExitCode::from(64)
        }
    }
}

fn read(mut words: impl Iterator<Item = String>) -> Result<Wish, String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut campaign = Campaign { from: 0, seeds: 1000, family: None, threads };
    let (mut trace, mut about) = (None, About::Locks);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("`{word}` needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("`{value}` is not a number"));
        match word.as_str() {
            "--seeds" => campaign.seeds = number()?,
            "--from" => campaign.from = number()?,
            "--threads" => campaign.threads = number()? as usize,
            "--trace" => trace = Some(number()?),
            "--about" if value == "locks" => about = About::Locks,
            "--about" if value == "sessions" => about = About::Sessions,
            "--about" if value == "cells" => about = About::Cells(None),
            "--about" => {
                about = About::Cells(Some(named("family of cells", &cells::Family::ALL, &value)?));
            }
            "--family" => campaign.family = Some(named("family", &Family::ALL, &value)?),
            _ => return Err(format!("`{word}` is not known")),
        }
    }
    Ok(Wish { campaign, trace, about })
}

fn named<T: Copy + Debug>(what: &str, all: &[T], name: &str) -> Result<T, String> {
    let found = all.iter().find(|one| format!("{one:?}") == name).copied();
    found.ok_or_else(|| format!("there is no {what} `{name}`; there are {all:?}"))
}

/// Tells how the worlds went; `plan` draws one of them again.
fn conclude<P: Seedling + Debug>(outcome: &Outcome, plan: impl Fn(u64) -> P) -> ExitCode {
    for seed in &outcome.unsteady {
        println!("seed {seed} did not give the same twice");
    }
    if let Some((seed, violation)) = &outcome.found {
        println!("seed {seed}: {violation}");
        show(&shrink(&plan(*seed), violation.rule));
    }
    println!("{outcome}");
    if outcome.failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Prints a world's plan and history.
fn show<P: Seedling + Debug>(plan: &P) -> ExitCode {
    println!("{plan:#?}");
    tell(&plan.run(true))
}

fn tell(ending: &Ending) -> ExitCode {
    for (at, line) in &ending.history {
        println!("{:>12.6} {line}", at.as_secs_f64());
    }
    for violation in &ending.violations {
        println!("{violation}");
    }
    println!("trace {:016x}", ending.trace);
    if ending.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
