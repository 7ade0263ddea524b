//! Checks of what lies in the folders.

pub(crate) mod crates;
pub(crate) mod deny;
pub(crate) mod installs;
pub(crate) mod modules;
pub(crate) mod mutants;
pub(crate) mod promises;
pub(crate) mod readme;
pub(crate) mod scenarios;
pub(crate) mod statics;
pub(crate) mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// All files below a folder with this ending, in order.
pub(crate) fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let hidden = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with('.') || name == "target" || name == "node_modules"
    };
    let below = |path: PathBuf| {
        if hidden(&path) {
            Vec::new()
        } else if path.is_dir() {
            files(&path, ending)
        } else if path.extension().is_some_and(|extension| extension == ending) {
            vec![path]
        } else {
            Vec::new()
        }
    };
    paths.into_iter().flat_map(below).collect()
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// What a program that has to end well says.
fn output(command: &mut Command) -> Result<String, String> {
    let ended = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if ended.status.success() {
        Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&ended.stderr).into_owned())
    }
}
