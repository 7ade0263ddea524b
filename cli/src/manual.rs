//! `fencelock manual`: its pages, for packages. No help shows it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _};

use crate::exit::{Failure, finish};

/// Write the pages of the manual into a folder.
#[derive(Args)]
pub(crate) struct Manual {
    /// The folder, which is there.
    folder: PathBuf,
}

impl Manual {
    pub(crate) fn execute(self) -> ExitCode {
        finish(async move {
            clap_mangen::generate_to(crate::Cli::command(), &self.folder)
                .map_err(|error| Failure::system("the manual cannot be written", &error))?;
            Ok(0)
        })
    }
}
