//! Plays `tests/cases/interop` with the clients of other libraries beside fencelock's, and prints the grid. An argument
//! plays only the cases whose name contains it, or only the library of that name.

use std::path::Path;
use std::process::ExitCode;

use fencelock_tests::conformance::case::{self, Case};
use fencelock_tests::conformance::{Column, Grid, neighbours};

/// Fewer would mean that cases were lost on the way.
const LEAST: usize = 12;
/// What has to fail if fencelock and the others do not hold the same locks.
const SEEN: &[&str] = &[
    "a lock of ours keeps them out",
    "a lock of theirs keeps us out",
    "they and we count exactly",
];
/// Cells played at once: each of them is several programs, some of which are slow to start.
const AT_ONCE: usize = 8;

#[tokio::main(worker_threads = 4)]
async fn main() -> ExitCode {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let mut cases =
        case::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cases").join("interop"));
    assert!(cases.len() >= LEAST, "there are only {} cases", cases.len());
    let mut columns = neighbours(Path::new(env!("CARGO_BIN_EXE_actor")));
    if let Some(only) = only {
        if columns.iter().any(|column| column.language == only) {
            columns.retain(|column| column.language == only);
            cases.retain(|case| columns[0].plays(case));
        } else {
            cases.retain(|case| case.name.contains(&only));
        }
    }
    let (blind, seen) = sees(&cases, &columns).await;
    let strict = std::env::var_os("FENCELOCK_STRICT").is_some();
    let lacking = columns.iter().any(|column| column.lacks_wrongly(strict));
    let (report, well) = Grid::play(cases, columns, AT_ONCE).await.report();
    println!("{blind} of {seen} cases do not see clients that hold other locks\n{report}");
    if well && !lacking && blind == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Puts the cases themselves to the test: how many of them pass though fencelock looks elsewhere for the others' locks.
async fn sees(cases: &[Case], columns: &[Column]) -> (usize, usize) {
    let cases: Vec<_> = cases.iter().filter(|case| SEEN.contains(&&*case.name)).cloned().collect();
    let able = |column: &&Column| column.missing.is_none() && column.plays(&cases[0]);
    let first = columns.iter().find(|column| !cases.is_empty() && able(column));
    let columns: Vec<_> = first.map(Column::astray).into_iter().collect();
    let count = cases.len();
    (Grid::play(cases, columns, AT_ONCE).await.passed(), count)
}
