//! Reading logs: their ends, and what the test harness counted.

use std::collections::BTreeSet;
use std::path::Path;

/// How the line of a case that failed begins; the next one says why.
const CASE: &str = "FAILED: ";

fn read(log: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(log).unwrap_or_default()).into_owned()
}

/// How long the log is by now.
pub(crate) fn length(log: &Path) -> usize {
    std::fs::metadata(log).map_or(0, |data| data.len() as usize)
}

/// The last so many lines, indented.
pub(crate) fn lines(log: &Path, most: usize) -> String {
    let text = read(log);
    let lines: Vec<&str> = text.lines().collect();
    indented(&lines[lines.len().saturating_sub(most)..]).join("\n")
}

/// What the first tests that failed said, which a backtrace or a table may push out of the log's end.
pub(crate) fn failures(log: &Path) -> String {
    failures_in(&read(log))
}

fn failures_in(text: &str) -> String {
    const MOST: usize = 6;
    const LINES: usize = 5;
    let lines: Vec<&str> = text.lines().collect();
    let tells = |line: &str| line.contains(" panicked at ") || line.starts_with(CASE);
    let begins = lines.iter().enumerate().filter(|(_, line)| tells(line));
    let said = begins.take(MOST).map(|(begin, _)| {
        let said = lines[begin..].iter().take(LINES);
        let said: Vec<_> =
            said.take_while(|line| !line.starts_with("stack backtrace")).copied().collect();
        indented(&said).join("\n") + "\n        |\n"
    });
    said.collect()
}

fn indented(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| format!("        | {line}")).collect()
}

/// The last line that says something.
pub(crate) fn last_line(log: &Path) -> String {
    let text = read(log);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or_default().to_owned()
}

/// As much of a line as a table shows.
pub(crate) fn brief(line: &str) -> String {
    line.chars().take(160).collect()
}

/// The line of a failed step that says most: the first error, failed test or failed case, else the last line.
pub(crate) fn complaint(log: &Path) -> String {
    complaint_in(&read(log)).unwrap_or_else(|| brief(&last_line(log)))
}

fn complaint_in(text: &str) -> Option<String> {
    let tells = |line: &str| {
        line.starts_with("error") || line.ends_with("... FAILED") || line.starts_with("FAILED ")
    };
    let mut lines = text.lines();
    let line = lines.by_ref().find(|line| tells(line) || line.starts_with(CASE))?;
    let why = if line.starts_with(CASE) { lines.next().map(brief) } else { panic_of(line, text) };
    Some(brief(line) + &why.map(|why| format!(": {}", why.trim())).unwrap_or_default())
}

/// Where a failed test panicked, and the first line of what it said.
fn panic_of(failed: &str, text: &str) -> Option<String> {
    let test = failed.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
    let thread = format!("thread '{test}' ");
    let mut lines = text.lines();
    let panicked = lines.by_ref().find(|line| line.starts_with(&thread))?;
    let (_, place) = panicked.split_once(" panicked at ")?;
    Some(brief(&format!("{place} {}", lines.next().unwrap_or_default())))
}

/// Tests that ran, passed or not, in what the log gained since it had this length.
pub(crate) fn tests_run(log: &Path, since: usize) -> u32 {
    let text = read(log);
    let (passed, failed, _) = count(text.get(since..).unwrap_or_default());
    passed + failed
}

/// All the tests of a log in words; `None` if there were none.
pub(crate) fn tests(log: &Path) -> Option<String> {
    let text = read(log);
    let (passed, failed, ignored) = count(&text);
    let ignored = if ignored > 0 { format!(", {ignored} ignored") } else { String::new() };
    (passed + failed > 0).then(|| format!("{passed} tests{ignored}"))
}

/// What tests say they could not do here, and why; `None`: they did everything.
pub(crate) fn skipped(log: &Path) -> Option<String> {
    let text = read(log);
    let reasons: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("skipped: ")).collect();
    (!reasons.is_empty()).then(|| reasons.into_iter().collect::<Vec<_>>().join("; "))
}

