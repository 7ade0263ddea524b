//! Runs the README's shell blocks as they stand. Its Rust blocks are run as documentation tests of the examples crate, those
//! in other languages by the tests of their packages.

use std::path::Path;
use std::process::{Command, Stdio};

use super::read;
use crate::part::Site;

/// The languages somebody runs the blocks of.
const RUN: &[&str] = &["rust", "sh", "python", "ts", "java", "kotlin"];

pub(crate) fn check(site: &Site) -> Result<String, String> {
    let text = read(&site.root.join("README.md"))?;
    let lines = text.lines().count();
    if lines >= 250 {
        return Err(format!("README.md has {lines} lines; it is to stay under 250"));
    }
    let blocks = blocks(&text);
    if let Some((language, _)) = blocks.iter().find(|(language, _)| !RUN.contains(language)) {
        return Err(format!("README.md has a block in `{language}`, which nothing runs"));
    }
    let scratch = site.target.join("test-all").join("readme");
    let _ = std::fs::remove_dir_all(&scratch);
    std::fs::create_dir_all(&scratch).map_err(|error| error.to_string())?;
    let shell = blocks.iter().filter(|(language, _)| *language == "sh");
    let mut count = 0;
    for (_, block) in shell {
        run(site, &scratch, block)?;
        count += 1;
    }
    let others = blocks.len() - count;
    Ok(format!("{count} shell blocks run here, {others} in languages by `doc` and the doors"))
}

fn run(site: &Site, scratch: &Path, block: &str) -> Result<(), String> {
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
    Err(format!("a block of README.md ended with {}:\n{block}\n{words}", output.status))
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
