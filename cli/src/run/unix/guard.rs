//! The guardian's own process: it is in a process group of its own, blocks all signals that can be blocked and holds nothing
//! of what it inherited.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, read_dir};
use std::io::{self, PipeWriter, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::process::ExitCode;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal as Blocked};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::select;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use super::clock;
use super::descendants::{self, Remembered};
use super::group::{Group, GroupState};
use super::report::Report;

/// The argument that makes the program a guardian, and those that say of which kind.
pub(super) const GUARD: &str = "__guard";
/// One that starts the command: the rest is that.
pub(super) const START: &str = "start";
/// One that comes later: the rest are the supervisor, the command and an order.
pub(super) const REPLACE: &str = "replace";
/// No rest is longer: timers stand still while the machine is suspended.
const LONGEST_REST: Duration = Duration::from_secs(1);
/// How often one that is no ancestor of the command looks who descends from its supervisor.
const LOOK: Duration = Duration::from_millis(100);

struct Guard {
    heard: File,
    orders: Orders,
    told: File,
    group: Group,
    /// Whether the command's end is told, or is not ours to tell.
    ended: bool,
    /// The pipe that lets the command run; `None` once it does.
    gate: Option<PipeWriter>,
    /// Of one that is no ancestor of the command.
    remembered: Option<Remembered>,
}

/// Guards until there is nothing left to guard.
pub(super) fn guard(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match Guard::begin(arguments) {
        Some(guard) => guard.watch(),
        None => ExitCode::FAILURE,
    }
}

impl Guard {
    fn begin(mut arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut descriptor = || arguments.next()?.to_str()?.parse::<i32>().ok();
        let (heard, told) = (descriptor()?, descriptor()?);
        let heard = inherited(heard, File::options().read(true)).ok()?;
        let mut told = inherited(told, File::options().write(true)).ok()?;
        // A supervisor that does not read must not hold its guardian up.
        fcntl_setfl(&told, OFlags::NONBLOCK).ok()?;
        descendants::adopt().ok()?;
        let orders = |newest| Orders { text: Vec::new(), newest };
        let mut supervisor = None;
        let mut guard = if arguments.next()? == START {
            let (gate, opener) = io::pipe().ok()?;
            let group = match Group::start(arguments, &gate) {
                Ok(group) => group,
                Err(error) => {
                    let reason = error.raw_os_error().unwrap_or_default();
                    let _ = writeln!(told, "{}", Report::Refused(reason));
                    return None;
                }
            };
            let (gate, remembered) = (Some(opener), None);
            Self { heard, told, orders: orders(None), group, ended: false, gate, remembered }
        } else {
            let mut number = || Pid::from_raw(arguments.next()?.to_str()?.parse().ok()?);
            supervisor = number();
            let group = Group::of(number()?);
            let orders = orders(parse(arguments.next()?.as_encoded_bytes()));
            Self { heard, told, orders, group, ended: true, gate: None, remembered: None }
        };
        // Whoever ends or stops this would unguard the command. Its end is to be heard. Not before the command is started,
        // which would inherit it.
        let mut deaf = SigSet::all();
        deaf.remove(Blocked::SIGCHLD);
        let _ = deaf.thread_block();
        let _ = guard.close_inherited();
        // Handles of its own come after that.
        guard.remembered = supervisor.and_then(Remembered::of_parent);
        // A working directory keeps a file system from being unmounted. It is left last: this shows that all else is done.
        let _ = std::env::set_current_dir("/");
        if guard.gate.is_some() {
            writeln!(guard.told, "{}", Report::Started(guard.group.id())).ok()?;
        }
        Some(guard)
    }

