//! The same for cells: random changes to the model and to a store, answer by answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fencelock::driver::cell::{self, CellRecord};
use fencelock::port::{CellKey, Change, Family, LeaseStore, Look, OwnerId, Swap, Version};
use proptest::prelude::*;

use super::{Subject, Verdict};

/// The step in which time passes. No sum of steps comes near the end of a cell, so that what really passes in the
/// meantime decides nothing.
const UNIT: Duration = Duration::from_millis(1_100);
const KEEPS: [Option<Duration>; 4] = [
    None,
    // Less than a minute is a minute.
    Some(Duration::from_secs(1)),
    Some(Duration::from_millis(89_650)),
    Some(Duration::from_millis(3_599_750)),
];
const PATIENCE: Duration = Duration::from_millis(400);

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Move {
    /// Somebody looks.
    Look(u8),
    /// Somebody changes something.
    Swap {
        /// Which cell.
        cell: u8,
        /// Which version it is expected to have.
        expected: Expected,
        /// The number of the client that writes.
        writer: u8,
        /// The new value.
        value: Option<&'static str>,
        /// For how long, by number.
        keep: usize,
    },
    /// So many units of time pass.
    Pass(u32),
}

/// Which version a change expects.
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    /// None.
    Nothing,
    /// The one that is there.
    Present,
    /// The one that was there before so many changes, or one that never was.
    Earlier(usize),
}

/// Random moves.
pub fn moves() -> impl Strategy<Value = Vec<Move>> {
    let expected = prop_oneof![
        2 => Just(Expected::Nothing),
        6 => Just(Expected::Present),
        2 => (1..4_usize).prop_map(Expected::Earlier),
    ];
    let value = prop_oneof![
        4 => prop::sample::select(vec![Some("1"), Some(""), Some("\"ä {}\\\"\""), Some("{\"t\":1}")]),
        1 => Just(None),
    ];
    let swap = (0..4_u8, expected, 0..3_u8, value, 0..KEEPS.len()).prop_map(
        |(cell, expected, writer, value, keep)| Move::Swap { cell, expected, writer, value, keep },
    );
    let one = prop_oneof![
        12 => swap,
        3 => (0..4_u8).prop_map(Move::Look),
        2 => (1..60_u32).prop_map(Move::Pass),
        1 => (1..4000_u32).prop_map(Move::Pass),
    ];
    prop::collection::vec(one, 1..60)
}

fn key(number: u8) -> CellKey {
    match number {
        0 => CellKey::new(Family::Version, "balance:42"),
        // The same name in another family, and names that are hard on keys.
        1 => CellKey::new(Family::Job, "balance:42"),
        2 => CellKey::new(Family::Version, "shelf {7}:}*"),
        _ => CellKey::new(Family::Job, "a'b\"%"),
    }
}

/// Runs the moves on the model and on the subject.
pub async fn run<S: Subject>(subject: &S, moves: &[Move]) -> Verdict {
    let store = subject.client().await;
    // Memory answers whoever listens.
    store.listen(Arc::new(|_| {})).await.expect("a fresh store listens");
    let cells = store.cells().expect("this store keeps cells");
    let mut model: BTreeMap<CellKey, Option<CellRecord>> = BTreeMap::new();
    let mut made: Vec<Version> = vec![Version::new(1)];
    // The store's versions, by the cell and the model's: two cells that change at one moment have the same.
    let mut theirs: BTreeMap<(u8, Version), Version> = BTreeMap::new();
    let started = Instant::now();
    for (number, one) in moves.iter().enumerate() {
        let now = subject.now();
        let difference = match one {
            Move::Pass(units) => {
                subject.pass(std::iter::once(&store), UNIT * *units).await;
                None
            }
            Move::Look(cell) => {
                let expected = cell::look(model.entry(key(*cell)).or_default().as_ref(), now);
                different(&Ok(numbered(expected, *cell, &theirs)), &cells.read(&key(*cell)).await)
            }
            Move::Swap { cell, expected, writer, value, keep } => {
                let record = model.entry(key(*cell)).or_default();
                let expected = match expected {
                    Expected::Nothing => None,
                    Expected::Present => cell::look(record.as_ref(), now).version(),
                    Expected::Earlier(by) => made.iter().rev().nth(*by).copied(),
                };
                let writer = format!("{:032x}", 0x1111_1110 + u32::from(*writer));
                let change = |expected| Change {
                    key: key(*cell),
                    expected,
                    writer: OwnerId::parse(&writer).expect("32 hexadecimal digits"),
                    value: value.map(Into::into),
                    keep: KEEPS[*keep],
                };
                let swap = cell::swap(record, &change(expected), now);
                let there = change(expected.map(|version| drawn(version, *cell, &theirs)));
                let found = cells.compare_and_set(&there).await;
                if let Swap::Done { version, .. } = swap {
                    made.push(version);
                    if let Ok(Swap::Done { version: theirs_now, .. }) = found
                        && subject.numbers_versions()
                        && theirs.values().all(|earlier| *earlier < theirs_now)
                    {
                        theirs.insert((*cell, version), theirs_now);
                    }
                }
                let swap = match swap {
                    Swap::Done { version, since } => {
                        Swap::Done { version: drawn(version, *cell, &theirs), since }
                    }
                    Swap::Other(look) => Swap::Other(numbered(look, *cell, &theirs)),
                };
                different(&Ok(swap), &found.map_err(|failure| failure.error))
            }
        };
        if subject.minds_stalls() && started.elapsed() > PATIENCE {
            return Verdict::TooSlow;
        }
        if let Some(difference) = difference {
            return Verdict::Different(format!("move {number}, {one:?}: {difference}"));
        }
    }
    store.close().await;
    Verdict::Alike
}

/// The store's version for the model's.
fn drawn(version: Version, cell: u8, theirs: &BTreeMap<(u8, Version), Version>) -> Version {
    theirs.get(&(cell, version)).copied().unwrap_or(version)
}

fn numbered(mut look: Look, cell: u8, theirs: &BTreeMap<(u8, Version), Version>) -> Look {
    for mark in look.cell.iter_mut().flat_map(|cell| &mut cell.trail) {
        mark.version = drawn(mark.version, cell, theirs);
    }
    look
}

/// Clocks stand still while something is asked, so the answers are equal to the last digit.
fn different<T: PartialEq + std::fmt::Debug>(
    expected: &fencelock::Result<T>,
    found: &fencelock::Result<T>,
) -> Option<String> {
    match (expected, found) {
        (Ok(expected), Ok(found)) if expected == found => None,
        _ => Some(format!("{expected:?} expected, {found:?} found")),
    }
}
