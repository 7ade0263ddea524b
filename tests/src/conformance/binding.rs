//! Bindings and their actors: one without the other is a gap in the grid.

use std::fs;
use std::path::Path;

const FOLDER: &str = "bindings-";

/// The bindings of the workspace at `root` whose language has no actor.
pub fn without_actor(root: &Path, languages: &[&str]) -> Vec<String> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let folders = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let played = |binding: &str| languages.iter().any(|language| language.starts_with(binding));
    let mut absent: Vec<_> = folders
        .filter(|folder| folder.strip_prefix(FOLDER).is_some_and(|binding| !played(binding)))
        .collect();
    absent.sort();
    absent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binding_that_nobody_plays_is_missed() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["core", "bindings-python", "bindings-node"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        let absent = without_actor(root.path(), &["rust", "rust program", "python"]);
        assert_eq!(absent, ["bindings-node"]);
    }
}
