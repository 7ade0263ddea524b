//! Checks that need no other program.

pub(crate) mod deny;
pub(crate) mod mutants;
pub(crate) mod readme;
pub(crate) mod rooms;
pub(crate) mod scenarios;

use std::fs;
use std::path::{Path, PathBuf};

/// All files below a folder with this ending, in order.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
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

/// The integration tests in a folder, as cargo names them.
pub(crate) fn test_targets(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let target = |path: PathBuf| {
        let is_target = path.extension().is_some_and(|extension| extension == "rs")
            || path.join("main.rs").is_file();
        is_target.then(|| path.file_stem().unwrap_or_default().to_string_lossy().into_owned())
    };
    let mut targets: Vec<_> = paths.filter_map(target).collect();
    targets.sort();
    targets
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
