//! What a part of `cargo test-all` is made of. The parts themselves stand in `table.rs`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::need::Need;
use crate::versions::Server;
use crate::{script, target};

/// The tag of a part that computes and waits for nothing. Such parts have the lowest priority, and one of them always
/// runs beside those that have leases to keep.
pub(crate) const COMPUTES: &str = "computes";

/// One row of the final table.
pub(crate) struct Part {
    /// What `--only` selects it by.
    pub name: &'static str,
    /// Other words `--only` selects it by: a store, a subject.
    pub tags: &'static [&'static str],
    /// What it shows, in a line.
    pub shows: &'static str,
    /// What it takes.
    pub budget: Budget,
    /// One after the other; the first that fails ends the part.
    pub steps: &'static [Step],
    /// In place of `steps` under `--full`; empty: the same.
    pub full: &'static [Step],
}

/// What a part takes in a whole run, cold, on two quiet cores. Measured, and rounded up.
#[derive(Clone, Copy)]
pub(crate) struct Budget {
    /// From its begin to its end, beside other parts.
    pub seconds: u32,
    /// How much of one core it keeps busy on average, in hundredths. Decides what may run beside it, unless it computes.
    pub load: u32,
}

impl Budget {
    /// The load where the processors are so many times as slow: what is computed takes longer there, what is waited for does not.
    pub(crate) fn load_at(self, slower: f64) -> u32 {
        let computes = f64::from(self.load) * slower;
        let waits = 100_u32.saturating_sub(self.load);
        let load = 100.0 * computes / (computes + f64::from(waits));
        self.load.max(load as u32)
    }
}

/// One command or check.
pub(crate) enum Step {
    /// `cargo` with these arguments, not for tests. The last line it prints has to contain each of the `expect`ed texts.
    Cargo { args: &'static [&'static str], env: Env, expect: &'static [&'static str] },
    /// Test targets of the workspace; fails if they ran no test.
    Tests(Targets),
    /// One test target with words for it, as `cargo test --test TARGET -- WORDS` gives them.
    Test(&'static str, &'static [&'static str]),
    /// The same with words that select what needs nothing of the machine, though the target as a whole does.
    Alone(&'static str, &'static [&'static str]),
    /// Test targets with words for them, on another server, which a script has brought.
    On(&'static Server, &'static [&'static str], &'static [&'static str]),
    /// Builds a test target, and with it the programs of its package, which tests of others run.
    Build(&'static str),
    /// The cases, played through the doors of this language, and the folder whose `install.sh` installs its package.
    Door(&'static str, &'static str),
    /// Several lists of steps, each after the other in itself and all of them side by side: for those that mostly wait.
    Beside(&'static [&'static [Step]]),
    /// A program of the workspace, and its arguments. The test target named first belongs to the same package: with it the
    /// program is built like all tests. Built by itself, its dependencies would have other features and be built again.
    Program { built_with: &'static str, name: &'static str, args: &'static [&'static str] },
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
#[derive(Clone, Copy)]
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
    /// The processor time of its commands.
    pub used: Duration,
    /// What it should have taken.
    pub budget: Budget,
}

/// What a part has to find on the machine, beside the Rust toolchain.
#[derive(Default)]
pub(crate) struct Needs {
    /// Without these it is skipped.
    pub all: BTreeSet<Need>,
    /// Without these it shows less, and its tests say what they skipped.
    pub some: BTreeSet<Need>,
}

impl Part {
    /// Whether `--only word` means this part.
    pub(crate) fn answers_to(&self, word: &str) -> bool {
        self.name == word || self.tags.contains(&word)
    }

    /// Whether it takes only what processors have left.
    pub(crate) fn computes(&self) -> bool {
        self.tags.contains(&COMPUTES)
    }

    /// The steps of this run.
    pub(crate) fn steps(&self, full: bool) -> &'static [Step] {
        if full && !self.full.is_empty() { self.full } else { self.steps }
    }

    /// What its steps need.
    pub(crate) fn needs(&self, site: &Site) -> Needs {
        let mut needs = Needs::default();
        for step in flat(self.steps(site.full)) {
            step.needs(&site.root, &mut needs);
        }
        needs
    }

    /// The test targets that have to be built for it.
    pub(crate) fn targets(&self, full: bool) -> Vec<Targets> {
        flat(self.steps(full)).into_iter().filter_map(Step::targets).collect()
    }
}

impl Step {
    /// The test targets it runs, or is built with.
    pub(crate) fn targets(&'static self) -> Option<Targets> {
        match self {
            Self::Tests(targets) => Some(*targets),
            Self::Test(name, _)
            | Self::Alone(name, _)
            | Self::Build(name)
            | Self::Program { built_with: name, .. } => {
                Some(Targets::Named(std::slice::from_ref(name)))
            }
            Self::On(_, names, _) => Some(Targets::Named(names)),
            Self::Door(..) => Some(Targets::Named(&["doors"])),
            _ => None,
        }
    }

    fn needs(&'static self, root: &Path, needs: &mut Needs) {
        match self {
            Self::Script(path) => needs.all.extend(script::needs(&root.join(path))),
            Self::Suite(path) => {
                needs.all.extend(script::needs_with_tests(root, &root.join(path)));
            }
            Self::Door(_, folder) => {
                needs.all.extend(script::needs(&root.join(folder).join("install.sh")));
            }
            // Another server is the fetching script's to need.
            Self::On(..) | Self::Alone(..) | Self::Build(_) => return,
            _ => {}
        }
        let names = match self.targets() {
            Some(Targets::Named(names)) => names.iter().map(|name| (*name).to_owned()).collect(),
            Some(Targets::Folder(folder)) => target::names(&root.join(folder)),
            _ => Vec::new(),
        };
        for name in names {
            needs.all.extend(target::needs(root, &name));
            if !matches!(self, Self::Door(..)) {
                needs.some.extend(target::wants(root, &name));
            }
        }
        if let Self::Program { name, .. } = self {
            needs.all.extend(target::needs_of_program(root, name));
        }
    }
}

/// All steps, those side by side too.
pub(crate) fn flat(steps: &'static [Step]) -> Vec<&'static Step> {
    let inside = |step: &'static Step| match step {
        Step::Beside(lists) => lists.iter().flat_map(|list| flat(list)).collect(),
        step => vec![step],
    };
    steps.iter().flat_map(inside).collect()
}

/// The workspace this program was built from.
pub(crate) fn root() -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().unwrap_or(root)
}

impl Site {
    /// The workspace this program was built from.
    pub(crate) fn find(full: bool, strict: bool) -> Self {
        let root = root();
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
        Self { target: root.join(target), root, full, strict }
    }
}
