//! Reads the names of test functions from sources.

/// How the macro is called that makes a test of each function it names, once for each way to the store.
const IN_BOTH_WAYS: &str = "in_both_ways! {";

/// The test functions of a source, but for those that are ignored.
pub(crate) fn functions(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    let (mut is_test, mut in_ways) = (false, false);
    for line in source.lines().map(str::trim) {
        if line == IN_BOTH_WAYS || line == "}" {
            in_ways = line == IN_BOTH_WAYS;
        } else if in_ways {
            names.push(line.trim_end_matches(',').to_owned());
        } else if line.starts_with("#[") {
            is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            is_test &= !line.starts_with("#[ignore");
        } else if let Some((_, name)) = line.split_once("fn ") {
            if is_test {
                names.push(name.split('(').next().unwrap_or_default().to_owned());
            }
            is_test = false;
        }
    }
    names
}
