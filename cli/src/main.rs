//! `fencelock`: run a command under a lock, look at locks.

mod break_lock;
mod completions;
mod exit;
mod inspect;
mod legible;
mod list;
mod manual;
mod run;
mod secret;
mod sql;
mod state_directory;
mod store;
mod view;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Locks between processes and machines, with a fencing token on every grant.
#[derive(Parser)]
#[command(name = "fencelock", version, about, propagate_version = true, after_help = exit::HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a command while holding a lock.
    Run(run::Run),
    /// Run a command if its scheduled run is due and was not started elsewhere.
    Job(run::Job),
    /// Show one lock: holder, token, time left, waiters in order.
    Inspect(inspect::Inspect),
    /// End the holds of a lock whose holder hangs.
    Break(break_lock::Break),
    /// List the locks the store knows.
    Ls(list::List),
    /// Write the tables that a database needs to standard output.
    Sql(sql::Sql),
    /// Write the completions of a shell to standard output.
    Completions(completions::Completions),
    #[command(hide = true)]
    Manual(manual::Manual),
}

fn main() -> ExitCode {
    if let Some(code) = run::play_part() {
        return code;
    }
    let arguments: Vec<OsString> = std::env::args_os().collect();
    secret::leave_the_arguments(&arguments);
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(complaint) => return explain(&complaint),
    };
    match cli.command {
        Command::Run(run) => run.execute(),
        Command::Job(job) => job.execute(),
        Command::Inspect(inspect) => inspect.execute(),
        Command::Break(hold) => hold.execute(),
        Command::Ls(list) => list.execute(),
        Command::Sql(sql) => sql.execute(),
        Command::Completions(completions) => completions.execute(),
        Command::Manual(manual) => manual.execute(),
    }
}

/// Shows clap's help or complaint.
fn explain(complaint: &clap::Error) -> ExitCode {
    if complaint.use_stderr() {
        let _ = write!(std::io::stderr(), "{}", secret::blot_out(complaint.render().to_string()));
        return ExitCode::from(exit::USAGE);
    }
    let _ = complaint.print();
    ExitCode::SUCCESS
}
