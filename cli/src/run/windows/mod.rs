//! The command's processes and signals on Windows.

mod signals;
mod supervisor;

use std::process::ExitCode;

pub(super) use self::signals::{Signals, exit_code};
pub(super) use self::supervisor::Supervisor;

/// `fencelock run` starts no process of its own here.
pub(crate) fn play_part() -> Option<ExitCode> {
    None
}
