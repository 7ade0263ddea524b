//! Plays `tests/cases` and prints the grid. An argument plays only the cases whose name contains it. Any further ones are columns
//! (`redis / rust`) or stores (`sqlite`), which alone are played, or all but those that follow a `!`. `--share=0/3` plays the first
//! of three shares of the cases, `--at-once=8` eight cells at once.

use std::path::Path;
use std::process::ExitCode;

use fencelock_tests::conformance::{Grid, case, columns};

/// Fewer would mean that cases were lost on the way.
const LEAST: usize = 180;
/// Cells played at once.
const AT_ONCE: usize = 32;

#[tokio::main(worker_threads = 4)]
async fn main() -> ExitCode {
    let (options, words): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with('-'));
    let (only, chosen) =
        words.split_first().map_or((None, &[] as &[_]), |(only, rest)| (Some(only), rest));
    let mut cases = case::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cases"));
    assert!(cases.len() >= LEAST, "there are only {} cases", cases.len());
    if let Some(only) = only {
        cases.retain(|case| case.name.contains(&**only));
    }
    if let Some(share) = options.iter().find_map(|option| option.strip_prefix("--share=")) {
        let number = |text: &str| text.parse::<usize>().expect("a share is like 0/3");
        let (at, of) = share.split_once('/').expect("a share is like 0/3");
        let (at, of) = (number(at), number(of));
        cases.retain(|case| case.turn(of) == at);
    }
    let at_once = options.iter().find_map(|option| option.strip_prefix("--at-once="));
    let at_once = at_once.map_or(AT_ONCE, |number| number.parse().expect("a number of cells"));
    let mut columns = columns(Path::new(env!("CARGO_BIN_EXE_actor")));
    columns.retain(|column| {
        let named = |word: &str| column.name() == word || column.backend.name() == word;
        let (without, with): (Vec<_>, Vec<_>) =
            chosen.iter().partition(|word| word.starts_with('!'));
        (with.is_empty() || with.iter().any(|word| named(word)))
            && !without.iter().any(|word| named(&word[1..]))
    });
    assert!(!columns.is_empty(), "there is no column {chosen:?}");
    // What these columns cannot play is played in the others; `spared` sees to it that all is played somewhere.
    cases.retain(|case| columns.iter().any(|column| column.plays(case)));
    let (report, well) = Grid::play(cases, columns, at_once).await.report();
    println!("{report}");
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
