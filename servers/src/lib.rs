//! Database servers of one's own, on free ports of the loopback and with data of their own, for tests and the bench. Whoever starts one
//! wants it to be there: where it cannot be started, these functions panic and say why.

pub mod ended;
pub mod mysql;
pub mod own;
pub mod postgres;

use std::path::PathBuf;
use std::process::{Command, Output};

/// How a server is started.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// Settings such as `fsync=on`, beside those that every server here has. The later one counts.
    pub settings: Vec<String>,
    /// Where the folder of its data is made. None: on a disk in memory, where there is one.
    pub room: Option<PathBuf>,
    /// A program with its words that becomes the server, such as `taskset -c 0`.
    pub behind: Vec<String>,
}

impl Start {
    /// With these settings.
    pub fn with(settings: &[&str]) -> Self {
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        Self { settings, ..Self::default() }
    }

    /// The command that becomes the server's program.
    fn command(&self, program: PathBuf) -> Command {
        let mut words = self.behind.iter();
        let Some(first) = words.next() else { return Command::new(program) };
        let mut command = Command::new(first);
        command.args(words).arg(program);
        command
    }
}

fn check(what: &str, output: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{what}: {}{}", text(&output.stdout), text(&output.stderr));
}
