//! Acquire and release with nobody else around.

use std::time::Duration;

use super::{Bench, MUTEXES, number};
use crate::Result;
use crate::contender::{Contender, race};
use crate::report::Bound::AtMost;
use crate::report::Sheet;

pub(super) async fn run(bench: &mut Bench) -> Result<Vec<Sheet>> {
    let title = "pair: acquire and release, nobody else around";
    let mut sheet = Sheet::new(title, "fencelock", &["p50 µs", "p99 µs"]);
    let mut contenders = Vec::new();
    for name in ["raw", "redis-rs", "fencelock", "fencelock-blocking"] {
        contenders.push(Contender::built_in(name)?);
    }
    contenders.extend(bench.peers(&MUTEXES));
    let pairs = bench.of(20_000, 500);
    let measured =
        async |bench: &mut Bench, contender: &Contender| measure(bench, contender, pairs).await;
    bench.rounds(&mut sheet, contenders, measured).await?;
    let rslock = sheet.figure("rslock", 0);
    for name in ["fencelock", "fencelock-blocking"] {
        let ratio = sheet.figure(name, 0) / rslock;
        sheet.target(format!("{name}, p50 / rslock's"), ratio, AtMost(1.0));
    }
    count(bench, &mut sheet).await?;
    Ok(vec![sheet])
}

/// The median and the 99th percentile of so many pairs, in microseconds.
pub(super) async fn measure(
    bench: &mut Bench,
    contender: &Contender,
    pairs: u64,
) -> Result<Vec<f64>> {
    let mut words = bench.words();
    words.push(format!("pairs={pairs}"));
    let entry = contender.entry("pair", words);
    let (figures, ()) = race(vec![entry], Duration::from_mins(1), || Ok(()), || Ok(())).await?;
    Ok(vec![number(&figures[0], "p50_us")?, number(&figures[0], "p99_us")?])
}

/// Measures how many round trips, scripts and commands the server and a meter count per pair.
async fn count(bench: &mut Bench, sheet: &mut Sheet) -> Result<()> {
    let pairs = 1_000;
    let mut words = bench.words();
    words.push(format!("pairs={pairs}"));
    let entry = Contender::built_in("fencelock")?.entry("metered", words);
    let (figures, counts) = bench.counted(vec![entry], Duration::from_secs(10)).await?;
    let per_pair = |calls: u64| calls as f64 / f64::from(pairs);
    sheet.target("round trips per pair", number(&figures[0], "round_trips")?, AtMost(2.0));
    sheet.target("scripts per pair", per_pair(counts.scripts()), AtMost(2.0));
    sheet.target("commands the server counts per pair", per_pair(counts.calls()), AtMost(10.0));
    let costs = counts.commands.iter().map(|(name, (calls, microseconds))| {
        format!("{name} {:.2} ({:.2} µs each)", per_pair(*calls), microseconds / *calls as f64)
    });
    sheet.notes.push(format!("per pair: {}", costs.collect::<Vec<_>>().join(", ")));
    Ok(())
}
