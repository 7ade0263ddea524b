//! Every promise of the README has tests that would see it broken, and all of them run in a short run.

use std::collections::BTreeSet;

use super::{files, read};
use crate::part::Site;
use crate::target::folders;

/// The heading of the README below which the promises stand, each as the bold beginning of an item.
const HEADING: &str = "## What it promises";

pub(crate) fn check(site: &Site) -> Result<String, String> {
    let promised = promised(&read(&site.root.join("README.md"))?);
    let list = read(&site.root.join("tests/promises.yaml"))?;
    let shown = shown(&list);
    let mut tests = BTreeSet::new();
    for path in files(&site.root.join("tests/cases"), "yaml") {
        tests.extend(cases(&read(&path)?));
    }
    // Every target in these folders is in a part of the short run; the part `modules` checks that.
    for folder in folders(&site.root) {
        for path in files(&site.root.join(folder), "rs") {
            tests.extend(super::tests::functions(&read(&path)?));
        }
    }
    let named: BTreeSet<_> = shown.iter().map(|(promise, _)| promise.as_str()).collect();
    let forgotten = promised.iter().filter(|promise| !named.contains(promise.as_str()));
    let mut complaints: Vec<_> = forgotten
        .map(|promise| format!("tests/promises.yaml names no test for `{promise}`"))
        .collect();
    for (promise, shows) in &shown {
        if !promised.contains(promise) {
            complaints
                .push(format!("tests/promises.yaml: the README does not promise `{promise}`"));
        }
        let unknown = shows.iter().filter(|test| !tests.contains(*test));
        complaints.extend(unknown.map(|test| format!("`{promise}`: there is no test `{test}`")));
        if shows.is_empty() {
            complaints.push(format!("`{promise}`: no test is named"));
        }
    }
    if promised.is_empty() {
        complaints.push(format!("README.md has no promises below `{HEADING}`"));
    }
    if complaints.is_empty() {
        Ok(format!("{} promises have tests", promised.len()))
    } else {
        Err(complaints.join("\n"))
    }
}

/// The promises of the README, in order.
fn promised(readme: &str) -> Vec<String> {
    let below = readme.split_once(HEADING).map_or("", |(_, below)| below);
    let section = below.split("\n## ").next().unwrap_or_default();
    let bold = section.lines().filter_map(|line| line.split_once(". **")?.1.split_once(".**"));
    bold.map(|(promise, _)| promise.to_owned()).collect()
}

/// The promises of the list with the tests below each.
fn shown(list: &str) -> Vec<(String, Vec<String>)> {
    let mut shown: Vec<(String, Vec<String>)> = Vec::new();
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        if let Some(test) = line.strip_prefix("  - ") {
            if let Some((_, tests)) = shown.last_mut() {
                tests.push(test.to_owned());
            }
        } else if let Some(promise) = line.strip_suffix(':') {
            shown.push((promise.to_owned(), Vec::new()));
        }
    }
    shown
}

/// The names of cases.
fn cases(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter_map(|line| line.strip_prefix("- name: ")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{promised, shown};

    #[test]
    fn promises_and_their_tests_are_found() {
        let readme = "a\n## What it promises\n\n1. **One.** Text.\n2. **Two words.** More.\n\n## Next\n3. **No.**\n";
        assert_eq!(promised(readme), ["One", "Two words"]);
        let shown = shown("# c\nOne:\n  - a_test\n  - a case\nTwo words:\n");
        assert_eq!(shown[0], ("One".into(), vec!["a_test".into(), "a case".into()]));
        assert!(shown[1].1.is_empty());
    }
}
