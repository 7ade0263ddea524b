//! `fencelock completions`: for the user's shell.

use std::process::ExitCode;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::exit::{finish, print};

/// Write the completions of a shell to standard output.
#[derive(Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(crate) fn execute(self) -> ExitCode {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::Cli::command(), "fencelock", &mut script);
        finish(async move { print(&String::from_utf8_lossy(&script)).map(|()| 0) })
    }
}
