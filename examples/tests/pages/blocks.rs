//! The shell blocks of the README, of the command line's README and of the pages in `docs/` run as they stand. Rust blocks are doc
//! tests of this crate, those in other languages run in the tests of their packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fencelock_tests::ended;

/// The languages whose blocks a test runs, and those that are only shown: commands that change the machine, manifests, diagrams.
const RUN: &[&str] = &["rust", "sh", "python", "ts", "java", "kotlin", "ruby"];
const SHOWN: &[&str] = &["console", "text", "xml", "groovy"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The README, the command line's, and the pages of tutorials and how-tos.
fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned(), "cli/README.md".to_owned()];
    for folder in ["docs/tutorial", "docs/how-to"] {
        let entries = fs::read_dir(root().join(folder)).expect("the folder is there").flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        pages.extend(names.map(|name| format!("{folder}/{name}")));
    }
    pages
}

/// The fenced blocks with their languages.
fn blocks(markdown: &str) -> Vec<(&str, String)> {
    let mut found: Vec<(&str, String)> = Vec::new();
    let mut open = false;
    for line in markdown.lines() {
        match (line.strip_prefix("```"), open) {
            (Some(language), false) => {
                found.push((language.trim(), String::new()));
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => {
                if let Some((_, block)) = found.last_mut() {
                    block.push_str(line);
                    block.push('\n');
                }
            }
            (None, false) => {}
        }
    }
    found
}

/// Runs a block in the workspace, with a folder of its own for temporary files and locks.
fn run(page: &str, block: &str) {
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let programs = Path::new(env!("CARGO_BIN_EXE_hello")).parent().expect("a folder").to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([programs].into_iter().chain(std::env::split_paths(&path)));
    let output = ended::output(
        Command::new("bash")
            .args(["-euo", "pipefail", "-c", block])
            .current_dir(root())
            .env("PATH", path.expect("a path"))
            .env("FENCELOCK_URL", format!("sqlite:{}", scratch.path().join("locks.db").display()))
            .env("TMPDIR", scratch.path()),
    );
    let words = [output.stdout, output.stderr].concat();
    let words = String::from_utf8_lossy(&words);
    assert!(output.status.success(), "a block of {page}: {}:\n{block}\n{words}", output.status);
}

/// `fencelock` lies beside the examples: `cargo test-all` builds it, and so does `cargo test --workspace`.
#[test]
fn shell_blocks_run_as_they_stand() {
    let doctests = fs::read_to_string(root().join("examples/src/lib.rs")).expect("it is there");
    let mut ran = 0;
    for page in pages() {
        let text = fs::read_to_string(root().join(&page)).expect("it is there");
        for (language, block) in blocks(&text) {
            match language {
                "sh" => {
                    run(&page, &block);
                    ran += 1;
                }
                "rust" => {
                    let included = doctests.contains(&format!("/{page}\")"));
                    assert!(included, "examples/src/lib.rs does not include {page}");
                }
                language if SHOWN.contains(&language) || RUN.contains(&language) => {}
                language => panic!("{page} has a block in `{language}`, which nothing runs"),
            }
        }
    }
    assert!(ran > 0, "no page has a shell block");
}

#[test]
fn the_readme_is_short() {
    let lines = fs::read_to_string(root().join("README.md")).expect("it is there").lines().count();
    assert!(lines < 250, "README.md has {lines} lines");
}

#[test]
fn blocks_are_found_with_their_language() {
    let found = blocks("a\n```sh\ncargo demo\n```\nb\n```rust\nlet x;\n```\n");
    assert_eq!(found, [("sh", "cargo demo\n".into()), ("rust", "let x;\n".into())]);
}
