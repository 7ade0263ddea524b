//! The guardian: a process of its own that kills the command's group when its supervisor is killed with `kill -9`, or is
//! frozen beyond the end of the lease.
//!
//! It hears orders through a pipe, one line each: the group and the last moment of the lease. One that replaces another
//! has its first order as an argument. The pipe's end is the supervisor's end. It is in a process group of its own, blocks all signals and holds nothing of what it inherited.

use std::ffi::OsString;
use std::fs::read_dir;
use std::io::{self, PipeReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::time::Duration;

use nix::sys::signal::SigSet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

use super::{clock, itself};

/// The argument that makes the program a guardian.
pub(super) const GUARD: &str = "__guard";
/// No rest is longer: timers stand still while the machine is suspended.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// The supervisor's side. Dropping it dismisses the guardian, who then does nothing more.
pub(crate) struct Guardian {
    process: Child,
    orders: ChildStdin,
    /// The newest order.
    order: String,
}

impl Guardian {
    /// Starts one. Through the pipe comes a byte when it guards what it was first ordered to.
    pub(crate) fn start() -> io::Result<(Self, PipeReader)> {
        Self::start_with(String::new())
    }

    fn start_with(order: String) -> io::Result<(Self, PipeReader)> {
        let (gate, opener) = io::pipe()?;
        let mut process = Command::new(itself())
            .arg0("fencelock")
            .arg(GUARD)
            .arg(order.trim())
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(opener)
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let orders = process.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        // A guardian that does not read must not hold its supervisor up.
        fcntl_setfl(&orders, OFlags::NONBLOCK)?;
        Ok((Self { process, orders, order }, gate))
    }

    /// The group may live until this moment of [`clock::now`].
    pub(crate) fn protect(&mut self, group: Pid, until: Duration) {
        let order = format!("{} {}\n", group.as_raw_nonzero(), until.as_nanos());
        if order != self.order {
            // It may be dead: `replace_if_dead` gives the order to the next one.
            let _ = self.orders.write_all(order.as_bytes());
            self.order = order;
        }
    }

    /// Somebody may have killed it.
    pub(crate) fn replace_if_dead(&mut self) -> io::Result<()> {
        if self.process.try_wait()?.is_some() {
            let (next, _gate) = Self::start_with(self.order.clone())?;
            *self = next;
        }
        Ok(())
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        // Not asked but killed, while the pipe is open: it cannot take this for the supervisor's end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The guardian's side.
pub(super) fn guard(order: Option<OsString>) -> ExitCode {
    // Whoever ends or stops this would unguard the command.
    let _ = SigSet::all().thread_block();
    close_inherited();
    let order = order.and_then(|order| parse(order.as_encoded_bytes()));
    let mut orders = Orders { text: Vec::new(), newest: order };
    let mut opened = false;
    while orders.hear() {
        let Some((group, until)) = orders.newest else { continue };
        if !opened {
            opened = true;
            open_gate();
        }
        if clock::now() >= until {
            kill(group);
            return ExitCode::SUCCESS;
        }
    }
    if let Some((group, _)) = orders.newest {
        kill(group);
    }
    ExitCode::SUCCESS
}

fn kill(group: Pid) {
    let _ = kill_process_group(group, Signal::KILL);
}

/// Lets the command go.
fn open_gate() {
    let _ = io::stdout().write_all(b"!").and_then(|()| io::stdout().flush());
    let _ = nix::unistd::close(1);
}

/// What a shell or a job server left open for the command must end with the command.
fn close_inherited() {
    let Ok(open) = read_dir("/dev/fd") else { return };
    let open: Vec<i32> =
        open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        let _ = nix::unistd::close(descriptor);
    }
}

struct Orders {
    /// What was read and is no whole line yet.
    text: Vec<u8>,
    newest: Option<(Pid, Duration)>,
}

impl Orders {
    /// Waits until there is something new or the last moment has come. `false`: there will be no more orders.
    fn hear(&mut self) -> bool {
        let stdin = rustix::stdio::stdin();
        let rest = match self.newest {
            Some((_, until)) => until.saturating_sub(clock::now()).min(LONGEST_REST),
            None => LONGEST_REST,
        };
        let rest =
            Timespec { tv_sec: rest.as_secs().cast_signed(), tv_nsec: rest.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&rest)) {
            Ok(0) | Err(Errno::INTR) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
        let mut buffer = [0; 4096];
        match rustix::io::read(stdin, &mut buffer) {
            Ok(0) => false,
            Ok(length) => {
                self.take(&buffer[..length]);
                true
            }
            Err(error) => error == Errno::INTR,
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
        while let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.text.drain(..=end).collect();
            self.newest = parse(&line).or(self.newest);
        }
    }
}

fn parse(line: &[u8]) -> Option<(Pid, Duration)> {
    let (group, until) = std::str::from_utf8(line).ok()?.trim().split_once(' ')?;
    Some((Pid::from_raw(group.parse().ok()?)?, Duration::from_nanos(until.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_whole_order_counts() {
        let mut orders = Orders { text: Vec::new(), newest: None };
        orders.take(b"4711 15\n47");
        assert_eq!(orders.newest, Some((Pid::from_raw(4711).unwrap(), Duration::from_nanos(15))));
        orders.take(b"11 25\nrubbish\n");
        assert_eq!(orders.newest, Some((Pid::from_raw(4711).unwrap(), Duration::from_nanos(25))));
    }
}
