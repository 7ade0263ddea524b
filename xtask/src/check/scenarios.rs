//! Every scenario of `tests/scenarios.yaml` has a test that carries its number, or is listed as missing.

use std::collections::{BTreeMap, BTreeSet};

use super::{files, read};
use crate::part::Site;

/// Where tests are looked for.
const FOLDERS: &[&str] = &["core/src", "core/tests", "cli/tests", "tests/tests", "worlds/tests"];

pub(crate) fn check(site: &Site) -> Result<String, String> {
    let list = read(&site.root.join("tests/scenarios.yaml"))?;
    let (tested, missing) = (section(&list, "tested"), section(&list, "missing"));
    if tested.is_empty() {
        return Err("tests/scenarios.yaml lists no scenario".into());
    }
    let mut carried = BTreeSet::new();
    for path in files(&site.root.join("tests/cases"), "yaml") {
        carried.extend(of_cases(&read(&path)?));
    }
    for folder in FOLDERS {
        for path in files(&site.root.join(folder), "rs") {
            carried.extend(of_functions(&read(&path)?));
        }
    }
    let mut complaints: Vec<_> = tested
        .iter()
        .filter(|(number, _)| !carried.contains(*number))
        .map(|(number, what)| format!("no test carries {number}: {what}"))
        .collect();
    let tested_now = missing.keys().filter(|number| carried.contains(*number));
    complaints.extend(
        tested_now.map(|number| format!("{number} is listed as missing, and a test carries it")),
    );
    let twice = missing.keys().filter(|number| tested.contains_key(*number));
    complaints.extend(twice.map(|number| format!("{number} is listed as tested and as missing")));
    if !complaints.is_empty() {
        return Err(complaints.join("\n"));
    }
    let missing: Vec<_> =
        missing.iter().map(|(number, noun)| format!("{number} ({noun})")).collect();
    let missing = if missing.is_empty() { "none".to_owned() } else { missing.join(", ") };
    Ok(format!("{} scenarios have tests; missing: {missing}", tested.len()))
}

/// What stands behind each number below a heading.
fn section(list: &str, heading: &str) -> BTreeMap<String, String> {
    let lines = list.lines().skip_while(|line| *line != format!("{heading}:")).skip(1);
    let lines = lines.take_while(|line| line.starts_with(' ') || line.starts_with('#'));
    let entry = |line: &str| {
        let (number, words) = line.trim().split_once(": ")?;
        (!number.starts_with('#')).then(|| (number.to_owned(), words.to_owned()))
    };
    lines.filter_map(entry).collect()
}

/// The numbers in the `why` of cases.
fn of_cases(cases: &str) -> BTreeSet<String> {
    let whys = cases.lines().filter_map(|line| line.trim().strip_prefix("why: ["));
    let words = whys.flat_map(|why| why.trim_end_matches(']').split(", "));
    words.map(str::to_owned).collect()
}

/// The numbers at the beginning of the names of test functions: `b44_b46_...` carries two.
fn of_functions(source: &str) -> BTreeSet<String> {
    let names = super::tests::functions(source);
    let words = names.iter().flat_map(|name| name.split('_').take_while(|word| is_number(word)));
    words.map(str::to_uppercase).collect()
}

fn is_number(word: &str) -> bool {
    word.len() == 3 && word.starts_with('b') && word[1..].bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::{of_cases, of_functions, section};

    #[test]
    fn a_list_has_sections() {
        let list =
            "# words: no\ntested:\n  B01: one\n  # B09: no\n  B02: two\nmissing:\n  B03: three\n";
        assert_eq!(section(list, "tested").into_keys().collect::<Vec<_>>(), ["B01", "B02"]);
        assert_eq!(section(list, "missing")["B03"], "three");
    }

    #[test]
    fn numbers_are_found_in_tests_only() {
        let source = "#[tokio::test(flavor = \"x\")]\nasync fn b44_b46_spin() {}\nfn b01_is_no_test() {}\n\
                      #[test]\nfn b02() {}\n#[test]\n#[ignore]\nfn b04_x() {}\n#[test]\nfn words_b03() {}\n";
        assert_eq!(of_functions(source).into_iter().collect::<Vec<_>>(), ["B02", "B44", "B46"]);
        assert_eq!(of_cases("- name: x\n  why: [S1, B07]\n").len(), 2);
    }
}
