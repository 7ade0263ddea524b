//! Plays `tests/cases` through the packages of other languages, installed as a user would, and through the command line,
//! and prints the grid. The first argument is how a language begins (`python`), a second one a part of a case's name.

use std::path::Path;
use std::process::ExitCode;

use fencelock_peers::DOORS;
use fencelock_tests::conformance::{Grid, binding, case, doors};

/// Cells played at once: each of them is several programs, most of which wait once they have started.
const AT_ONCE: usize = 12;
/// The same for the command line on all stores in full: there some cells are 32 programs, which start again and again.
const COMMANDS_AT_ONCE: usize = 2;

#[tokio::main(worker_threads = 4)]
async fn main() -> ExitCode {
    let words: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let language = words.first().map_or("", String::as_str);
    let part = words.get(1).map_or("", String::as_str);
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut cases = case::read(&tests.join("cases"));
    cases.retain(|case| case.name.contains(part));
    let rust = Path::new(env!("CARGO_BIN_EXE_actor"));
    let columns = doors(rust, Path::new(env!("CARGO_BIN_EXE_command_line_actor")), language);
    assert!(!columns.is_empty(), "there is no door whose language begins with `{language}`");
    let strict = std::env::var_os("FENCELOCK_STRICT").is_some();
    let lacking = columns.iter().any(|column| column.lacks_wrongly(strict));
    let commands = fencelock_tests::in_full() && "command line".starts_with(language);
    let at_once = if commands && !language.is_empty() { COMMANDS_AT_ONCE } else { AT_ONCE };
    let (report, well) = Grid::play(cases, columns, at_once).await.report();
    let languages: Vec<_> = DOORS.iter().map(|door| door.folder).collect();
    let absent = binding::without_actor(&tests.join(".."), &languages);
    for folder in &absent {
        println!("MISSING: {folder} has no actor; a language joins with one (tests/README.md)");
    }
    println!("{report}");
    if well && !lacking && absent.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
