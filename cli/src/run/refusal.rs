//! A command that the system does not start.

use std::ffi::OsStr;
use std::io::{Error, ErrorKind};

use crate::exit::say;

const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Says why, and answers the exit code that shells have for it.
pub(super) fn refusal(program: &OsStr, error: &Error) -> u8 {
    let program = program.to_string_lossy();
    if error.kind() == ErrorKind::NotFound {
        say(format_args!("there is no command `{program}`; check its name and PATH"));
        return NOT_FOUND;
    }
    say(format_args!("`{program}` cannot be executed: {error}"));
    NOT_EXECUTABLE
}
