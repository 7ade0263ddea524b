//! Lock and command, from the command's start to its end.

use std::ffi::OsString;
use std::io;
use std::pin::pin;

use fencelock::Claim;
use rustix::process::Signal;
use tokio::select;
use tokio::signal::unix::{SignalKind, signal};

use super::clock;
use super::group::{Group, State};
use super::guardian::Guardian;
use super::signals::{Signals, exit_code};
use super::terminal::{Terminal, stop};
use super::verdict::{Margins, Verdict};
use crate::exit::{LOST, say};

pub(crate) struct Supervisor {
    claim: Claim,
    verdict: Verdict,
    // Declared, so dropped, in this order: the guardian is dismissed while its group's number is still taken.
    guardian: Guardian,
    group: Group,
    terminal: Option<Terminal>,
}

impl Supervisor {
    /// Starts the command under the lock, or as a job's run.
    pub(crate) fn start(claim: Claim, margins: Margins, command: &[OsString]) -> io::Result<Self> {
        let variables = [
            ("FENCELOCK_LOCK", claim.name().to_owned()),
            ("FENCELOCK_TOKEN", claim.token().to_string()),
        ];
        let mut terminal = Terminal::open();
        let verdict = Verdict::new(margins, clock::now(), claim.remaining());
        let (mut guardian, gate) = Guardian::start()?;
        let group = Group::start(command, variables, &gate)?;
        if let Some(terminal) = &mut terminal {
            terminal.lend(group.id());
        }
        guardian.protect(group.id(), verdict.last_moment());
        Ok(Self { claim, verdict, guardian, group, terminal })
    }

    /// Watches over the command until it has ended; answers its exit code, or that the lock was lost.
    pub(crate) async fn watch(mut self, signals: &mut Signals) -> io::Result<u8> {
        let mut children = signal(SignalKind::child())?;
        let mut lost = pin!(self.claim.lost());
        let code = loop {
            match self.group.look()? {
                State::Ended(code) => break code,
                State::Stopped(by) => self.stopped(by),
                State::Running => {}
            }
            let held = self.judge();
            let rest = tokio::time::sleep(self.verdict.rest(clock::now()));
            select! { biased;
                signal = signals.next() => self.forward(signal),
                _ = children.recv() => self.guardian.replace_if_dead()?,
                () = &mut lost, if held => {}
                () = rest => {}
            }
        };
        Ok(self.ended(code))
    }

    /// Ends the command when its lock ends. Answers whether the lock is held.
    fn judge(&mut self) -> bool {
        let held = loop {
            let held = self.claim.is_held();
            let left = held.then(|| self.claim.remaining());
            let Some(sentence) = self.verdict.look(clock::now(), left) else { break held };
            self.say(sentence);
            self.group.signal(sentence);
            // A stopped command hears nothing else.
            self.group.signal(Signal::CONT);
        };
        self.guardian.protect(self.group.id(), self.verdict.last_moment());
        held
    }

    fn say(&self, sentence: Signal) {
        let name = self.claim.name();
        if sentence == Signal::KILL {
            say(format_args!(
                "lost: the command did not end in time and was killed (name: {name})"
            ));
        } else if self.verdict.sudden() {
            say(format_args!(
                "lost: the lock is gone from the store; the command is told to end (name: {name})"
            ));
        } else {
            say(format_args!(
                "lost: the lease ends and is not renewed; the command is told to end (name: {name})"
            ));
        }
    }

    fn forward(&mut self, signal: Signal) {
        if signal == Signal::CONT
            && let Some(terminal) = &mut self.terminal
        {
            // `fg`, perhaps.
            terminal.lend(self.group.id());
        }
        self.group.signal(signal);
    }

    /// The command was stopped. If by job control, the shell waits for us to stop, too.
    fn stopped(&mut self, by: i32) {
        let lent = self.terminal.as_ref().is_some_and(Terminal::is_lent);
        let job_control = [Signal::TSTP, Signal::TTIN, Signal::TTOU];
        if !lent && !job_control.iter().any(|signal| signal.as_raw() == by) {
            return;
        }
        if let Some(terminal) = &mut self.terminal {
            terminal.take_back();
        }
        stop();
    }

    /// Whether the guardian was quicker than this process, which may have been frozen.
    fn ended_by_guardian(&self, code: u8) -> bool {
        code == exit_code(Signal::KILL.as_raw()) && clock::now() >= self.verdict.last_moment()
    }

    fn ended(mut self, code: u8) -> u8 {
        if let Some(terminal) = &mut self.terminal {
            terminal.take_back();
        }
        let lost = self.verdict.told() || !self.claim.is_held() || self.ended_by_guardian(code);
        drop(self.guardian);
        if !lost {
            self.group.let_go();
            return code;
        }
        // What it left behind must not outlive the lock.
        drop(self.group);
        if let Some(terminal) = &self.terminal {
            terminal.restore();
        }
        if !self.verdict.told() {
            let name = self.claim.name();
            say(format_args!("lost: the lock was lost before the command ended (name: {name})"));
        }
        LOST
    }
}
