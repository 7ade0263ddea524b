//! Signals as they come, but for those the caller had ignored (`nohup`): they stay ignored.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use rustix::process::Signal;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// Those that ask a program to end.
pub(super) const ENDING: [Signal; 4] = [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT];
/// Those a command hears of besides, if they are sent to us. CONT and TSTP are the shell's job control.
const OTHERS: [Signal; 5] = [Signal::USR1, Signal::USR2, Signal::WINCH, Signal::CONT, Signal::TSTP];

/// A queue of signals; the same one twice before it is read counts once.
pub(crate) struct Signals {
    streams: Vec<(Signal, Stream)>,
}

impl Signals {
    /// From now on the signals that ask to end no longer end this process, they come here.
    pub(crate) fn ending() -> io::Result<Self> {
        let mut signals = Self { streams: Vec::new() };
        signals.add(&ENDING)?;
        Ok(signals)
    }

    /// And so do the others.
    pub(crate) fn add_others(&mut self) -> io::Result<()> {
        self.add(&OTHERS)
    }

    fn add(&mut self, wanted: &[Signal]) -> io::Result<()> {
        let ignored = ignored();
        for &one in wanted.iter().filter(|one| ignored >> (one.as_raw() - 1) & 1 == 0) {
            self.streams.push((one, signal(SignalKind::from_raw(one.as_raw()))?));
        }
        Ok(())
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            let mut streams = self.streams.iter_mut();
            let came = streams.find_map(|(one, stream)| {
                matches!(stream.poll_recv(context), Poll::Ready(Some(()))).then_some(*one)
            });
            came.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// The exit code that says that this signal ended the program, as shells have it.
pub(crate) fn exit_code(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// The signals this process was started to ignore, a bit each. Where the system does not tell: none.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
