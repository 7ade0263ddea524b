//! Licences, sources and bans of all dependencies, by the lists in deny.toml and the words of `cargo tree`.

use std::collections::BTreeSet;

use super::{files, output, read};
use crate::part::Site;
use crate::run::cargo;

pub(crate) fn check(site: &Site) -> Result<String, String> {
    let rules = read(&site.root.join("deny.toml"))?;
    let allowed = texts(section(&rules, "licenses"), "allow");
    let banned = texts(section(&rules, "bans"), "deny");
    let registries = texts(section(&rules, "sources"), "allow-registry");
    if allowed.is_empty() || banned.is_empty() || registries.is_empty() {
        return Err("deny.toml has no licences, bans or registries to check by".into());
    }
    let mut complaints = Vec::new();
    let dependencies = dependencies(site)?;
    for (name, licence) in &dependencies {
        if !acceptable(licence, &allowed) {
            complaints.push(format!("{name}: the licence `{licence}` is not allowed"));
        }
        if banned.contains(name) {
            complaints.push(format!("{name}: the crate is banned"));
        }
    }
    let lock = read(&site.root.join("Cargo.lock"))?;
    for line in lock.lines() {
        let Some(source) = line.strip_prefix("source = ") else { continue };
        let source = source.trim_matches('"');
        let known = source.strip_prefix("registry+").is_some_and(|url| registries.contains(url));
        if !known {
            complaints.push(format!("the source {source} is not allowed"));
        }
    }
    complaints.extend(wildcards(site)?);
    if complaints.is_empty() {
        let several = Vec::from_iter(several(&lock)).join(", ");
        Ok(format!("{} dependencies; in several versions: {several}", dependencies.len()))
    } else {
        Err(complaints.join("\n"))
    }
}

/// Dependencies of ours that take any version.
fn wildcards(site: &Site) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for path in files(&site.root, "toml") {
        if path.file_name().is_some_and(|name| name == "Cargo.toml") {
            let text = read(&path)?;
            let lines = text.lines().filter(|line| takes_any(line));
            found.extend(lines.map(|line| format!("{}: any version: {line}", path.display())));
        }
    }
    Ok(found)
}

/// Whether a line of a manifest asks for a version that may be any.
fn takes_any(line: &str) -> bool {
    let line: String = line.split('#').next().unwrap_or_default().split_whitespace().collect();
    line.ends_with("=\"*\"") || line.contains("version=\"*\"")
}

/// Crates the lock file has in more than one version: worth a look, no reason to fail.
fn several(lock: &str) -> BTreeSet<&str> {
    let mut seen = BTreeSet::new();
    lock.lines()
        .filter_map(|line| line.strip_prefix("name = "))
        .filter(|name| !seen.insert(*name))
        .map(|name| name.trim_matches('"'))
        .collect()
}

/// Name and licence of every dependency on every platform.
fn dependencies(site: &Site) -> Result<BTreeSet<(String, String)>, String> {
    let args = "tree --workspace --all-features --target all --prefix none --format {p}|{l}";
    let mut tree = cargo(&args.split(' ').collect::<Vec<_>>());
    let text = output(tree.current_dir(&site.root))?;
    let line = |line: &str| {
        let (package, licence) = line.trim_end_matches(" (*)").split_once('|')?;
        let name = package.split(' ').next()?;
        Some((name.to_owned(), licence.trim().to_owned()))
    };
    Ok(text.lines().filter_map(line).collect())
}

/// The lines of a section of a TOML file.
fn section<'a>(toml: &'a str, name: &str) -> &'a str {
    let start = toml.find(&format!("[{name}]\n")).map_or(toml.len(), |at| at + name.len() + 3);
    let rest = &toml[start..];
    &rest[..rest.find("\n[").unwrap_or(rest.len())]
}

/// The texts in an array of a section.
fn texts(section: &str, key: &str) -> BTreeSet<String> {
    let after = section.split_once(&format!("\n{key} = [")).map_or("", |(_, rest)| rest);
    let after = if after.is_empty() {
        section.strip_prefix(&format!("{key} = [")).unwrap_or_default()
    } else {
        after
    };
    let array = &after[..after.find(']').unwrap_or(0)];
    let lines = array.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.flat_map(|line| line.split('"').skip(1).step_by(2)).map(String::from).collect()
}

/// Whether an SPDX expression can be fulfilled by allowed licences alone.
fn acceptable(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    either(&mut words, allowed) && words.peek().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn either(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    let mut good = both(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        good |= both(words, allowed);
    }
    good
}

fn both(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    let mut good = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        good &= one(words, allowed);
    }
    good
}

fn one(words: &mut Words<'_>, allowed: &BTreeSet<String>) -> bool {
    if words.next_if_eq(&"(").is_some() {
        let good = either(words, allowed);
        return words.next() == Some(")") && good;
    }
    let Some(licence) = words.next() else { return false };
    match words.next_if_eq(&"WITH") {
        None => allowed.contains(licence),
        Some(_) => words
            .next()
            .is_some_and(|exception| allowed.contains(&format!("{licence} WITH {exception}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::{acceptable, section, several, takes_any, texts};

    #[test]
    fn expressions_are_read_as_spdx_means_them() {
        let allowed = ["MIT", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"].map(String::from);
        let allowed = allowed.into_iter().collect();
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(acceptable(good, &allowed), "{good}");
        }
        for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "Apache-2.0", "(MIT", "MIT MIT"] {
            assert!(!acceptable(bad, &allowed), "{bad}");
        }
    }

    #[test]
    fn loose_and_doubled_dependencies_are_seen() {
        assert!(takes_any("a = \"*\"") && takes_any("a = { version = \"*\", features = [] }"));
        assert!(!takes_any("a = \"1.2\"") && !takes_any("package.\"*\" = 1 # = \"*\""));
        let lock = "name = \"a\"\nversion = 1\nname = \"b\"\nname = \"a\"\nname = \"a\"\n";
        assert_eq!(Vec::from_iter(several(lock)), ["a"]);
    }

    #[test]
    fn lists_are_read_from_their_section() {
        let toml = "[a]\nallow = [\n  \"X\",\n  # \"Y\",\n]\n[b]\nallow = [\"Z\"]\n";
        assert_eq!(Vec::from_iter(texts(section(toml, "a"), "allow")), ["X"]);
        assert_eq!(Vec::from_iter(texts(section(toml, "b"), "allow")), ["Z"]);
    }
}
