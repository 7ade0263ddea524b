//! Runs the shell blocks of the README, of the packages' READMEs and of the pages in `docs/` as they stand. Rust blocks are run as
//! documentation tests of the examples crate, those in other languages by the tests of their packages.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{files, read};
use crate::part::Site;

/// The languages whose blocks a test runs.
const RUN: &[&str] = &["rust", "sh", "python", "ts", "java", "kotlin"];
/// What is shown and not run: commands that change the machine, parts of manifests, URLs and diagrams.
const SHOWN: &[&str] = &["console", "text", "xml", "groovy"];
/// Where the pages are whose blocks are run.
const PAGES: &[&str] = &["docs/tutorial", "docs/how-to"];
/// Where Rust blocks become documentation tests.
const DOCTESTS: &str = "examples/src/lib.rs";

pub(crate) fn check(site: &Site) -> Result<String, String> {
    let text = read(&site.root.join("README.md"))?;
    let lines = text.lines().count();
    if lines >= 250 {
        return Err(format!("README.md has {lines} lines; it is to stay under 250"));
    }
    let scratch = site.target.join("test-all").join("readme");
    let doctests = read(&site.root.join(DOCTESTS))?;
    let mut pages = vec![site.root.join("README.md"), site.root.join("cli/README.md")];
    pages.extend(PAGES.iter().flat_map(|folder| files(&site.root.join(folder), "md")));
    let (mut count, mut others) = (0, 0);
    for path in pages {
        let page = path.strip_prefix(&site.root).unwrap_or(&path).display().to_string();
        let text = read(&path)?;
        for (language, block) in blocks(&text) {
            if language == "sh" {
                run(site, &scratch, &page, &block)?;
                count += 1;
                continue;
            }
            if SHOWN.contains(&language) {
                continue;
            }
            if !RUN.contains(&language) {
                return Err(format!("{page} has a block in `{language}`, which nothing runs"));
            }
            if language == "rust" && !doctests.contains(&format!("/{page}\")")) {
                return Err(format!(
                    "{page} has a block of Rust, and {DOCTESTS} does not include it"
                ));
            }
            others += 1;
        }
    }
    Ok(format!("{count} shell blocks run here, {others} in languages by `doc` and the doors"))
}

/// Runs a block in an empty folder of its own for temporary files and locks.
fn run(site: &Site, scratch: &Path, page: &str, block: &str) -> Result<(), String> {
    let _ = std::fs::remove_dir_all(scratch);
    std::fs::create_dir_all(scratch).map_err(|error| error.to_string())?;
    let programs = site.target.join("quick");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([programs].into_iter().chain(std::env::split_paths(&path)));
    let mut bash = Command::new("bash");
    crate::run::forget_cargo(&mut bash);
    let output = bash
        .args(["-euo", "pipefail", "-c", block])
        .current_dir(&site.root)
        .env("PATH", path.map_err(|error| error.to_string())?)
        .env("FENCELOCK_URL", format!("sqlite:{}", scratch.join("locks.db").display()))
        .env("TMPDIR", scratch)
        .env(crate::INSIDE, "1")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let words = [output.stdout, output.stderr].concat();
    let words = String::from_utf8_lossy(&words).into_owned();
    Err(format!("a block of {page} ended with {}:\n{block}\n{words}", output.status))
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

#[cfg(test)]
mod tests {
    #[test]
    fn blocks_are_found_with_their_language() {
        let found = super::blocks("a\n```sh\ncargo demo\n```\nb\n```rust\nlet x;\n```\n");
        assert_eq!(found, [("sh", "cargo demo\n".into()), ("rust", "let x;\n".into())]);
    }
}
