//! The test targets of the workspace, and what each needs of the machine.
//!
//! Both follow from the sources: a part names targets, and what a target needs is what it starts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::check::files;
use crate::need::Need;

/// The libraries that tests and programs share, by what names them. Their modules start servers, so a target that uses such a module needs
/// the server.
const SHARED: &[(&str, &str)] =
    &[("fencelock_tests::", "tests/src"), ("fencelock_servers::", "servers/src")];

/// What a source says when it starts something the machine has to have.
const STARTS: &[(&str, Need)] = &[
    ("\"redis-server\"", Need::RedisServer),
    ("Command::new(\"etcd\")", Need::EtcdServer),
    ("Path::new(\"etcd\")", Need::EtcdServer),
    ("org.apache.zookeeper.server", Need::ZookeeperServer),
    ("\"/usr/sbin/mariadbd\"", Need::Mariadb),
    ("path(\"postgres\"", Need::Postgres),
    ("Command::new(\"ab\")", Need::ApacheBench),
];
/// What a test target says when it installs packages of several languages, and leaves out those it cannot.
const INSTALLS: &[(&str, &[Need])] = &[
    ("Family::Java, \"curator\"", &[Need::Java]),
    ("Family::Java, \"jetcd\"", &[Need::Java]),
    ("foreign_tables", &[Need::Java]),
    ("Family::Go, \"clientv3\"", &[Need::Go]),
    ("Family::Python, \"kazoo\"", &[Need::Python]),
    ("{DOORS, ", &[Need::Python, Need::Node, Need::Java]),
    ("neighbours(", &[Need::Python, Need::Node, Need::Java, Need::Go]),
];

/// The folders of integration tests: those of the packages in the workspace's own folder.
pub(crate) fn folders(root: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let packages = entries.filter(|entry| entry.path().join("Cargo.toml").is_file());
    let tests = packages.map(|entry| format!("{}/tests", entry.file_name().to_string_lossy()));
    let mut folders: Vec<_> = tests.filter(|tests| !names(&root.join(tests)).is_empty()).collect();
    folders.sort();
    folders
}

/// The integration tests in a folder, as cargo names them.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let target = |path: PathBuf| {
        let is_target = path.extension().is_some_and(|extension| extension == "rs")
            || path.join("main.rs").is_file();
        is_target.then(|| path.file_stem().unwrap_or_default().to_string_lossy().into_owned())
    };
    let mut targets: Vec<_> = paths.filter_map(target).collect();
    targets.sort();
    targets
}

/// Names that stand in more than one folder. `cargo test --workspace --test=NAME` would run all of them.
pub(crate) fn ambiguous(root: &Path) -> Vec<String> {
    let mut homes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in folders(root) {
        for name in names(&root.join(&folder)) {
            homes.entry(name).or_default().push(folder.clone());
        }
    }
    let twice = homes.into_iter().filter(|(_, folders)| folders.len() > 1);
    twice.map(|(name, folders)| format!("{name}.rs stands in {}", folders.join(" and "))).collect()
}

/// What the test target of this name needs.
pub(crate) fn needs(root: &Path, name: &str) -> BTreeSet<Need> {
    let sources = sources(root, name);
    Sources { root, seen: BTreeSet::new() }.needs(sources, None)
}

/// What the program of this name needs: a file in a folder of programs, or a package named after the project.
pub(crate) fn needs_of_program(root: &Path, name: &str) -> BTreeSet<Need> {
    let programs = ["tests/src/bin", "worlds/src/bin"]
        .map(|folder| root.join(folder).join(name).with_extension("rs"));
    let package = root.join(name.trim_start_matches("fencelock-")).join("src");
    let file = programs.into_iter().find(|file| file.is_file());
    let sources = file.map_or_else(|| files(&package, "rs"), |file| vec![file]);
    Sources { root, seen: BTreeSet::new() }.needs(sources, None)
}

