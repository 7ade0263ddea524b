//! `fencelock demo`: not in this build yet.

use std::process::ExitCode;

use clap::Args;

use crate::exit;

/// See what a lock is for.
#[derive(Args)]
pub(crate) struct Demo {}

impl Demo {
    pub(crate) fn execute(self) -> ExitCode {
        let Self {} = self;
        exit::say("this build has no demo");
        ExitCode::from(exit::USAGE)
    }
}
