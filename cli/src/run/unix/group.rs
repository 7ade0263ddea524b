//! The command and its process group.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeReader, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::itself;
use super::signals::exit_code;
use crate::exit::say;
use crate::run::refusal::refusal;

/// The argument that makes the program a launcher.
pub(super) const LAUNCH: &str = "__launch";
const NOT_GUARDED: u8 = 71;

/// A running command, leader of a process group of its own.
///
/// Nobody takes note of the leader's end before [`Group::let_go`]: until then no other process can have its number, so that
/// a signal to the group never goes astray.
pub(crate) struct Group {
    leader: Pid,
}

/// The state of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupState {
    Running,
    /// Stopped by this signal since the last look.
    Stopped(i32),
    /// Ended, with this exit code as shells have it.
    Ended(u8),
}

impl Group {
    /// The group of this command, which this process or its guardian started.
    pub(crate) fn of(leader: Pid) -> Self {
        Self { leader }
    }

    /// Starts the command. It does not run before a byte comes through `gate`, and not at all if that is closed: then it
    /// has no supervisor.
    pub(crate) fn start(
        command: impl Iterator<Item = OsString>,
        gate: &PipeReader,
    ) -> io::Result<Self> {
        // The only descriptor that is to be inherited by the only process that is started from here on.
        fcntl_setfd(gate, FdFlags::empty())?;
        let launcher = Command::new(itself())
            .arg0("fencelock")
            .arg(LAUNCH)
            .arg(gate.as_raw_fd().to_string())
            .args(command)
            .process_group(0)
            .spawn()?;
        Ok(Self { leader: Pid::from_child(&launcher) })
    }

    /// The group's number.
    pub(crate) fn id(&self) -> Pid {
        self.leader
    }

    /// Sends a signal to every process of the group. That there may be none left to hear it is no error.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.leader, signal);
    }

    /// Looks what the command does. For a process that is not its parent, it runs.
    pub(crate) fn look(&self) -> io::Result<GroupState> {
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        if let Some(status) = self.wait(ended)? {
            let code = status.terminating_signal().map(exit_code);
            let code = code.or_else(|| status.exit_status().map(|code| code as u8));
            return Ok(GroupState::Ended(code.unwrap_or(u8::MAX)));
        }
        let stopped = self.wait(WaitIdOptions::STOPPED | WaitIdOptions::NOHANG)?;
        let signal = stopped.and_then(|status| status.stopping_signal());
        Ok(signal.map_or(GroupState::Running, GroupState::Stopped))
    }

    fn wait(&self, options: WaitIdOptions) -> io::Result<Option<rustix::process::WaitIdStatus>> {
        loop {
            match waitid(WaitId::Pid(self.leader), options) {
                Err(Errno::INTR) => {}
                Err(Errno::CHILD) => return Ok(None),
                other => return Ok(other?),
            }
        }
    }

    /// Waits for the command's end and takes note of it; processes it left in the background go on.
    pub(crate) fn let_go(&self) {
        let _ = self.wait(WaitIdOptions::EXITED);
    }
}

/// The launcher: waits at the gate, then becomes the command.
pub(super) fn launch(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let gate = arguments.next().and_then(|number| number.to_str()?.parse().ok());
    let (Some(gate), Some(program)) = (gate, arguments.next()) else {
        return ExitCode::from(NOT_GUARDED);
    };
    if let Err(error) = pass(gate) {
        say(format_args!("the command was not started, for it has no supervisor: {error}"));
        return ExitCode::from(NOT_GUARDED);
    }
    let error = Command::new(&program).args(arguments).exec();
    ExitCode::from(refusal(&program, &error))
}

/// Waits for the byte. The gate is an inherited descriptor: it is opened anew by its name, so that the command does not
/// inherit it.
fn pass(gate: i32) -> io::Result<()> {
    let mut opened = File::open(format!("/dev/fd/{gate}"))?;
    nix::unistd::close(gate)?;
    opened.read_exact(&mut [0])
}
