//! Plays `tests/cases` and prints the grid. An argument plays only the cases whose name contains it, a second one only the
//! columns of this name (`redis / rust`).

use std::path::Path;
use std::process::ExitCode;

use fencelock_tests::conformance::{Grid, case, columns};

/// Fewer would mean that cases were lost on the way.
const LEAST: usize = 180;
/// Cells played at once.
const AT_ONCE: usize = 32;

#[tokio::main(worker_threads = 4)]
async fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let (only, column) = (words.next(), words.next());
    let mut cases = case::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cases"));
    assert!(cases.len() >= LEAST, "there are only {} cases", cases.len());
    if let Some(only) = only {
        cases.retain(|case| case.name.contains(&only));
    }
    let mut columns = columns(Path::new(env!("CARGO_BIN_EXE_actor")));
    columns.retain(|own| column.as_ref().is_none_or(|column| own.name() == *column));
    assert!(!columns.is_empty(), "there is no column {column:?}");
    // What a column cannot play is played in the whole grid.
    cases.retain(|case| column.is_none() || columns.iter().any(|own| own.plays(case)));
    let (report, well) = Grid::play(cases, columns, AT_ONCE).await.report();
    println!("{report}");
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
