//! The guardian, as its supervisor sees it: a process of its own that starts the command and ends it when its supervisor is
//! killed with `kill -9`, or is frozen beyond the end of the lease.
//!
//! It hears orders through a pipe, one line each: the last moment of the lease. Through another one it tells what becomes of
//! the command, whose parent it is. The pipe's end is the supervisor's end. It stands between supervisor and command, so that
//! every descendant of the command stays a descendant of whichever of both is killed last.

use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, getpid};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::net::unix::pipe;

use super::guard::{GUARD, REPLACE, START};
use super::itself;
use super::report::Report;
use crate::secret;

/// The supervisor's side. Once it is dropped, the guardian ends the command, unless it is dismissed.
pub(crate) struct Guardian {
    process: Child,
    orders: PipeWriter,
    reports: Lines<BufReader<pipe::Receiver>>,
    /// The command.
    leader: Pid,
    /// The newest order.
    order: String,
}

impl Guardian {
    /// Starts one and has it start the command with these variables, which does not run before the first order.
    pub(crate) async fn start(
        command: &[OsString],
        variables: [(&str, String); 2],
    ) -> io::Result<Self> {
        let mut guardian =
            Self::spawn(START.as_ref(), command.iter().map(OsString::as_os_str), |it| {
                it.envs(variables).env_remove(secret::VARIABLE)
            })?;
        match guardian.report().await {
            Some(Report::Started(leader)) => Ok(Self { leader, ..guardian }),
            Some(Report::Refused(error)) => Err(io::Error::from_raw_os_error(error)),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn spawn<'a>(
        part: &OsStr,
        arguments: impl Iterator<Item = &'a OsStr>,
        set: impl FnOnce(&mut Command) -> &mut Command,
    ) -> io::Result<Self> {
        let (heard, orders) = io::pipe()?;
        let (reports, told) = io::pipe()?;
        // The only descriptors that are to be inherited by the only process that is started from here on.
        fcntl_setfd(&heard, FdFlags::empty())?;
        fcntl_setfd(&told, FdFlags::empty())?;
        // A guardian that does not read must not hold its supervisor up.
        fcntl_setfl(&orders, OFlags::NONBLOCK)?;
        let numbers = [heard.as_raw_fd(), told.as_raw_fd()].map(|number| number.to_string());
        let mut program = Command::new(itself());
        program.arg0("fencelock").arg(GUARD).args(numbers).arg(part).args(arguments);
        let process = set(&mut program).process_group(0).spawn()?;
        let reports = receiver(reports)?;
        Ok(Self { process, orders, reports, leader: getpid(), order: String::new() })
    }

    /// The command.
    pub(crate) fn leader(&self) -> Pid {
        self.leader
    }

    /// Its own number.
    pub(crate) fn id(&self) -> Pid {
        Pid::from_child(&self.process)
    }

    /// The command may live until this moment of [`clock::now`](super::clock::now).
    pub(crate) fn protect(&mut self, until: Duration) {
        let order = format!("{}\n", until.as_nanos());
        if order != self.order {
            // It may be dead: `replace` gives the order to the next one.
            let _ = self.orders.write_all(order.as_bytes());
            self.order = order;
        }
    }

    /// The next report on the command; `None` if somebody has killed the guardian.
    pub(crate) async fn report(&mut self) -> Option<Report> {
        self.reports.next_line().await.ok()?.and_then(|line| line.parse().ok())
    }

    /// Ends it. It is not asked but killed, while the pipe is open: it cannot take this for the supervisor's end. What it
    /// was the parent of are the supervisor's own children then.
    pub(crate) fn dismiss(&mut self) -> io::Result<()> {
        let _ = self.process.kill();
        self.process.wait().map(drop)
    }

    /// Whether somebody has killed it.
    pub(crate) fn has_ended(&mut self) -> io::Result<bool> {
        Ok(self.process.try_wait()?.is_some())
    }

    /// Whether it has ended the command and then itself, at the last moment it knew of.
    pub(crate) fn has_struck(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(Some(status)) if status.success())
    }

    /// Starts another one instead of one that has ended.
    pub(crate) fn replace(&mut self) -> io::Result<()> {
        let numbers = [getpid(), self.leader].map(|pid| pid.as_raw_nonzero().to_string());
        let arguments = [&*numbers[0], &*numbers[1], self.order.trim()].map(OsStr::new);
        let next = Self::spawn(REPLACE.as_ref(), arguments.into_iter(), Command::env_clear)?;
        *self = Self { leader: self.leader, order: self.order.clone(), ..next };
        Ok(())
    }
}

fn receiver(reports: PipeReader) -> io::Result<Lines<BufReader<pipe::Receiver>>> {
    let reports = pipe::Receiver::from_owned_fd(OwnedFd::from(reports))?;
    Ok(BufReader::new(reports).lines())
}
