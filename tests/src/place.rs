//! Where the SQLite tests happen: a directory with a database, and processes that use it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use fencelock::driver::sqlite::SqliteStore;
use fencelock::options::Options;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::ended;
use crate::peer::Peer;

/// A directory of a test's own, with the file the locks are in.
#[derive(Debug)]
pub struct Place {
    /// Gone with the value.
    pub directory: TempDir,
    /// The database.
    pub file: PathBuf,
}

impl Default for Place {
    fn default() -> Self {
        Self::new()
    }
}

impl Place {
    /// An empty one.
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("locks.db");
        Self { directory, file }
    }

    /// One more client of the file.
    pub async fn peer(&self) -> Peer<SqliteStore> {
        Peer::open(&self.file, &Options::default()).await.unwrap()
    }

    /// The file as anybody else sees it.
    pub fn plain(&self) -> Connection {
        Connection::open(&self.file).unwrap()
    }

    /// Fails if the file is damaged.
    pub fn check_integrity(&self) {
        let said: String =
            self.plain().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(said, "ok");
    }

    /// The sockets in the directory.
    pub fn sockets(&self) -> Vec<fs::Metadata> {
        let found = fs::read_dir(self.directory.path()).unwrap();
        found
            .map(|entry| entry.unwrap().metadata().unwrap())
            .filter(|m| m.file_type().is_socket())
            .collect()
    }
}

/// A process of its own; killed with -9 when dropped.
#[derive(Debug)]
pub struct Actor {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Actor {
    /// Starts it.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The next line it says.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Waits until it ends by itself.
    pub fn wait(&mut self) {
        let status = ended::status(&mut self.child);
        assert!(status.success(), "{status}");
    }

    /// Kills it, and waits until it is gone.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.end();
    }
}

/// Hears from each of these actors of so many holds of one lock, and makes sure that no two overlap and that tokens rise.
pub fn check_exclusion(actors: &mut [Actor], each: usize) {
    let mut holds: Vec<[u64; 3]> = Vec::new();
    for actor in actors {
        for _ in 0..each {
            let line = actor.line();
            let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
            holds.push(numbers.try_into().unwrap());
        }
    }
    holds.sort_unstable();
    for pair in holds.windows(2) {
        let ([first, _, end], [second, start, _]) = (pair[0], pair[1]);
        assert!(first < second, "a token was given twice: {first}");
        assert!(end <= start, "{second} began {} ns before {first} ended", end - start);
    }
}
