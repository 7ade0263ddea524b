//! The doors of other languages: a pair alone, many in flight, and a call that only looks, beside the same from Rust and each
//! language's own peer.

use std::time::Duration;

use super::{Bench, number, pair, parallel};
use crate::Result;
use crate::contender::{Contender, race};
use crate::report::Bound::{AtLeast, AtMost};
use crate::report::Sheet;

/// A door, its language's peer, and how many times as quick it should be.
type Goal = (&'static str, &'static str, f64);

const PAIRS: &[Goal] = &[
    ("fencelock python", "redis-py", 1.25),
    ("fencelock java", "redisson", 1.0),
    ("fencelock kotlin", "redisson", 1.0),
];
/// Measured beside them, without a goal.
const ALSO: &[&str] = &[
    "fencelock python asyncio",
    "redis-py-asyncio",
    "fencelock node",
    "fencelock wasm",
    "redis-semaphore",
];
/// The contenders whose ratio to their language's peer, over the same client of Redis, is printed without a goal.
const BESIDE: &[(&str, &str)] =
    &[("fencelock node", "redis-semaphore"), ("fencelock wasm", "redis-semaphore")];
/// With so many keys in flight, and who is measured beside them without a goal.
const FLIGHTS: &[(u64, &[Goal], &[&str])] = &[
    (32, &[("fencelock python asyncio", "redis-py-asyncio", 4.0)], &[]),
    (
        64,
        &[
            ("fencelock node", "redis-semaphore", 0.8),
            ("fencelock java", "redisson", 5.0),
            ("fencelock kotlin", "redisson", 5.0),
        ],
        &["fencelock wasm"],
    ),
];
/// Which of Rust's clients a door's pair is compared with: that which is called the same way.
const TWINS: &[(&str, &str)] = &[
    ("fencelock python", "fencelock-blocking"),
    ("fencelock python asyncio", "fencelock"),
    ("fencelock node", "fencelock"),
    ("fencelock java", "fencelock-blocking"),
    ("fencelock kotlin", "fencelock"),
    ("fencelock wasm", "fencelock"),
];
/// The contenders whose call that only looks at a guard is measured, and whether it has to take less than a microsecond.
const CROSSINGS: &[(&str, bool)] = &[
    ("fencelock python", true),
    ("fencelock java", true),
    ("fencelock node", false),
    ("fencelock wasm", false),
];

pub(super) async fn run(bench: &mut Bench) -> Result<Vec<Sheet>> {
    let mut sheets = vec![alone(bench).await?];
    for (keys, goals, also) in FLIGHTS {
        sheets.push(flight(bench, *keys, goals, also).await?);
    }
    if let Some(sheet) = crossings(bench).await? {
        sheets.push(sheet);
    }
    Ok(sheets)
}

/// Rust, the doors of these goals, their peers, and some more.
fn contenders(
    bench: &Bench,
    rust: &[&str],
    goals: &[Goal],
    also: &[&str],
) -> Result<Vec<Contender>> {
    let built_in = rust.iter().map(|name| Contender::built_in(name));
    let mut all = built_in.collect::<Result<Vec<_>>>()?;
    let others: Vec<_> = goals.iter().flat_map(|(door, peer, _)| [*door, *peer]).collect();
    all.extend(bench.peers(&[&others, also].concat()));
    Ok(all)
}

/// Adds the goals of the doors that were measured, and the ratios that have none.
fn judge(sheet: &mut Sheet, goals: &[Goal], quicker: impl Fn(f64, f64) -> f64) {
    for (door, peer, goal) in goals {
        let ratio = quicker(sheet.figure(door, 0), sheet.figure(peer, 0));
        if ratio.is_finite() {
            sheet.target(format!("{door}: times as quick as {peer}"), ratio, AtLeast(*goal));
        }
    }
    let without = |(door, _): &&(&str, &str)| goals.iter().all(|(judged, ..)| judged != door);
    for (door, peer) in BESIDE.iter().filter(without) {
        let ratio = quicker(sheet.figure(door, 0), sheet.figure(peer, 0));
        if ratio.is_finite() {
            sheet.notes.push(format!("{door}: {ratio:.2} times as quick as {peer}"));
        }
    }
}

async fn alone(bench: &mut Bench) -> Result<Sheet> {
    let title = "doors: acquire and release from other languages, nobody else around";
    let mut sheet = Sheet::new(title, "fencelock-blocking", &["p50 µs", "p99 µs"]);
    let all = contenders(bench, &["fencelock", "fencelock-blocking"], PAIRS, ALSO)?;
    let pairs = bench.of(10_000, 200);
    let measured = async |bench: &mut Bench, contender: &Contender| {
        pair::measure(bench, contender, pairs).await
    };
    bench.rounds(&mut sheet, all, measured).await?;
    judge(&mut sheet, PAIRS, |door, peer| peer / door);
    for (door, twin) in TWINS {
        let over = sheet.figure(door, 0) - sheet.figure(twin, 0);
        if over.is_finite() {
            sheet.notes.push(format!("{door}: {over:.1} µs over {twin}"));
        }
    }
    Ok(sheet)
}

async fn flight(bench: &mut Bench, keys: u64, goals: &[Goal], also: &[&str]) -> Result<Sheet> {
    let title = format!("doors: {keys} keys in flight in one process");
    let mut sheet = Sheet::new(&title, "fencelock", &["pairs/s"]);
    let all = contenders(bench, &["fencelock"], goals, also)?;
    let length = bench.of(3_000, 200);
    let measured = async |bench: &mut Bench, contender: &Contender| {
        parallel::measure(bench, contender, keys, length).await
    };
    bench.rounds(&mut sheet, all, measured).await?;
    judge(&mut sheet, goals, |door, peer| door / peer);
    Ok(sheet)
}

/// None where no door is installed.
async fn crossings(bench: &mut Bench) -> Result<Option<Sheet>> {
    let title = "doors: a call that looks whether a guard is held";
    let mut sheet = Sheet::new(title, "fencelock java", &["µs"]);
    let names: Vec<_> = CROSSINGS.iter().map(|(door, _)| *door).collect();
    let measured = async |bench: &mut Bench, contender: &Contender| {
        let entry = contender.entry("crossing", bench.words());
        let (figures, ()) = race(vec![entry], Duration::from_mins(1), || Ok(()), || Ok(())).await?;
        Ok(vec![number(&figures[0], "crossing_us")?])
    };
    let all = bench.peers(&names);
    if all.is_empty() {
        return Ok(None);
    }
    bench.rounds(&mut sheet, all, measured).await?;
    for (door, _) in CROSSINGS.iter().filter(|(_, goal)| *goal) {
        sheet.target(format!("{door}: µs a crossing"), sheet.figure(door, 0), AtMost(1.0));
    }
    Ok(Some(sheet))
}
