//! Cores that do not halt. One that halts is given back to whoever runs a virtual machine; to get it back takes some
//! microseconds on a good day and milliseconds on a bad one, at every wake-up of whoever is measured.

use std::hint::black_box;
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::getppid;

use crate::machine::{CLIENT, SERVER, pinned};

/// The first word of this program's own, for a process that keeps a core awake.
pub(crate) const WORD: &str = "awake";

/// One process on each core that works when nobody else does: everybody goes before it, at once (`SCHED_IDLE`).
pub(crate) struct Awake(Vec<Child>);

impl Awake {
    /// None where `chrt` is not installed.
    pub(crate) fn start(program: &Path) -> Self {
        let spinner = |core| {
            let mut command = pinned(core, Path::new("chrt"));
            command.args(["--idle", "0"]).arg(program).arg(WORD);
            command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().ok()
        };
        Self([SERVER, CLIENT].into_iter().filter_map(spinner).collect())
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        for spinner in &mut self.0 {
            let _ = spinner.kill();
            let _ = spinner.wait();
        }
    }
}

/// Works for nothing, as long as the process that wanted it lives.
pub(crate) fn spin() {
    let parent = getppid();
    while getppid() == parent {
        for count in 0..1_000_000_u32 {
            black_box(count);
        }
    }
}
