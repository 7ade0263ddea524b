//! Every deliberate breakage that the simulator leaves to others is named by a test among those.

use std::collections::BTreeSet;

use super::{files, read};
use crate::part::Site;

/// Where the breakages stand, and in which list of which test those that other suites see.
const TABLE: &str = "core/src/mutation/table.rs";
/// More of those on servers.
const SESSIONS: &str = "core/src/mutation/sessions.rs";
const LIST: &str = "worlds/tests/mutants.rs";
/// How a test's list of those begins that it leaves to others.
const HEAD: &str = "const ELSEWHERE";
/// How one of those begins that it hunts in a full run only.
const FULL: &str = "const LATE";
/// Where tests are looked for.
const FOLDERS: &[&str] = &[
    "core/tests",
    "core/src/algorithm/shuttle",
    "tests/src/database_sessions",
    "tests/tests",
    "worlds/tests",
];

pub(crate) fn check(site: &Site) -> Result<String, String> {
    let table = read(&site.root.join(TABLE))?;
    let (mut on_servers, in_records) =
        (section(&table, "on servers:"), section(&table, "in records:"));
    let sessions = section(&read(&site.root.join(SESSIONS))?, "$($others)*");
    if sessions.is_empty() {
        return Err(format!("{SESSIONS} is not laid out as this check reads it"));
    }
    on_servers.extend(sessions);
    let list = read(&site.root.join(LIST))?;
    let Some((_, elsewhere, _)) = list_of(&list, HEAD) else {
        return Err(format!("{LIST} has no list ELSEWHERE"));
    };
    let mut named = BTreeSet::new();
    for folder in FOLDERS {
        for path in files(&site.root.join(folder), "rs") {
            named.extend(tested_in(&read(&path)?, &in_records));
        }
    }
    let missing: BTreeSet<_> = on_servers.union(&named_in(elsewhere)).cloned().collect();
    if on_servers.is_empty() || missing.len() == on_servers.len() {
        return Err(format!("{TABLE} or {LIST} is not laid out as this check reads it"));
    }
    let is_named = |name: &&String| named.contains(*name);
    let unnamed: Vec<_> = missing
        .iter()
        .filter(|name| !is_named(name))
        .map(|name| format!("no test names {name}"))
        .collect();
    if unnamed.is_empty() {
        Ok(format!(
            "{} breakages that the simulator does not see are named by tests",
            missing.len()
        ))
    } else {
        Err(unnamed.join("\n"))
    }
}

/// The names below a heading of the table.
fn section(table: &str, heading: &str) -> BTreeSet<String> {
    let lines = table.lines().map(str::trim).skip_while(|line| *line != heading).skip(1);
    let lines = lines.take_while(|line| line.starts_with("///") || line.ends_with(','));
    lines
        .filter_map(|line| line.strip_suffix(','))
        .filter(|line| !line.starts_with('/'))
        .map(str::to_owned)
        .collect()
}

/// What a test hunts in a short run: what it names, but not only to leave it to others or to a full run; one that goes through
/// all of the record hunts each of them.
fn tested_in(source: &str, in_records: &BTreeSet<String>) -> BTreeSet<String> {
    let (mut rest, mut left) = (source.to_owned(), BTreeSet::new());
    for head in [HEAD, FULL] {
        if let Some((before, list, behind)) = list_of(&rest, head) {
            left.extend(named_in(list));
            rest = [before, behind].concat();
        }
    }
    let mut named = named_in(&rest);
    if named.remove("RECORD") {
        named.extend(in_records.difference(&left).cloned());
    }
    named
}

/// What stands before, in and behind a constant.
fn list_of<'a>(source: &'a str, head: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let (before, rest) = source.split_once(head)?;
    let (list, behind) = rest.split_once("];")?;
    Some((before, list, behind))
}

/// The breakages a source names.
fn named_in(source: &str) -> BTreeSet<String> {
    let names = source.split("Mutant::").skip(1);
    let word = |rest: &str| rest.chars().take_while(|letter| letter.is_alphanumeric()).collect();
    names.map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::{section, tested_in};

    #[test]
    fn a_table_has_sections() {
        let table = "  in records:\n  /// One, two,\n  One,\n  on servers:\n  /// Two.\n  Two,\n  Three,\n}\n";
        assert_eq!(section(table, "in records:").into_iter().collect::<Vec<_>>(), ["One"]);
        assert_eq!(section(table, "on servers:").len(), 2);
    }

    #[test]
    fn a_list_does_not_name_for_itself() {
        let list = "const ELSEWHERE: &[Mutant] = &[\nMutant::One,\n];\nconst LATE: &[Mutant] = &[\nMutant::Four,\n];\n";
        let tested = |behind: &str| {
            let record = ["One", "Three", "Four"].map(String::from).into();
            tested_in(&format!("a\n{list}{behind}"), &record).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(tested("activate(Mutant::Two)"), ["Two"]);
        assert_eq!(tested("activate(Mutant::One)"), ["One"]);
        assert_eq!(tested("Mutant::RECORD"), ["Three"]);
    }
}