/// What the test target of this name can do without, showing less.
pub(crate) fn wants(root: &Path, name: &str) -> BTreeSet<Need> {
    let text: String = sources(root, name).iter().flat_map(std::fs::read_to_string).collect();
    let told = INSTALLS.iter().filter(|(said, _)| text.contains(said));
    told.flat_map(|(_, needs)| needs.iter().copied()).collect()
}

/// The files of the test target of this name.
fn sources(root: &Path, name: &str) -> Vec<PathBuf> {
    let of = |folder: &String| {
        let folder = root.join(folder);
        let file = folder.join(name).with_extension("rs");
        if file.is_file() { vec![file] } else { files(&folder.join(name), "rs") }
    };
    folders(root).iter().flat_map(of).collect()
}

/// Follows sources into the modules of the shared libraries.
struct Sources<'a> {
    root: &'a Path,
    seen: BTreeSet<PathBuf>,
}

impl Sources<'_> {
    /// `home` is the library that the sources are of, if they are of one.
    fn needs(&mut self, sources: Vec<PathBuf>, home: Option<&str>) -> BTreeSet<Need> {
        let mut needs = BTreeSet::new();
        for source in sources {
            let text = std::fs::read_to_string(source).unwrap_or_default();
            needs.extend(
                STARTS.iter().filter(|(said, _)| text.contains(said)).map(|(_, need)| *need),
            );
            let own = home.map(|folder| ("crate::", folder));
            for (library, folder) in SHARED.iter().copied().chain(own) {
                for module in modules(&text, library) {
                    let file = self.root.join(folder).join(module);
                    if self.seen.insert(file.clone()) {
                        let mut inside = files(&file, "rs");
                        inside.push(file.with_extension("rs"));
                        needs.extend(self.needs(inside, Some(folder)));
                    }
                }
            }
        }
        needs
    }
}

/// The modules of a library that a source names.
fn modules(text: &str, library: &str) -> BTreeSet<String> {
    let word = |rest: &str| -> String {
        rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let behind = text.match_indices(library).map(|(at, _)| &text[at + library.len()..]);
    let named = behind.flat_map(|rest| match rest.strip_prefix('{') {
        Some(group) => {
            let group = group.split("};").next().unwrap_or_default();
            group.split([',', '{', '}']).map(|member| word(member.trim())).collect::<Vec<_>>()
        }
        None => vec![word(rest)],
    });
    named.filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Need, ambiguous, modules, needs, needs_of_program, wants};

    fn root() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
    }

    #[test]
    fn a_target_needs_what_its_modules_start() {
        assert!(needs(root(), "redis_faults").contains(&Need::RedisServer));
        assert!(needs(root(), "conformance").contains(&Need::RedisServer), "through a module");
        assert!(needs(root(), "seeds").contains(&Need::ApacheBench));
        let bench = needs_of_program(root(), "fencelock-bench");
        for need in [
            Need::RedisServer,
            Need::EtcdServer,
            Need::ZookeeperServer,
            Need::Postgres,
            Need::Mariadb,
        ] {
            assert!(bench.contains(&need));
        }
        assert!(needs(root(), "postgres").contains(&Need::Postgres), "through two libraries");
        assert!(needs_of_program(root(), "sim").is_empty());
        assert!(wants(root(), "interop").contains(&Need::Go) && wants(root(), "hold").is_empty());
        assert!(wants(root(), "fleet").contains(&Need::Java));
        for alone in ["hold", "stateright", "sim", "sqlite_faults"] {
            assert!(needs(root(), alone).is_empty(), "{alone}");
        }
    }

    #[test]
    fn no_name_is_ambiguous() {
        assert_eq!(ambiguous(root()), Vec::<String>::new());
    }

    #[test]
    fn modules_are_found_in_groups() {
        let text = "use fencelock_tests::servers::RedisServer;\nuse fencelock_tests::{shop, peer::{A, B}};\n";
        let found: Vec<_> = modules(text, "fencelock_tests::").into_iter().collect();
        assert_eq!(found, ["A", "B", "peer", "servers", "shop"]);
    }
}
