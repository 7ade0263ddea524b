//! How the program ends: exit codes after sysexits.h, and errors for people.

use std::fmt::Display;
use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

use fencelock::Code;

use crate::legible::legible;

/// The exit codes that are fencelock's own.
pub(crate) const USAGE: u8 = 64;
const UNAVAILABLE: u8 = 69;
const INTERNAL: u8 = 70;
const SYSTEM: u8 = 71;
const NOT_ACQUIRED: u8 = 75;
const NO_PERMISSION: u8 = 77;
const CONFIGURATION: u8 = 78;
pub(crate) const LOST: u8 = 79;

/// The table of exit codes, for `--help`.
pub(crate) const HELP: &str = "\
Exit codes:
  the command's own; 128 + N if signal N ended it
   64  wrong usage
   69  the store cannot be reached
   70  a defect of fencelock
   71  the operating system refused a process, pipe or file
   75  the lock was not acquired in time
   77  the store refused the credentials or the user's rights
   78  wrong configuration: a name, option or URL is not acceptable, or the name holds other data
   79  the lock was lost while the command ran; with `break`, nobody holds it
  126  the command cannot be executed
  127  there is no such command";

/// Why a subcommand ends early: an exit code and a line for people.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// The requested configuration is not acceptable.
    pub(crate) fn configuration(message: impl Into<String>) -> Self {
        Self { code: CONFIGURATION, message: message.into() }
    }

    /// The operating system refused `what`.
    pub(crate) fn system(what: impl Display, error: &std::io::Error) -> Self {
        Self { code: SYSTEM, message: format!("{what}: {error}") }
    }
}

/// The exit code that goes with an error of fencelock.
pub(crate) fn code_of(code: Code) -> u8 {
    match code {
        Code::Timeout => NOT_ACQUIRED,
        Code::Unavailable => UNAVAILABLE,
        Code::Auth => NO_PERMISSION,
        Code::Invalid | Code::Unsupported | Code::Conflict => CONFIGURATION,
        Code::Lost | Code::NotHeld => LOST,
        _ => INTERNAL,
    }
}

impl From<fencelock::Error> for Failure {
    fn from(error: fencelock::Error) -> Self {
        Self { code: code_of(error.code()), message: error.to_string() }
    }
}

/// Says something on standard error, as one line, whatever it quotes. That nobody may read it is no reason to fail.
pub(crate) fn say(message: impl Display) {
    let _ = writeln!(std::io::stderr(), "fencelock: {}", legible(&message.to_string()));
}

/// Writes a result to standard output; a reader that went away (`fencelock ls | head`) has what it wanted.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::system("standard output cannot be written", &error))
        }
        _ => Ok(()),
    }
}

/// Runs a subcommand on a runtime of one thread and ends with its exit code.
pub(crate) fn finish(work: impl Future<Output = Result<u8, Failure>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => Err(Failure::system("the runtime cannot start", &error)),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            say(failure.message);
            ExitCode::from(failure.code)
        }
    }
}
