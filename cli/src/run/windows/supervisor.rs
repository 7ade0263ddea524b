//! Lock and command, from the command's start to its end.
//!
//! The command and all it starts are in a job object, which ends with this process: the system itself is the guardian of one
//! that is killed.

use std::ffi::OsString;
use std::io;
use std::pin::pin;
use std::process::ExitStatus;
use std::time::Instant;

use fencelock::Claim;
use process_wrap::tokio::{ChildWrapper, CommandWrap, JobObject, KillOnDrop};
use tokio::select;
use tokio::time::sleep;

use super::signals::{Signals, exit_code};
use crate::exit::{LOST, say};
use crate::run::refusal::refusal;
use crate::run::verdict::{Margins, Sentence, Verdict};
use crate::secret;

/// The status of a program that Ctrl-C has ended.
const INTERRUPTED: u32 = 0xC000_013A;

pub(crate) struct Supervisor {
    claim: Claim,
    verdict: Verdict,
    /// The zero of the verdict's times. This clock runs through suspend.
    begin: Instant,
    /// The command, or the exit code of one that was not started.
    command: Result<Box<dyn ChildWrapper>, u8>,
}

impl Supervisor {
    /// Starts the command under the lock, or as a job's run.
    #[allow(clippy::unused_async)] // As its counterpart, which waits for its guardian.
    pub(crate) async fn start(
        claim: Claim,
        margins: Margins,
        command: &[OsString],
    ) -> io::Result<Self> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let begin = Instant::now();
        let verdict = Verdict::new(margins, begin.elapsed(), claim.remaining());
        let command = CommandWrap::with_new(program, |it| {
            it.args(arguments)
                .env("FENCELOCK_LOCK", claim.name())
                .env("FENCELOCK_TOKEN", claim.token().to_string())
                .env_remove(secret::VARIABLE);
        })
        .wrap(KillOnDrop)
        .wrap(JobObject)
        .spawn()
        .map_err(|error| refusal(program, &error));
        Ok(Self { claim, verdict, begin, command })
    }

    /// Watches over the command until it has ended; answers its exit code, or that the lock was lost.
    pub(crate) async fn watch(self, signals: &mut Signals) -> io::Result<u8> {
        let Self { claim, mut verdict, begin, command } = self;
        let mut command = match command {
            Ok(command) => command,
            Err(code) => return Ok(code),
        };
        let mut lost = pin!(claim.lost());
        loop {
            let left = claim.is_held().then(|| claim.remaining());
            // Nothing asks a program of Windows to end: once the lock is lost there is nothing to wait for.
            // Ctrl-Break would need a process group of its own, in which Ctrl-C is ignored.
            if verdict.look(begin.elapsed(), left) == Some(Sentence::Kill) || left.is_none() {
                command.start_kill()?;
                say(format_args!(
                    "lost: the lock is lost or its lease ends; the command was killed (name: {})",
                    claim.name()
                ));
                return Ok(LOST);
            }
            select! { biased;
                // Of the command alone: the crate's own wait also waits for what is left in the background.
                status = command.inner_mut().wait() => return Ok(code_of(status?)),
                // The console tells the command itself.
                _ = signals.next() => {}
                () = &mut lost => {}
                () = sleep(verdict.rest(begin.elapsed())) => {}
            }
        }
    }
}

/// The exit code as shells have it. A larger one than they have is the largest.
fn code_of(status: ExitStatus) -> u8 {
    match status.code() {
        Some(code) if code.cast_unsigned() == INTERRUPTED => exit_code(2),
        code => code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX),
    }
}
