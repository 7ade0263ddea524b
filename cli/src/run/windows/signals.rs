//! The events that ask a program of the console to end: Ctrl-C and Ctrl-Break.

use std::io;

use tokio::select;
use tokio::signal::windows::{CtrlBreak, CtrlC, ctrl_break, ctrl_c};

/// A signal, by the number that the C runtime gives it.
#[derive(Clone, Copy)]
pub(crate) struct Signal(i32);

const INTERRUPT: Signal = Signal(2);
const BREAK: Signal = Signal(21);

impl Signal {
    pub(crate) fn as_raw(self) -> i32 {
        self.0
    }
}

/// A queue of signals; the same one twice before it is read counts once.
pub(crate) struct Signals {
    interrupts: CtrlC,
    breaks: CtrlBreak,
}

impl Signals {
    /// From now on they no longer end this process, they come here.
    pub(crate) fn ending() -> io::Result<Self> {
        Ok(Self { interrupts: ctrl_c()?, breaks: ctrl_break()? })
    }

    /// There are no others.
    #[allow(clippy::unnecessary_wraps)] // As its counterpart, which may fail.
    pub(crate) fn add_others(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Signal {
        select! {
            _ = self.interrupts.recv() => INTERRUPT,
            _ = self.breaks.recv() => BREAK,
        }
    }
}

/// The exit code that says that this signal ended the program, as shells have it.
pub(crate) fn exit_code(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}
