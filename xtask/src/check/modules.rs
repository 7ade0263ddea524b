//! The house rules that no compiler knows: which module may use which, how long a file may be, that nothing but the
//! `runtime` touches the platform, that bindings ask for locks by the facade only, that every test belongs to a part,
//! and that there is one version.

use std::collections::BTreeSet;
use std::path::Path;

use super::{files, read};
use crate::part::{Site, Step, Targets, flat};
use crate::table::PARTS;
use crate::target;

/// The ceiling for a file.
const LINES: usize = 400;

/// What each module of the core may use, beside itself. `runtime::sync` is the core's mutex, `mutation` the test hook.
/// Rooms that are not named here (client, lock, guard, ...) stand on top: they may use all but the facade.
const MODULES: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("fence", &["error", "runtime::sync"]),
    ("options", &["error"]),
    ("released", &["error"]),
    ("why", &[]),
    ("event", &["error", "fence", "why"]),
    ("port", &["error", "fence"]),
    ("runtime", &["port", "error"]),
    ("driver", &["port", "error", "options", "fence", "runtime::sync"]),
    ("algorithm", &["port", "error", "event", "fence", "released", "why", "runtime::sync"]),
    ("layer", &["port", "error", "event", "runtime::sync"]),
];

/// What only `runtime/` may say. Clippy bans the same by path (core/clippy.toml); this also sees code that the present
/// features leave out.
const PLATFORM: &[&str] = &[
    "Instant::now(",
    "SystemTime",
    "clock_gettime",
    "tokio::time",
    "tokio::spawn",
    "tokio::task",
    "thread::spawn",
    "thread::sleep",
    "park_timeout",
    "wait_timeout(",
    "wait_timeout_while(",
    "getrandom::",
    "rand::",
    "new_v4",
    "HashMap",
    "HashSet",
    "RandomState",
    "select!",
];

/// What a binding may use of the core: the facade, and what it connects and tells with. Locks, guards and stores' steps are
/// not among it, so that no lock logic can stand there.
const OF_BINDINGS: &[&str] = &[
    "facade",
    "runtime",
    "options",
    "Client",
    "ClientBuilder",
    "Code",
    "Error",
    "Event",
    "Released",
    "Result",
    "port::BoxFuture",
    "port::Instant",
    "port::Runtime",
    "port::RuntimeHandle",
    "driver::sqlite::Stillness",
    "driver::sqlite::still",
    "driver::redis::Subscriber",
    "driver::redis::Heard",
    "driver::redis::Reply",
    "driver::redis::Transport",
];

