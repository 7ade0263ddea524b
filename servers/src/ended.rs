//! Waiting for a process, with an end: one that hangs fails its test and is killed, instead of holding the whole run.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long anything that a test starts may take to end by itself.
pub const WITHIN: Duration = Duration::from_secs(300);
/// How often is looked.
const LOOK: Duration = Duration::from_millis(2);

/// Waits for the end of a process.
///
/// # Panics
///
/// If it has not ended after [`WITHIN`].
pub fn status(child: &mut Child) -> ExitStatus {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return status;
        }
        if begin.elapsed() > WITHIN {
            let _ = child.kill();
            let _ = child.wait();
            panic!("process {} did not end within {WITHIN:?} and was killed", child.id());
        }
        thread::sleep(LOOK);
    }
}

/// Runs a command to its end, and answers what it has printed.
///
/// # Panics
///
/// If it cannot be started, or has not ended after [`WITHIN`].
pub fn output(command: &mut Command) -> Output {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (stdout, stderr) = (all(child.stdout.take()), all(child.stderr.take()));
    let status = status(&mut child);
    let read =
        |reader: thread::JoinHandle<Vec<u8>>| reader.join().expect("a reader does not panic");
    Output { status, stdout: read(stdout), stderr: read(stderr) }
}

/// Reads a pipe to its end, beside the process.
fn all(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    #[test]
    fn what_a_command_prints_and_its_end_are_answered() {
        let output =
            super::output(Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]));
        assert_eq!(output.status.code(), Some(3));
        assert_eq!((&*output.stdout, &*output.stderr), (&b"out\n"[..], &b"err\n"[..]));
    }
}
