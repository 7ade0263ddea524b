//! Lock and command, from the command's start to its end.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::pin::pin;
use std::time::Duration;

use fencelock::Claim;
use rustix::process::{Pid, Signal};
use tokio::select;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use super::group::{Group, GroupState};
use super::guardian::Guardian;
use super::report::Report;
use super::signals::{ENDING, Signals, exit_code};
use super::terminal::{Terminal, stop};
use super::{clock, descendants};
use crate::exit::{LOST, say};
use crate::run::verdict::{Margins, Sentence, Verdict};

/// How often it looks whether those that were told to end have, when the command itself has.
const LOOK: Duration = Duration::from_millis(20);
/// How long the lock stays for those whose command was asked to end, and has, while they have not.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Supervisor {
    claim: Claim,
    verdict: Verdict,
    guardian: Guardian,
    /// Whether the guardian reports: another one that replaces it is not the command's parent, and has nothing to tell.
    reports: bool,
    group: Group,
    /// The exit code of the command, once it has ended.
    ended: Option<u8>,
    /// A signal has asked the command to end, and all it started.
    asked: Option<Signal>,
    /// Until when the lock stays for those that are left then.
    patience: Option<Duration>,
    /// Those that cannot be killed, as far as that was said.
    refused: HashSet<Pid>,
    terminal: Option<Terminal>,
    children: Stream,
}

impl Supervisor {
    /// Starts the command under the lock, or as a job's run.
    pub(crate) async fn start(
        claim: Claim,
        margins: Margins,
        command: &[OsString],
    ) -> io::Result<Self> {
        let variables = [
            ("FENCELOCK_LOCK", claim.name().to_owned()),
            ("FENCELOCK_TOKEN", claim.token().to_string()),
        ];
        let mut terminal = Terminal::open();
        let verdict = Verdict::new(margins, clock::now(), claim.remaining());
        // Before anything is started: a caller may have had us ignore the end of children, which is inherited.
        let children = signal(SignalKind::child())?;
        descendants::adopt()?;
        let mut guardian = Guardian::start(command, variables).await?;
        let group = Group::of(guardian.leader());
        if let Some(terminal) = &mut terminal {
            terminal.lend(group.id());
        }
        guardian.protect(verdict.last_moment());
        let (reports, refused) = (true, HashSet::new());
        let (ended, asked, patience) = (None, None, None);
        Ok(Self {
            claim,
            verdict,
            guardian,
            reports,
            group,
            ended,
            asked,
            patience,
            refused,
            terminal,
            children,
        })
    }

    /// Watches over the command until it has ended; answers its exit code, or that the lock was lost.
    pub(crate) async fn watch(mut self, signals: &mut Signals) -> io::Result<u8> {
        match self.until_over(signals).await {
            Ok(code) => Ok(self.over(code)),
            Err(error) => {
                self.end();
                Err(error)
            }
        }
    }

    async fn until_over(&mut self, signals: &mut Signals) -> io::Result<u8> {
        let mut lost = pin!(self.claim.lost());
        loop {
            if !self.reports && self.ended.is_none() {
                self.take(self.group.look()?);
            }
            if let Some(code) = self.ended
                && !self.verdict.told()
                && self.has_nobody_to_wait_for()
            {
                return Ok(code);
            }
            let held = self.judge();
            let mut rest = self.verdict.rest(clock::now());
            if let Some(code) = self.ended {
                // The others that were told to end have their time, too.
                if self.verdict.killed() || self.is_alone() {
                    return Ok(code);
                }
                rest = rest.min(LOOK);
            }
            select! { biased;
                signal = signals.next() => self.forward(signal),
                report = self.guardian.report(), if self.reports => self.hear(report)?,
                _ = self.children.recv() => self.look_after_guardian()?,
                () = &mut lost, if held => {}
                () = tokio::time::sleep(rest) => {}
            }
        }
    }

    /// Whether the lock may end with the command. What it left in the background goes on by itself; but where the command was
    /// asked to end, what it started was asked, too, and works until it has ended.
    fn has_nobody_to_wait_for(&mut self) -> bool {
        let Some(signal) = self.asked else { return true };
        let now = clock::now();
        let patience = *self.patience.get_or_insert(now + PATIENCE);
        if self.is_alone() {
            return true;
        }
        if now < patience {
            return false;
        }
        // What was started to survive a hang-up goes on.
        if signal != Signal::HUP {
            self.kill(Some(self.guardian.id()));
        }
        true
    }

    fn hear(&mut self, report: Option<Report>) -> io::Result<()> {
        match report {
            Some(Report::Ended(code)) => self.take(GroupState::Ended(code)),
            Some(Report::Stopped(by)) => self.take(GroupState::Stopped(by)),
            Some(_) => {}
            None => self.guardian_is_gone()?,
        }
        Ok(())
    }

