//! The terminal, lent to the command while it runs.
//!
//! The command has a process group of its own. A group that is not the terminal's foreground one cannot read from it, so
//! the foreground is lent to the command, as a shell does: Ctrl-C and Ctrl-Z go to it directly. When it stops, we stop as
//! well, so that the shell gets its prompt; when we are continued, so is it. A stopped supervisor does not renew: a
//! command left stopped longer than the lease is killed.

use nix::sys::signal::{SigSet, Signal as Blocked};
use rustix::process::{Pid, Signal, getpgrp, getpid, kill_process};
use rustix::stdio::stdin;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

/// The terminal on standard input, if that is the one that controls us.
pub(crate) struct Terminal {
    own: Pid,
    lent: bool,
    settings: Option<Termios>,
}

impl Terminal {
    /// The terminal, if there is one.
    pub(crate) fn open() -> Option<Self> {
        tcgetpgrp(stdin()).ok()?;
        // To take the terminal back, a background group must not be stopped for touching it.
        let mut touching = SigSet::empty();
        touching.add(Blocked::SIGTTOU);
        touching.thread_block().ok()?;
        Some(Self { own: getpgrp(), lent: false, settings: tcgetattr(stdin()).ok() })
    }

    /// Lends it to the group, if it is ours to lend: a background job has none.
    pub(crate) fn lend(&mut self, group: Pid) {
        if tcgetpgrp(stdin()) == Ok(self.own) {
            self.lent = tcsetpgrp(stdin(), group).is_ok();
        }
    }

    /// Takes it back, if it is lent.
    pub(crate) fn take_back(&mut self) {
        if std::mem::take(&mut self.lent) {
            let _ = tcsetpgrp(stdin(), self.own);
        }
    }

    /// Sets it as it was, after a command that could not.
    pub(crate) fn restore(&self) {
        if let Some(settings) = &self.settings {
            let _ = tcsetattr(stdin(), OptionalActions::Now, settings);
        }
    }

    /// Whether the command has it.
    pub(crate) fn is_lent(&self) -> bool {
        self.lent
    }
}

/// Stops this process until somebody continues it.
pub(crate) fn stop() {
    let _ = kill_process(getpid(), Signal::STOP);
}
