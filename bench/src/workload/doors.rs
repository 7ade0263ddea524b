//! The doors of other languages: a pair alone, and many in flight, beside the same from Rust and each language's own peer.

use super::{Bench, pair, parallel};
use crate::Result;
use crate::contender::Contender;
use crate::report::Bound::AtLeast;
use crate::report::Sheet;

/// A door, its language's peer, and how much quicker it should be.
type Goal = (&'static str, &'static str, f64);

const PAIRS: &[Goal] = &[("fencelock python", "redis-py", 1.25)];
/// With so many keys in flight.
const FLIGHTS: &[(u64, &[Goal])] = &[
    (32, &[("fencelock python asyncio", "redis-py-asyncio", 4.0)]),
    (64, &[("fencelock node", "redis-semaphore", 0.8)]),
];

pub(super) async fn run(bench: &mut Bench) -> Result<Vec<Sheet>> {
    let mut sheets = vec![alone(bench).await?];
    for (keys, goals) in FLIGHTS {
        sheets.push(flight(bench, *keys, goals).await?);
    }
    Ok(sheets)
}

/// Rust, the doors of these goals, and their peers.
fn contenders(bench: &Bench, rust: &[&str], goals: &[Goal]) -> Result<Vec<Contender>> {
    let built_in = rust.iter().map(|name| Contender::built_in(name));
    let mut all = built_in.collect::<Result<Vec<_>>>()?;
    let others: Vec<_> = goals.iter().flat_map(|(door, peer, _)| [*door, *peer]).collect();
    all.extend(bench.peers(&others));
    Ok(all)
}

/// Adds the goals of the doors that were measured.
fn judge(sheet: &mut Sheet, goals: &[Goal], quicker: impl Fn(f64, f64) -> f64) {
    for (door, peer, goal) in goals {
        let ratio = quicker(sheet.figure(door, 0), sheet.figure(peer, 0));
        if ratio.is_finite() {
            sheet.target(format!("{door}: times as quick as {peer}"), ratio, AtLeast(*goal));
        }
    }
}

async fn alone(bench: &mut Bench) -> Result<Sheet> {
    let title = "doors: acquire and release from other languages, nobody else around";
    let mut sheet = Sheet::new(title, "fencelock-blocking", &["p50 µs", "p99 µs"]);
    let rust = ["fencelock", "fencelock-blocking"];
    let mut all = contenders(bench, &rust, PAIRS)?;
    let more =
        ["fencelock python asyncio", "redis-py-asyncio", "fencelock node", "redis-semaphore"];
    all.extend(bench.peers(&more));
    let pairs = bench.of(10_000, 500);
    let measured = async |bench: &mut Bench, contender: &Contender| {
        pair::measure(bench, contender, pairs).await
    };
    bench.rounds(&mut sheet, all, measured).await?;
    judge(&mut sheet, PAIRS, |door, peer| peer / door);
    Ok(sheet)
}

async fn flight(bench: &mut Bench, keys: u64, goals: &[Goal]) -> Result<Sheet> {
    let title = format!("doors: {keys} keys in flight in one process");
    let mut sheet = Sheet::new(&title, "fencelock", &["pairs/s"]);
    let all = contenders(bench, &["fencelock"], goals)?;
    let length = bench.of(3_000, 500);
    let measured = async |bench: &mut Bench, contender: &Contender| {
        parallel::measure(bench, contender, keys, length).await
    };
    bench.rounds(&mut sheet, all, measured).await?;
    judge(&mut sheet, goals, |door, peer| door / peer);
    Ok(sheet)
}
