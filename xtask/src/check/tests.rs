//! Reads the names of test functions from sources.

/// The test functions of a source, but for those that are ignored.
pub(crate) fn functions(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[") {
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
