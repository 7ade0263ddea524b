//! `fencelock`: run a command under a lock, look at locks, see the demo.

mod demo;
mod inspect;
mod run;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Locks between processes and machines, with a fencing token on every grant.
#[derive(Parser)]
#[command(name = "fencelock", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a command while holding a lock.
    Run(run::Run),
    /// Show one lock: holder, token, time left, waiters in order.
    Inspect(inspect::Inspect),
    /// List the locks the store knows.
    Ls(inspect::List),
    /// See what a lock is for: a shop that oversells without it, and does not with it.
    Demo(demo::Demo),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(run) => run.execute(),
        Command::Inspect(inspect) => inspect.execute(),
        Command::Ls(list) => list.execute(),
        Command::Demo(demo) => demo.execute(),
    }
}