    fn take(&mut self, state: GroupState) {
        match state {
            GroupState::Ended(code) => {
                self.ended = Some(code);
                // Somebody else may have asked it: a terminal does, and reaches its group only.
                let by = ENDING.into_iter().find(|signal| exit_code(signal.as_raw()) == code);
                if let (Some(signal), None) = (by, self.asked) {
                    self.ask(signal);
                }
            }
            GroupState::Stopped(by) => self.stopped(by),
            GroupState::Running => {}
        }
    }

    /// It was killed, or has done its work while this process was frozen. The command is this process's child from now on.
    fn guardian_is_gone(&mut self) -> io::Result<()> {
        self.reports = false;
        if !descendants::ADOPTS {
            // There would be nobody to tell when the command ends.
            self.group.signal(Signal::KILL);
            self.take(GroupState::Ended(exit_code(Signal::KILL.as_raw())));
            return Ok(());
        }
        self.guardian.dismiss()?;
        self.take(self.group.look()?);
        if self.ended.is_none() { self.guardian.replace() } else { Ok(()) }
    }

    /// Something that was started or adopted has ended.
    fn look_after_guardian(&mut self) -> io::Result<()> {
        if self.reports {
            return Ok(());
        }
        if self.ended.is_none() && self.guardian.has_ended()? {
            self.guardian.replace()?;
        }
        descendants::reap(&[self.group.id(), self.guardian.id()]);
        Ok(())
    }

    /// Ends the command when its lock ends. Answers whether the lock is held.
    fn judge(&mut self) -> bool {
        let held = loop {
            let held = self.claim.is_held();
            let left = held.then(|| self.claim.remaining());
            let Some(sentence) = self.verdict.look(clock::now(), left) else { break held };
            self.say(sentence);
            match sentence {
                Sentence::Kill => self.kill(Some(self.guardian.id())),
                Sentence::Terminate => {
                    descendants::tell(Signal::TERM, &self.group, self.guardian.id());
                }
            }
        };
        self.guardian.protect(self.verdict.last_moment());
        held
    }

    /// Kills the command and all it started, but not the guardian; comes back when they are dead.
    fn kill(&mut self, guardian: Option<Pid>) {
        self.group.signal(Signal::KILL);
        let kept: Vec<Pid> = [self.group.id()].into_iter().chain(guardian).collect();
        for pid in descendants::end(&kept, guardian) {
            if self.refused.insert(pid) {
                let (pid, name) = (pid.as_raw_nonzero(), self.claim.name());
                say(format_args!(
                    "lost: a process, pid {pid}, cannot be killed and goes on without the lock (name: {name})"
                ));
            }
        }
    }

    /// Whether nobody is left of those the command started.
    fn is_alone(&self) -> bool {
        let guardian = self.guardian.id();
        descendants::is_alone(&[self.group.id(), guardian], guardian)
    }

    fn say(&self, sentence: Sentence) {
        let name = self.claim.name();
        if sentence == Sentence::Kill {
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
        if ENDING.contains(&signal) { self.ask(signal) } else { self.group.signal(signal) }
    }

    /// Asks the command and all it started to end.
    fn ask(&mut self, signal: Signal) {
        self.asked = Some(signal);
        descendants::tell(signal, &self.group, self.guardian.id());
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

    /// Whether the guardian was quicker than this process, which may have been frozen, and before it could tell of a renewal.
    fn ended_by_guardian(&mut self, code: u8) -> bool {
        let late = clock::now() >= self.verdict.last_moment() || self.guardian.has_struck();
        late && code == exit_code(Signal::KILL.as_raw())
    }

    fn over(mut self, code: u8) -> u8 {
        if let Some(terminal) = &mut self.terminal {
            terminal.take_back();
        }
        let lost = self.verdict.told() || !self.claim.is_held() || self.ended_by_guardian(code);
        if !lost {
            // The command's number is still taken: nobody has taken note of its end.
            let _ = self.guardian.dismiss();
            self.group.let_go();
            return code;
        }
        self.end();
        if let Some(terminal) = &self.terminal {
            terminal.restore();
        }
        if !self.verdict.told() {
            let name = self.claim.name();
            say(format_args!("lost: the lock was lost before the command ended (name: {name})"));
        }
        LOST
    }

    /// Ends what is left of the command and all it started.
    fn end(&mut self) {
        // Until the guardian is gone it helps if this process is frozen.
        self.kill(Some(self.guardian.id()));
        let _ = self.guardian.dismiss();
        // Whatever was missed is this process's own now.
        self.kill(None);
        self.group.let_go();
    }
}
