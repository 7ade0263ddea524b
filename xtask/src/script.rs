//! What the scripts of the project need of the machine. It follows from what they say, as it does for test targets.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::check::files;
use crate::need::Need;

/// What a script says when it uses a tool.
const TOOLS: &[(&str, Need)] =
    &[("mvn ", Need::Java), ("npm ", Need::Node), ("python3 -m venv", Need::Python)];
/// What tests in other languages say when they start a program.
const STARTS: &[(&str, Need)] =
    &[("redis-server", Need::RedisServer), ("chromium", Need::Chromium)];
/// The languages of those tests.
const ENDINGS: &[&str] = &["java", "js", "kt", "py"];

/// What a script needs, with the scripts beside it that it names.
pub(crate) fn needs(script: &Path) -> BTreeSet<Need> {
    said(TOOLS, &texts(script))
}

/// What a script needs that runs the tests of its folder, and of the folders of tests that it names.
pub(crate) fn needs_with_tests(root: &Path, script: &Path) -> BTreeSet<Need> {
    let texts = texts(script);
    let named = |folder: &&PathBuf| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        script.starts_with(folder)
            || texts.iter().any(|text| text.contains(&*format!("/{name}/test")))
    };
    let packages: Vec<PathBuf> =
        std::fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    let sources = packages.iter().filter(named).flat_map(|folder| {
        ENDINGS.iter().flat_map(|ending| files(folder, ending)).filter(|file| is_test(root, file))
    });
    let sources: Vec<String> = sources.flat_map(std::fs::read_to_string).collect();
    let mut needs = said(TOOLS, &texts);
    needs.extend(said(STARTS, &sources));
    needs
}

fn is_test(root: &Path, file: &Path) -> bool {
    let inside = file.strip_prefix(root).unwrap_or(file);
    inside.components().any(|part| part.as_os_str() == "test" || part.as_os_str() == "tests")
}

fn said(table: &[(&str, Need)], texts: &[String]) -> BTreeSet<Need> {
    let said = table.iter().filter(|(words, _)| texts.iter().any(|text| text.contains(words)));
    said.map(|(_, need)| *need).collect()
}

/// The text of a script, and those of the scripts beside it that it runs.
fn texts(script: &Path) -> Vec<String> {
    let mut open = vec![script.to_owned()];
    let mut seen = BTreeSet::new();
    let mut texts = Vec::new();
    while let Some(script) = open.pop() {
        let Ok(text) = std::fs::read_to_string(&script) else { continue };
        if seen.insert(script.clone()) {
            let words = text.split([' ', '"', '\'', '\n', '/', '{', ',', '}']);
            let scripts =
                words.filter(|word| Path::new(word).extension().is_some_and(|end| end == "sh"));
            open.extend(scripts.map(|name| script.with_file_name(name)));
            texts.push(text);
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Need, is_test, needs, needs_with_tests};

    #[test]
    fn a_script_needs_what_it_uses() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let of = |script| needs(&root.join(script)).into_iter().collect::<Vec<_>>();
        assert_eq!(of("bindings-jvm/install.sh"), [Need::Java], "through build.sh");
        assert_eq!(of("bindings-node/install.sh"), [Need::Node]);
        assert_eq!(of("scripts/servers.sh"), [Need::Python]);
        assert_eq!(of("cli/install.sh"), [], "there is none");
        let all =
            |script| needs_with_tests(root, &root.join(script)).into_iter().collect::<Vec<_>>();
        let (redis, chromium) = (Need::RedisServer, Need::Chromium);
        assert_eq!(all("bindings-python/test.sh"), [redis, Need::Python]);
        assert_eq!(all("bindings-node/test.sh"), [redis, Need::Node]);
        assert_eq!(all("bindings-jvm/test.sh"), [redis, Need::Python, Need::Java]);
        assert_eq!(all("bindings-wasm/test.sh"), [redis, Need::Node, chromium], "of Node's tests");
    }

    #[test]
    fn a_folder_above_the_project_makes_no_test() {
        let of = |file| is_test(Path::new("/tests/fencelock"), Path::new(file));
        assert!(of("/tests/fencelock/cli/tests/program.rs"));
        assert!(!of("/tests/fencelock/cli/src/main.rs"));
    }
}
