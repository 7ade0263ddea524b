//! Reads the logs of parts: their last lines, and how many tests passed.

use std::path::Path;

fn read(log: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(log).unwrap_or_default()).into_owned()
}

/// The lines that name a failure, then the last `most` lines, indented.
pub(crate) fn tail(log: &Path, most: usize) -> String {
    let text = read(log);
    let lines: Vec<&str> = text.lines().collect();
    let (before, last) = lines.split_at(lines.len().saturating_sub(most));
    let named = before.iter().filter(|line| names_failure(line)).take(20);
    named.chain(last).map(|line| format!("  | {line}")).collect::<Vec<_>>().join("\n")
}

/// The last line that says something.
pub(crate) fn last_line(log: &Path) -> String {
    let text = read(log);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or_default().chars().take(120).collect()
}

fn names_failure(line: &str) -> bool {
    ["error", "FAILED", "not ok", "[ERROR]", "panicked at"].iter().any(|word| line.contains(word))
}

/// How many tests passed, by the closing lines of cargo, pytest, Node's runner, Maven's and minitest.
pub(crate) fn passed(log: &Path) -> usize {
    read(log).lines().map(|line| counted(line.trim())).sum()
}

fn counted(line: &str) -> usize {
    let number = |text: &str| text.trim().parse().unwrap_or(0);
    let before =
        |word| line.split(word).next().and_then(|text| text.rsplit(' ').next()).map_or(0, number);
    if line.starts_with("test result: ") {
        before(" passed")
    } else if let Some(count) = line.strip_prefix("ℹ pass ") {
        number(count)
    } else if let Some(rest) = line.strip_prefix("Tests run: ") {
        rest.split(',').next().map_or(0, number)
    } else if line.contains(" runs, ") {
        before(" runs, ")
    } else if line.contains(" passed") && line.contains(" in ") && line.ends_with(['s', ')']) {
        before(" passed")
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn closing_lines_of_all_runners_are_counted() {
        for (line, passed) in [
            ("test result: ok. 3 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out", 3),
            ("384 passed, 2 skipped in 105.95s (0:01:45)", 384),
            ("1 failed, 7 passed in 1.00s", 7),
            ("ℹ pass 5", 5),
            ("Tests run: 9, Failures: 0, Errors: 0, Skipped: 0 in io.github.fencelock.LockTest", 9),
            ("13 runs, 40 assertions, 0 failures, 0 errors, 0 skips", 13),
            ("it passed in a moment", 0),
        ] {
            assert_eq!(counted(line), passed, "{line}");
        }
    }
}
