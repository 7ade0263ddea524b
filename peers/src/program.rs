//! Programs, and where they are built.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Something that can be run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Program {
    /// The file.
    pub path: PathBuf,
    /// The words it is always given first.
    pub words: Vec<String>,
}

impl Program {
    /// A program that needs no words.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), words: Vec::new() }
    }

    /// The same with one more word.
    #[must_use]
    pub fn with(mut self, word: impl AsRef<Path>) -> Self {
        self.words.push(word.as_ref().to_string_lossy().into_owned());
        self
    }

    /// A process of it, to be started.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.words);
        command
    }
}

/// The build's target directory, of a program that stands in `<target>/<profile>`.
pub fn target(program: &Path) -> PathBuf {
    program.ancestors().nth(2).map_or_else(|| "target".into(), Path::to_owned)
}
