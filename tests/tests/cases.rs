//! Plays the cases and prints the grid. Without `FENCELOCK_FULL=1` the long cases are played in virtual time only, and packages
//! play the basic cases on Redis.
//!
//! ```text
//! cases [COLUMN]...              Rust: `redis/rust` is a column, `redis` every column of that store, `!redis` all but these
//! cases --package LANGUAGE...    the installed packages of these languages, such as `python`, `java` or `command line`
//! cases --libraries [LIBRARY]    the cases of `cases/interop`, with clients of other libraries
//!   --only=TEXT                  only the cases whose name contains the text
//!   --at-once=N                  so many cells at once
//! ```

use std::path::Path;
use std::process::ExitCode;

use fencelock_tests::conformance::case::{self, Case};
use fencelock_tests::conformance::{Column, Grid, columns, neighbours, packages};

/// Cells played at once.
const AT_ONCE: usize = 16;
/// The same where a cell is several programs, some of which are slow to start.
const PROGRAMS_AT_ONCE: usize = 6;
/// The cases that have to fail if fencelock and another library do not hold the same locks.
const SEEN: &[&str] = &[
    "a lock of ours keeps them out",
    "a lock of theirs keeps us out",
    "they and we count exactly",
];

#[tokio::main(worker_threads = 4)]
async fn main() -> ExitCode {
    let (options, words): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with('-'));
    let value = |name: &str| options.iter().find_map(|option| option.strip_prefix(name));
    let has = |name| options.iter().any(|option| option == name);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let actor = Path::new(env!("CARGO_BIN_EXE_actor"));
    let first = words.first().map_or("", String::as_str);
    let (mut cases, mut columns, usual) = if has("--package") {
        let command_line = Path::new(env!("CARGO_BIN_EXE_command_line_actor"));
        let packages = words.iter().flat_map(|word| packages(actor, command_line, word)).collect();
        (case::read(&folder), packages, PROGRAMS_AT_ONCE)
    } else if has("--libraries") {
        let mut columns = neighbours(actor);
        columns.retain(|column| column.language.starts_with(first));
        (case::read(&folder.join("interop")), columns, PROGRAMS_AT_ONCE)
    } else {
        let mut columns = columns(actor);
        columns.retain(|column| is_chosen(column, &words));
        (case::read(&folder), columns, AT_ONCE)
    };
    let unknown = words.iter().find(|word| {
        !word.starts_with('!') && !columns.iter().any(|column| is_named(column, word))
    });
    assert!(unknown.is_none(), "there is no column {unknown:?}");
    if let Some(text) = value("--only=") {
        cases.retain(|case| case.name.contains(text));
    }
    if !has("--libraries") && !fencelock_tests::in_full() {
        columns.retain(Column::is_of_the_first_length);
    }
    let (played, unplayed): (Vec<_>, Vec<_>) =
        cases.into_iter().partition(|case| columns.iter().any(|column| column.plays(case)));
    let cases = played;
    // A case of `interop` is there for one library at least.
    let whole = has("--libraries") && words.is_empty();
    let unplayed: Vec<_> = unplayed.iter().map(|case| &case.name).collect();
    assert!(!whole || unplayed.is_empty(), "no library plays {unplayed:?}");
    assert!(!columns.is_empty(), "no column is left of {words:?}; FENCELOCK_FULL=1 has more");
    assert!(!cases.is_empty(), "no case is left; FENCELOCK_FULL=1 plays more");
    let at_once =
        value("--at-once=").map_or(usual, |text| text.parse().expect("a number of cells"));
    let strict = std::env::var_os("FENCELOCK_STRICT").is_some();
    let lacking = columns.iter().any(|column| column.lacks_wrongly(strict));
    let blind = if has("--libraries") { blind(&cases, &columns).await } else { 0 };
    let (report, well) = Grid::play(cases, columns, at_once).await.report();
    println!("{report}");
    if blind > 0 {
        println!("{blind} cases pass though fencelock looks elsewhere for the others' locks");
    }
    if well && !lacking && blind == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether a word names this column: its store, its language, or both.
fn is_named(column: &Column, word: &str) -> bool {
    let store = column.backend.name();
    let both = word.split_once('/') == Some((store, column.language));
    word == store || both || column.language.starts_with(word)
}

/// Whether the words name this column, and none of them excludes it.
fn is_chosen(column: &Column, words: &[String]) -> bool {
    let (without, with): (Vec<_>, Vec<_>) = words.iter().partition(|word| word.starts_with('!'));
    (with.is_empty() || with.iter().any(|word| is_named(column, word)))
        && !without.iter().any(|word| is_named(column, &word[1..]))
}

/// Puts the cases themselves to the test: how many of them pass though fencelock looks elsewhere for the others' locks.
async fn blind(cases: &[Case], columns: &[Column]) -> usize {
    let cases: Vec<_> = cases.iter().filter(|case| SEEN.contains(&&*case.name)).cloned().collect();
    let able = |column: &&Column| column.missing.is_none() && column.plays(&cases[0]);
    let first = columns.iter().find(|column| !cases.is_empty() && able(column));
    let columns = first.map(Column::astray).into_iter().collect();
    Grid::play(cases, columns, PROGRAMS_AT_ONCE).await.passed()
}