/// Where the version stands once more, and how.
const PACKAGES: &[(&str, &str)] = &[
    ("Cargo.toml", r#"path = "core", version = "VERSION""#),
    ("bindings-node/package.json", r#""version": "VERSION""#),
    ("bindings-wasm/package.json", r#""version": "VERSION""#),
    ("bindings-jvm/pom.xml", "<version>VERSION</version>"),
    ("bindings-jvm/actor/pom.xml", "<version>VERSION</version>"),
    ("bindings-jvm/fencelock/pom.xml", "<version>VERSION</version>"),
    ("bindings-jvm/fencelock-kotlin/pom.xml", "<version>VERSION</version>"),
    ("bindings-jvm/spring/pom.xml", "<version>VERSION</version>"),
    ("examples/balance/node/package.json", r#""fencelock": "VERSION""#),
    ("examples/inventory/node/package.json", r#""fencelock": "VERSION""#),
    ("examples/scheduled-job/node/package.json", r#""fencelock": "VERSION""#),
    ("README.md", "io.github.fencelock:fencelock:VERSION"),
    ("bindings-jvm/README.md", "<version>VERSION</version>"),
    ("docs/tutorial/jvm.md", "<version>VERSION</version>"),
];

pub(crate) fn check(site: &Site) -> Result<String, String> {
    let mut complaints = Vec::new();
    let all = files(&site.root, "rs");
    for path in &all {
        let name = path.strip_prefix(&site.root).unwrap_or(path);
        let text = read(path)?;
        let lines = text.lines().count();
        if lines > LINES {
            complaints.push(format!("{}: {lines} lines, the ceiling is {LINES}", name.display()));
        }
        if let Ok(inside) = name.strip_prefix("core/src")
            && !is_test(path)
        {
            let found = edges(inside, &text).into_iter().chain(platform(inside, &text));
            complaints.extend(found.map(|complaint| format!("{}: {complaint}", name.display())));
        }
        if is_binding(name) {
            let found = beside_the_facade(&text);
            complaints.extend(found.map(|complaint| format!("{}: {complaint}", name.display())));
        }
    }
    complaints.extend(homeless_tests(site));
    complaints.extend(target::ambiguous(&site.root));
    complaints.extend(other_versions(site)?);
    if complaints.is_empty() {
        Ok(format!("{} files", all.len()))
    } else {
        Err(complaints.join("\n"))
    }
}

/// The code of a file, without comments and without its tests: what follows a `#[cfg(test)]` is left out, up to the end of
/// that item. Every line keeps its place.
pub(super) fn code(text: &str) -> impl Iterator<Item = &str> {
    let mut test = None;
    text.lines().map(move |line| {
        let indent = line.len() - line.trim_start().len();
        if line.trim() == "#[cfg(test)]" || line.trim().starts_with("#[cfg(all(test, ") {
            test = Some(indent);
            return "";
        }
        let code = line.split("//").next().unwrap_or_default();
        let Some(depth) = test else { return code };
        // rustfmt puts the last line of an item at the depth of its first.
        let ends = code.trim_end().ends_with([';', '}', ',']) && indent <= depth;
        test = test.filter(|_| !ends);
        ""
    })
}

/// Whether a file is a module, or lies in the folder of one, that its parent declares for tests only.
fn is_test(path: &Path) -> bool {
    path.ancestors().take_while(|path| !path.ends_with("src")).any(|path| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let declared = format!("mod {stem};");
        let parent = read(&path.with_file_name("mod.rs")).unwrap_or_default();
        let lines: Vec<&str> = parent.lines().collect();
        lines.windows(2).any(|pair| {
            pair[0].starts_with("#[cfg(") && pair[0].contains("test") && pair[1] == declared
        })
    })
}

/// Uses of other modules that are not drawn.
fn edges(file: &Path, text: &str) -> Vec<String> {
    if file == Path::new("lib.rs") {
        return Vec::new();
    }
    let module = file.iter().next().unwrap_or_default().to_string_lossy();
    let module = module.trim_end_matches(".rs");
    let drawn = MODULES.iter().find(|(name, _)| *name == module).map(|(_, drawn)| *drawn);
    let allowed = |used: &str| {
        let first = used.split("::").next().unwrap_or_default();
        first == module
            || first == "mutation"
            || drawn.map_or(first != "facade", |drawn| {
                drawn.iter().any(|name| *name == first || used.starts_with(name))
            })
    };
    let code = code(text).collect::<Vec<_>>().join("\n");
    let used = used_of("crate::", &code).into_iter().filter(|used| !allowed(used));
    used.map(|used| format!("`{module}` must not use `{used}`")).collect()
}

/// Whether a file is a binding's own, and no program over its package.
fn is_binding(name: &Path) -> bool {
    let mut folders = name.iter().map(|folder| folder.to_string_lossy());
    folders.next().is_some_and(|first| first.starts_with("bindings-"))
        && folders.next().is_some_and(|second| second == "src")
}

/// What a binding uses of the core and may not.
fn beside_the_facade(text: &str) -> impl Iterator<Item = String> {
    let code = code(text).collect::<Vec<_>>().join("\n");
    let allowed = |used: &String| {
        let whole = |name| used == name || used.starts_with(&format!("{name}::"));
        OF_BINDINGS.iter().copied().any(whole)
    };
    let used = used_of("fencelock::", &code).into_iter().filter(move |used| !allowed(used));
    used.map(|used| format!("a binding must not use `{used}`, it asks the facade"))
}

/// Every path behind this root, groups taken apart.
fn used_of(root: &str, code: &str) -> BTreeSet<String> {
    let word = |text: &str| -> String {
        text.chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == ':').collect()
    };
    let mut used = BTreeSet::new();
    for (at, _) in code.match_indices(root) {
        if code[..at].ends_with(|c: char| c == '$' || c == '_' || c.is_alphanumeric()) {
            continue;
        }
        used.extend(paths(&code[at + root.len()..], word));
    }
    used
}

/// A path, or all of a group behind it, which may have groups of its own.
fn paths(rest: &str, word: impl Fn(&str) -> String + Copy) -> Vec<String> {
    let first = word(rest);
    match rest[first.len()..].strip_prefix('{') {
        None => vec![first.trim_end_matches("::").to_owned()],
        Some(group) => members(group)
            .flat_map(|member| paths(member, word))
            .map(|member| {
                if member == "self" {
                    first.trim_end_matches("::").to_owned()
                } else {
                    first.clone() + &member
                }
            })
            .collect(),
    }
}

/// The members of a `{..}` group that was just opened, at its own depth.
fn members(group: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let end = group.find(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth < 0
    });
    let mut depth = 0;
    let comma = move |c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    };
    group[..end.unwrap_or(group.len())].split(comma).map(str::trim).filter(|part| !part.is_empty())
}

/// Words of the platform outside the module that owns them.
fn platform(file: &Path, text: &str) -> Vec<String> {
    if file.starts_with("runtime") {
        return Vec::new();
    }
    let numbered = code(text).enumerate();
    let found = numbered.flat_map(|(index, line)| {
        let said = PLATFORM.iter().filter(move |word| line.contains(**word));
        said.map(move |word| format!("line {}: `{word}` belongs to runtime/", index + 1))
    });
    found.collect()
}

/// Integration tests that no part would run.
fn homeless_tests(site: &Site) -> Vec<String> {
    let steps = || PARTS.iter().flat_map(|part| flat(part.steps));
    let housed = |folder: &str, name: &str| {
        steps().any(|step| match step {
            Step::Build(_) | Step::Program { .. } => false,
            step => step.targets().is_some_and(|targets| match targets {
                Targets::Folder(whole) => whole == folder,
                Targets::Named(names) => names.contains(&name),
                Targets::Unit | Targets::Docs => false,
            }),
        })
    };
    let folders = target::folders(&site.root);
    let targets = folders.iter().flat_map(|folder| {
        target::names(&site.root.join(folder)).into_iter().map(move |name| (folder, name))
    });
    let homeless = targets.filter(|(folder, name)| !housed(folder, name));
    let homeless = homeless.map(|(folder, name)| format!("{folder}/{name}.rs: no part runs it"));
    homeless.chain(folders.iter().flat_map(|folder| unnamed(&site.root.join(folder)))).collect()
}

/// Files beside the `main.rs` of a program of tests that it does not name, so that they are never compiled.
fn unnamed(folder: &Path) -> Vec<String> {
    let mut complaints = Vec::new();
    for main in files(folder, "rs").into_iter().filter(|file| file.ends_with("main.rs")) {
        let named = std::fs::read_to_string(&main).unwrap_or_default();
        let beside = std::fs::read_dir(main.parent().unwrap_or(folder)).into_iter().flatten();
        for file in beside.flatten().map(|entry| entry.path()) {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            let is_source = file.extension().is_some_and(|extension| extension == "rs");
            if is_source && file != main && !named.contains(&format!("mod {name};")) {
                complaints.push(format!("{}: {} does not name it", file.display(), main.display()));
            }
        }
    }
    complaints
}

/// Packages of other languages whose version is not the workspace's.
fn other_versions(site: &Site) -> Result<Vec<String>, String> {
    let manifest = read(&site.root.join("Cargo.toml"))?;
    let version = manifest.lines().find_map(|line| line.strip_prefix("version = "));
    let version = version.ok_or("Cargo.toml has no version")?.trim_matches('"');
    let mut complaints = Vec::new();
    for (package, line) in PACKAGES {
        let line = line.replace("VERSION", version);
        if !read(&site.root.join(package))?.contains(&line) {
            complaints
                .push(format!("{package} has another version than the workspace's {version}"));
        }
    }
    Ok(complaints)
}

#[cfg(test)]
mod tests {
    use super::{beside_the_facade, edges, platform};
    use std::path::Path;

    #[test]
    fn a_driver_may_not_look_up() {
        let text =
            "use crate::{port::{Step, Take}, client::Client};\nuse crate::runtime::tokio::X;\n";
        let found = edges(Path::new("driver/memory.rs"), text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().any(|complaint| complaint.contains("client::Client")));
        assert!(edges(Path::new("guard.rs"), text).is_empty());
        assert_eq!(edges(Path::new("guard.rs"), "use crate::facade::Pump;").len(), 1);
    }

    #[test]
    fn a_binding_asks_the_facade() {
        let text = "use fencelock::{Client, Lock, port::{BoxFuture, Step}};\nfencelock_jvm::Lock;\nfencelock::facade::Pump::new();\n";
        let found: Vec<_> = beside_the_facade(text).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("`Lock`") && found[1].contains("`port::Step`"), "{found:?}");
    }

    #[test]
    fn the_platform_is_seen_in_code_only() {
        let text = "// SystemTime\nlet now = SystemTime::now();\n#[cfg(test)]\nmod tests {\n    HashMap\n}\n";
        assert_eq!(platform(Path::new("client.rs"), text).len(), 1);
        assert!(platform(Path::new("runtime/tokio.rs"), text).is_empty());
        let after = "#[cfg(test)]\nmod tests;\n\n#[cfg(test)]\nuse a::{\n    HashSet,\n};\nlet map = HashMap::new();\n";
        let found = platform(Path::new("client.rs"), after);
        assert_eq!(found, ["line 8: `HashMap` belongs to runtime/"]);
    }
}
