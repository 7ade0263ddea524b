//! What a fork may copy in the middle of being used: locks and once-cells that are made once for a process. A thread of the
//! parent may be inside, and in the child nobody comes out again. Each stands here, with the reason why no child waits for it.

use super::modules::code;
use super::{files, output, read};
use crate::part::Site;
use crate::run::cargo;

/// Where a child of a fork may run our code.
const FOLDERS: &[&str] = &[
    "core/src",
    "bindings-python/src",
    "bindings-node/src",
    "bindings-jvm/src",
    "bindings-wasm/src",
];

/// Cells that whoever comes second waits for, and what threads keep. (`OnceBox` waits for nobody.)
const CELLS: &[&str] = &[
    "LazyLock",
    "LazyCell",
    "Lazy",
    "OnceLock",
    "OnceCell",
    "PyOnceLock",
    "thread_local",
    "lazy_static",
];
/// What may not be `static`, beside those.
const LOCKS: &[&str] = &["Mutex", "RwLock", "Once", "Condvar", "Semaphore"];

const OF_A_CLIENT: &str = "of one client, which its child does not use";
const NO_FORK: &str = "its host forks no process that goes on without an `exec`";
const ONE_THREAD: &str = "a module has one thread and no forks";

/// File, line and reason.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("core/src/driver/redis/host.rs", "sink: OnceLock", OF_A_CLIENT),
    ("core/src/driver/redis/link/mod.rs", "OnceLock", OF_A_CLIENT),
    ("core/src/driver/redis/cluster/mod.rs", "sink: OnceLock", OF_A_CLIENT),
    ("core/src/driver/sqlite/description.rs", "thread_local", "a thread waits for no other"),
    ("core/src/driver/memory.rs", "thread_local", ONE_THREAD),
    (
        "core/src/mutation/switch.rs",
        "thread_local",
        "a thread waits for no other, and tests only have it",
    ),
    ("bindings-python/src/connection.rs", "OnceCell", OF_A_CLIENT),
    ("bindings-python/src/grant.rs", "OnceLock", "of one grant, which its child does not use"),
    ("bindings-python/src/fork.rs", "thread_local", "a thread waits for no other"),
    ("bindings-node/src/runtime.rs", "static RUNTIME", NO_FORK),
    ("bindings-jvm/src/hub.rs", "static HUB", NO_FORK),
    ("bindings-wasm/src/runtime.rs", "thread_local", ONE_THREAD),
    ("bindings-wasm/src/host.rs", "thread_local", ONE_THREAD),
    ("bindings-wasm/src/host.rs", "OnceCell", ONE_THREAD),
];

pub(crate) fn check(site: &Site) -> Result<String, String> {
    let mut complaints = Vec::new();
    let mut met = [false; ALLOWED.len()];
    for path in FOLDERS.iter().flat_map(|folder| files(&site.root.join(folder), "rs")) {
        let text = read(&path)?;
        let name = path.strip_prefix(&site.root).unwrap_or(&path).display().to_string();
        for (line, found) in cells(&text) {
            let known =
                ALLOWED.iter().position(|(file, text, _)| *file == name && found.contains(text));
            match known {
                Some(place) => met[place] = true,
                None => complaints.push(format!(
                    "{name}:{line}: a fork may copy `{found}` while a thread is inside; make it with `OnceBox`, keep it by process, \
                     or say in xtask/src/check/statics.rs why no child waits for it"
                )),
            }
        }
    }
    complaints.extend(parking_lot_of_tokio()?);
    let stale = ALLOWED.iter().zip(met).filter(|(_, met)| !met);
    complaints
        .extend(stale.map(|((file, text, _), _)| format!("{file}: there is no `{text}` any more")));
    if complaints.is_empty() {
        Ok(format!("{} cells", ALLOWED.len()))
    } else {
        Err(complaints.join("\n"))
    }
}

/// With its feature `parking_lot` (`full` has it) tokio keeps waiting threads in one list of the process. A fork copies the list with threads
/// that the child does not have; a new thread in the place of such a one may cut others off, which then wait for ever.
fn parking_lot_of_tokio() -> Result<Option<String>, String> {
    let args = ["tree", "--workspace", "--edges=features", "--invert=tokio", "--prefix=none"];
    let tree = output(cargo(&args).env("CARGO_TERM_COLOR", "never"))?;
    let found = tree.lines().any(|line| line.starts_with("tokio feature \"parking_lot\""));
    let message = "a crate asks for tokio's feature `parking_lot`, or for `full`: name the features it needs, for the children of forks";
    Ok(found.then(|| message.to_owned()))
}

/// The lines that make such a cell, or say that something is one.
fn cells(text: &str) -> Vec<(usize, &str)> {
    let lines = code(text).enumerate().map(|(number, line)| (number + 1, line.trim()));
    lines.filter(|(_, line)| !is_import(line) && is_cell(line)).collect()
}

fn is_import(line: &str) -> bool {
    line.starts_with("use ") || line.starts_with("pub use ") || line.starts_with("pub(crate) use ")
        // One line of several.
        || line.ends_with("};") && !line.contains('=')
        || line.ends_with(',') && !line.contains([':', '(', '<'])
}

fn is_cell(line: &str) -> bool {
    let mut words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let is_static = line.split_whitespace().take(2).any(|word| word == "static");
    words.any(|word| CELLS.contains(&word) || is_static && LOCKS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_and_locks_of_a_process_are_found() {
        for line in [
            "static TEXTS: LazyLock<Texts> = LazyLock::new(make);",
            "pub(crate) static A: Mutex<u8> = Mutex::new(0);",
            "    static ONCE: Once = Once::new();",
            "thread_local! {",
            "sink: OnceLock<NoticeSink>,",
        ] {
            assert_eq!(cells(line).len(), 1, "{line}");
        }
        for line in [
            "use std::sync::{Arc, OnceLock};",
            "    Arc, LazyLock, Mutex,",
            "state: Mutex<State>,",
            "static TEXTS: OnceBox<Texts> = OnceBox::new();",
            "// a LazyLock",
            "static COUNT: AtomicU64 = AtomicU64::new(0);",
        ] {
            assert!(cells(line).is_empty(), "{line}");
        }
    }
}
