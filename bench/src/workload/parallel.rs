//! 64 keys in flight in one process.

use std::time::Duration;

use super::{Bench, milliseconds, number};
use crate::Result;
use crate::contender::{Contender, race};
use crate::report::Bound::AtLeast;
use crate::report::Sheet;

pub(super) async fn run(bench: &mut Bench) -> Result<Vec<Sheet>> {
    let title = "parallel: 64 keys in flight in one process";
    let mut sheet = Sheet::new(title, "fencelock", &["pairs/s"]);
    let mut contenders = Vec::new();
    for name in ["raw", "redis-rs", "fencelock"] {
        contenders.push(Contender::built_in(name)?);
    }
    let peers = ["rslock", "redislock", "redsync", "rueidislock", "redis-semaphore"];
    contenders.extend(bench.peers(&peers));
    let length = bench.of(3_000, 200);
    let measured = async |bench: &mut Bench, contender: &Contender| {
        measure(bench, contender, 64, length).await
    };
    bench.rounds(&mut sheet, contenders, measured).await?;
    let ratio = sheet.figure("fencelock", 0) / sheet.figure("rslock", 0);
    sheet.target("pairs per second / rslock's", ratio, AtLeast(0.8));
    Ok(vec![sheet])
}

/// How many pairs a second there are with so many keys in flight, over so many milliseconds.
pub(super) async fn measure(
    bench: &mut Bench,
    contender: &Contender,
    keys: u64,
    length: u64,
) -> Result<Vec<f64>> {
    let mut words = bench.words();
    words.extend([format!("keys={keys}"), milliseconds(length)]);
    let entry = contender.entry("parallel", words);
    let lasts = Duration::from_millis(length);
    let (figures, ()) = race(vec![entry], lasts, || Ok(()), || Ok(())).await?;
    Ok(vec![number(&figures[0], "pairs_per_s")?])
}