    /// Closes the descriptors that a shell or a job server left open for the command, which must end with the command.
    fn close_inherited(&self) -> io::Result<()> {
        let nothing = File::options().read(true).write(true).open("/dev/null")?;
        dup2_stdin(&nothing)?;
        dup2_stdout(&nothing)?;
        dup2_stderr(&nothing)?;
        let mut own = vec![0, 1, 2, self.heard.as_raw_fd(), self.told.as_raw_fd()];
        own.extend(self.gate.as_ref().map(PipeWriter::as_raw_fd));
        drop(nothing);
        let open = read_dir("/dev/fd")?;
        let open: Vec<i32> =
            open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
        for descriptor in open.into_iter().filter(|descriptor| !own.contains(descriptor)) {
            let _ = nix::unistd::close(descriptor);
        }
        Ok(())
    }

    fn watch(mut self) -> ExitCode {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let watched = runtime.and_then(|runtime| runtime.block_on(self.until_due()));
        // Also where the system refuses what watching takes.
        self.end();
        watched.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
    }

    /// Comes back at the supervisor's end, or when the last moment has come.
    async fn until_due(&mut self) -> io::Result<()> {
        let mut children = signal(SignalKind::child())?;
        let heard = OwnedFd::from(self.heard.try_clone()?);
        let mut heard = pipe::Receiver::from_owned_fd(heard)?;
        let mut buffer = [0; 4096];
        loop {
            self.tell();
            if let Some(remembered) = &mut self.remembered {
                remembered.look();
            }
            let rest = if self.remembered.is_some() { LOOK } else { LONGEST_REST };
            let rest = match self.orders.newest {
                Some(until) => {
                    self.open_gate();
                    let left = until.saturating_sub(clock::now());
                    if left.is_zero() {
                        return Ok(());
                    }
                    left.min(rest)
                }
                None => rest,
            };
            select! { biased;
                length = heard.read(&mut buffer) => match length? {
                    0 => return Ok(()),
                    length => self.orders.take(&buffer[..length]),
                },
                _ = children.recv() => {}
                () = sleep(rest) => {}
            }
        }
    }

    /// Lets the command go.
    fn open_gate(&mut self) {
        if let Some(mut gate) = self.gate.take() {
            let _ = gate.write_all(b"!");
        }
    }

    /// Tells what became of the command since the last look.
    fn tell(&mut self) {
        if !self.ended {
            let report = match self.group.look() {
                Ok(GroupState::Stopped(by)) => Some(Report::Stopped(by)),
                Ok(GroupState::Ended(code)) => Some(Report::Ended(code)),
                _ => None,
            };
            self.ended = matches!(report, Some(Report::Ended(_)));
            if let Some(report) = report {
                let _ = writeln!(self.told, "{report}");
            }
        }
        descendants::reap(&[self.group.id()]);
    }

    /// Kills the command and all it started.
    fn end(&mut self) {
        self.group.signal(Signal::KILL);
        if let Some(remembered) = &mut self.remembered {
            remembered.end();
        }
        descendants::end(&[self.group.id()], None);
    }
}

/// An inherited descriptor, opened anew by its name, so that the command does not inherit it.
fn inherited(descriptor: i32, how: &OpenOptions) -> io::Result<File> {
    let file = how.open(format!("/dev/fd/{descriptor}"))?;
    nix::unistd::close(descriptor)?;
    Ok(file)
}

struct Orders {
    /// The bytes that were read and are no whole line yet.
    text: Vec<u8>,
    newest: Option<Duration>,
}

impl Orders {
    fn take(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
        while let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.text.drain(..=end).collect();
            self.newest = parse(&line).or(self.newest);
        }
    }
}

fn parse(line: &[u8]) -> Option<Duration> {
    Some(Duration::from_nanos(str::from_utf8(line).ok()?.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_whole_order_counts() {
        let mut orders = Orders { text: Vec::new(), newest: None };
        orders.take(b"15\n2");
        assert_eq!(orders.newest, Some(Duration::from_nanos(15)));
        orders.take(b"5\nrubbish\n");
        assert_eq!(orders.newest, Some(Duration::from_nanos(25)));
    }
}