/// How large the packages are that were built.
pub(crate) fn sizes(log: &Path) -> Vec<String> {
    read(log).lines().filter_map(|line| line.strip_prefix("size: ")).map(str::to_owned).collect()
}

/// Tests that passed, failed and were ignored, by what cargo, pytest, Node's runner and Maven say at their ends.
fn count(text: &str) -> (u32, u32, u32) {
    text.lines().map(|line| counted(line.trim())).fold((0, 0, 0), |sum, now| {
        let [passed, failed, ignored] = now;
        (sum.0 + passed, sum.1 + failed, sum.2 + ignored)
    })
}

fn counted(line: &str) -> [u32; 3] {
    let before = |word: &str| {
        let (before, _) = line.split_once(word)?;
        before.rsplit([' ', ';', ',']).find_map(|part| part.parse().ok())
    };
    let behind = |word: &str| {
        let (_, behind) = line.split_once(word)?;
        behind.split([' ', ',']).find_map(|part| part.parse::<u32>().ok())
    };
    let pytest = line.starts_with(|first: char| first.is_ascii_digit()) && line.contains(" in ");
    if line.starts_with("test result: ") {
        [" passed", " failed", " ignored"].map(|word| before(word).unwrap_or(0))
    } else if pytest && line.ends_with(['s', ')']) {
        [" passed", " failed", " skipped"].map(|word| before(word).unwrap_or(0))
    } else if line.starts_with("Tests run: ") {
        let [run, failures, errors, skipped] = ["Tests run:", "Failures:", "Errors:", "Skipped:"]
            .map(|word| behind(word).unwrap_or(0));
        [run.saturating_sub(failures + errors + skipped), failures + errors, skipped]
    } else {
        ["ℹ pass ", "ℹ fail ", "ℹ skipped "]
            .map(|word| line.strip_prefix(word).and_then(|count| count.parse().ok()).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_panicked_is_told_without_its_backtrace() {
        let log = "noise\nthread 'a' (7) panicked at a.rs:1:2:\nleft: 1\nstack backtrace:\n 0: b\n";
        let told = "        | thread 'a' (7) panicked at a.rs:1:2:\n        | left: 1\n        |\n";
        assert_eq!(super::failures_in(log), told);
    }

    #[test]
    fn a_case_that_failed_is_told_with_its_reason() {
        let log = "a table\nFAILED: a lock is free [python / redis]\n    it was held\nthe rest\n";
        let told = "FAILED: a lock is free [python / redis]: it was held";
        assert_eq!(super::complaint_in(log).as_deref(), Some(told));
        assert!(super::failures_in(log).contains("it was held"));
    }

    #[test]
    fn a_test_that_failed_is_told_with_its_panic() {
        let log = "test a::b ... FAILED\n\nthread 'a' (7) panicked at a.rs:9:9:\nanother\n\
                   thread 'a::b' (8) panicked at a.rs:1:2:\nleft: 1\nright: 2\n";
        let told = "test a::b ... FAILED: a.rs:1:2: left: 1";
        assert_eq!(super::complaint_in(log).as_deref(), Some(told));
    }

    #[test]
    fn results_are_summed() {
        let log = "noise\ntest result: ok. 3 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out\n\
                   test result: FAILED. 1 passed; 4 failed; 0 ignored; 0 measured";
        assert_eq!(super::count(log), (4, 4, 2));
    }

    #[test]
    fn so_are_those_of_other_languages() {
        for (log, sum) in [
            ("384 passed, 2 skipped in 105.95s (0:01:45)", (384, 0, 2)),
            ("1 failed, 3 passed in 1.00s", (3, 1, 0)),
            ("no tests ran in 0.01s", (0, 0, 0)),
            ("ℹ tests 8\nℹ pass 5\nℹ fail 1\nℹ skipped 2", (5, 1, 2)),
            (
                "Tests run: 9, Failures: 1, Errors: 2, Skipped: 3 in io.github.fencelock.LockTest",
                (3, 3, 3),
            ),
            ("took 3 passed turns\n12 files passed in the end", (0, 0, 0)),
        ] {
            assert_eq!(super::count(log), sum, "{log}");
        }
    }
}
