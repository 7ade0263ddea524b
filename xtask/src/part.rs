//! What a part of `cargo test-all` is made of. The parts themselves stand in `table.rs`.

use std::path::PathBuf;
use std::time::Duration;

use crate::need::Need;
use crate::versions::Server;

/// One row of the final table.
pub(crate) struct Part {
    /// What `--only` selects it by.
    pub name: &'static str,
    /// Other words `--only` selects it by: a store, a subject.
    pub tags: &'static [&'static str],
    /// What it shows, in a line.
    pub shows: &'static str,
    /// What has to be on the machine, beside the Rust toolchain.
    pub needs: &'static [Need],
    /// What it can do without, showing less: its tests say what they skipped.
    pub wants: &'static [Need],
    /// One after the other; the first that fails ends the part.
    pub steps: &'static [Step],
    /// In place of `steps` under `--full`; empty: the same.
    pub full: &'static [Step],
}

/// One command or check.
pub(crate) enum Step {
    /// `cargo` with these arguments; `cargo test` has to run a test, and the last line it prints has to contain each of the `expect`ed texts.
    Cargo { args: &'static [&'static str], env: Env, expect: &'static [&'static str] },
    /// `cargo test` over the workspace, so that all parts share one build; fails if it ran no test.
    Tests(Targets),
    /// The same on another server, which a script has brought: these words follow `cargo test --workspace`.
    On(&'static Server, &'static [&'static str]),
    /// Several lists of steps, each after the other in itself and all of them side by side: for those that mostly wait.
    Beside(&'static [&'static [Step]]),
    /// Builds a test target, and with it the programs of its package, as every other test of the workspace is built: a
    /// program that is built by itself has dependencies with other features, and so builds them all again.
    Build(&'static str),
    /// A program that was built like that, and its arguments.
    Program(&'static str, &'static [&'static str]),
    /// A script of the project. Exit code 2 means that the machine lacks something: the part is skipped.
    Script(&'static str),
    /// A script that runs tests with another language's own tool, which tells how many there were.
    Suite(&'static str),
    /// A check written here. Returns what it saw.
    Check(fn(&Site) -> Result<String, String>),
}

/// Environment variables of a step.
pub(crate) type Env = &'static [(&'static str, &'static str)];

/// Test targets of the workspace.
pub(crate) enum Targets {
    /// The unit tests inside all libraries and programs.
    Unit,
    /// Every file in a folder of integration tests.
    Folder(&'static str),
    /// These integration tests.
    Named(&'static [&'static str]),
    /// The examples in the documentation.
    Docs,
}

/// Where and how a run takes place.
pub(crate) struct Site {
    /// The workspace.
    pub root: PathBuf,
    /// Where cargo builds.
    pub target: PathBuf,
    /// Faults and figures in full instead of a tenth.
    pub full: bool,
    /// What the machine lacks counts as failed.
    pub strict: bool,
}

/// How a part ended.
pub(crate) enum Verdict {
    /// With its last words.
    Passed(String),
    /// With the reason.
    Failed(String),
    /// With what is missing.
    Skipped(String),
}

/// A part that was run, or was not.
pub(crate) struct Report {
    /// Which.
    pub name: &'static str,
    /// How it ended.
    pub verdict: Verdict,
    /// How long it took.
    pub took: Duration,
}

impl Part {
    /// Whether `--only word` means this part.
    pub(crate) fn answers_to(&self, word: &str) -> bool {
        self.name == word || self.tags.contains(&word)
    }

    /// The steps of this run.
    pub(crate) fn steps(&self, full: bool) -> &'static [Step] {
        if full && !self.full.is_empty() { self.full } else { self.steps }
    }
}

impl Site {
    /// The workspace this program was built from.
    pub(crate) fn find(full: bool, strict: bool) -> Self {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
        let root = root.canonicalize().unwrap_or(root);
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
        Self { target: root.join(target), root, full, strict }
    }
}
