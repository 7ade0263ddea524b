//! The command's processes and signals on Unix.

mod clock;
#[cfg(target_os = "linux")]
mod descendants;
#[cfg(not(target_os = "linux"))]
#[path = "group_only.rs"]
mod descendants;
mod group;
mod guard;
mod guardian;
mod report;
mod signals;
mod supervisor;
mod terminal;

use std::path::PathBuf;
use std::process::ExitCode;

pub(super) use self::signals::{Signals, exit_code};
pub(super) use self::supervisor::Supervisor;

/// This very program, also if its file was replaced meanwhile.
pub(crate) fn itself() -> PathBuf {
    if cfg!(target_os = "linux") {
        return PathBuf::from("/proc/self/exe");
    }
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("fencelock"))
}

/// Plays the part `fencelock run` started this process for, if it did.
pub(crate) fn play_part() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next()?.to_str()? {
        guard::GUARD => Some(guard::guard(arguments)),
        group::LAUNCH => Some(group::launch(arguments)),
        _ => None,
    }
}
