//! Builds the test targets of a run at once, and knows where their programs are.
//!
//! The programs are then started without cargo, so that no test waits for the lock of cargo's target folder while another
//! part compiles.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::part::Targets;

/// What every build of tests begins with: one profile and one set of features, so that dependencies are built once.
pub(crate) const TEST: &[&str] = &["test", "--profile=quick", "--workspace"];

/// A program of tests.
pub(crate) struct Program {
    /// The target's name, as `--test` takes it; of unit tests that of the crate.
    pub name: String,
    /// Whether it holds the unit tests of a library or program.
    pub unit: bool,
    /// The file to run.
    pub file: PathBuf,
    /// The folder of its package, in which it runs.
    pub package: PathBuf,
}

/// The programs of all targets that a run asked for.
pub(crate) struct Built(Vec<Program>);

impl Built {
    /// Builds these targets. The compiler's messages go to `log`.
    pub(crate) fn make(targets: &[Targets], root: &Path, log: File) -> Result<Self, String> {
        if targets.iter().all(|targets| matches!(targets, Targets::Docs)) {
            return Ok(Self(Vec::new()));
        }
        let mut cargo = crate::run::cargo(TEST);
        cargo.current_dir(root).args(["--no-run", "--message-format=json-render-diagnostics"]);
        cargo
            .args(selection(targets, root))
            .stderr(log)
            .stdout(Stdio::piped())
            .stdin(Stdio::null());
        let output = cargo.output().map_err(|error| format!("cargo cannot be run: {error}"))?;
        if !output.status.success() {
            return Err("the tests do not compile".into());
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(Self(text.lines().filter_map(program).collect()))
    }

    /// The programs of these targets, in a fixed order.
    pub(crate) fn of(&self, targets: &Targets) -> Result<Vec<&Program>, String> {
        let mut programs: Vec<_> = match targets {
            Targets::Unit => self.0.iter().filter(|program| program.unit).collect(),
            Targets::Docs => return Err("examples in documentation are cargo's to run".into()),
            Targets::Named(names) => {
                let one = |name: &&str| {
                    let found =
                        self.0.iter().find(|program| !program.unit && program.name == *name);
                    found.ok_or_else(|| format!("there is no test target `{name}`"))
                };
                names.iter().map(one).collect::<Result<_, _>>()?
            }
            Targets::Folder(folder) => {
                let package = Path::new(folder).parent().unwrap_or(Path::new(""));
                let inside =
                    |program: &&Program| !program.unit && program.package.ends_with(package);
                self.0.iter().filter(inside).collect()
            }
        };
        programs.sort_by_key(|program| (&program.package, &program.name));
        if programs.is_empty() { Err("there is no such test target".into()) } else { Ok(programs) }
    }
}

/// The words that select these targets.
fn selection(targets: &[Targets], root: &Path) -> Vec<String> {
    let mut words = Vec::new();
    for targets in targets {
        match targets {
            Targets::Unit => words.extend(["--lib".to_owned(), "--bins".to_owned()]),
            Targets::Docs => {}
            Targets::Named(names) => {
                words.extend(names.iter().map(|name| format!("--test={name}")));
            }
            Targets::Folder(folder) => {
                let names = crate::target::names(&root.join(folder));
                words.extend(names.iter().map(|name| format!("--test={name}")));
            }
        }
    }
    words.sort();
    words.dedup();
    words
}

/// A program of tests in a message of cargo's.
fn program(line: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let target = &message["target"];
    Some(Program {
        name: target["name"].as_str()?.to_owned(),
        unit: target["kind"].as_array()?.iter().all(|kind| kind != "test"),
        file: message["executable"].as_str()?.into(),
        package: Path::new(message["manifest_path"].as_str()?).parent()?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::program;

    #[test]
    fn a_program_is_read_from_a_message() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/a/tests/Cargo.toml","target":{"kind":["test"],"name":"kills"},"profile":{"test":true},"executable":"/a/target/kills-1"}"#;
        let found = program(line).expect("it is one");
        assert_eq!((&*found.name, found.unit), ("kills", false));
        assert!(found.package.ends_with("tests"));
        assert!(program(&line.replace("true", "false")).is_none(), "a library is none");
    }
}
