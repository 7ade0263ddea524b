//! The embedded store: a file, no server. One process alone, two that pass the lock to and fro, one that waits.

use std::time::Duration;

use super::{Bench, contending, evenness, milliseconds, number, turn_file, worst};
use crate::Result;
use crate::contender::{Contender, race};
use crate::machine::{CLIENT, SERVER};
use crate::report::Bound::{AtLeast, AtMost};
use crate::report::{Row, Sheet, median};

pub(super) async fn run(bench: &mut Bench) -> Result<Vec<Sheet>> {
    Ok(vec![pair(bench).await?, handover(bench).await?, waiting(bench).await?])
}

/// A key and a database that nobody has used.
fn words(bench: &mut Bench) -> Vec<String> {
    bench.runs += 1;
    let (number, room) = (bench.runs, bench.room.to_string_lossy().into_owned());
    vec![format!("key=bench:{number}"), format!("url=sqlite:{room}/locks-{number}.db")]
}

async fn pair(bench: &mut Bench) -> Result<Sheet> {
    let title = "sqlite: acquire and release in one process";
    let mut sheet = Sheet::new(title, "fencelock", &["p50 µs", "p99 µs"]);
    let contenders =
        vec![Contender::built_in("fencelock")?, Contender::built_in("fencelock-blocking")?];
    let pairs = bench.of(20_000, 300);
    let measure = async |bench: &mut Bench, contender: &Contender| {
        let mut words = words(bench);
        words.push(format!("pairs={pairs}"));
        let entry = contender.entry("pair", words);
        let (figures, ()) = race(vec![entry], Duration::from_mins(1), || Ok(()), || Ok(())).await?;
        Ok(vec![number(&figures[0], "p50_us")?, number(&figures[0], "p99_us")?])
    };
    bench.rounds(&mut sheet, contenders, measure).await?;
    for name in ["fencelock", "fencelock-blocking"] {
        sheet.target(format!("{name}, p50 µs"), sheet.figure(name, 0), AtMost(25.0));
    }
    Ok(sheet)
}

async fn handover(bench: &mut Bench) -> Result<Sheet> {
    let title = "sqlite: 2 processes pass the lock to and fro, one a core, empty section";
    let columns = ["p50 µs", "p99 µs", "hand-overs/s", "min/max"];
    let mut sheet = Sheet::new(title, "fencelock", &columns);
    let length = Duration::from_millis(bench.of(5_000, 300));
    let measure = async |bench: &mut Bench, contender: &Contender| {
        let turn = turn_file(&bench.room)?;
        let words = words(bench);
        let entry = |process| {
            let core = if process == 0 { SERVER } else { CLIENT };
            let words = contending(&words, length, Duration::ZERO, 1, process, &turn);
            contender.entry("contend", words).on(core)
        };
        let entries = vec![entry(0), entry(1)];
        let (figures, ()) = race(entries, length, || Ok(()), || Ok(())).await?;
        let handed: f64 = figures.iter().map(|each| number(each, "handed")).sum::<Result<f64>>()?;
        Ok(vec![
            worst(&figures, "passage_p50_us"),
            worst(&figures, "passage_p99_us"),
            handed / length.as_secs_f64(),
            evenness(&figures),
        ])
    };
    let contenders = vec![Contender::built_in("fencelock")?];
    bench.rounds(&mut sheet, contenders, measure).await?;
    sheet.target("hand-over, p50 µs", sheet.figure("fencelock", 0), AtMost(100.0));
    sheet.target("min/max per process", sheet.figure("fencelock", 3), AtLeast(0.8));
    Ok(sheet)
}

async fn waiting(bench: &mut Bench) -> Result<Sheet> {
    let title = "sqlite: a process that waits while another holds";
    let mut sheet = Sheet::new(title, "fencelock", &["CPU ms/s"]);
    let length = bench.of(10_000, 500);
    let fencelock = Contender::built_in("fencelock")?;
    let mut seen = Vec::new();
    for _ in 0..bench.rounds {
        let mut words = words(bench);
        words.push(milliseconds(length));
        let entries = vec![fencelock.entry("hold", words.clone()), fencelock.entry("wait", words)];
        let lasts = Duration::from_millis(length);
        let (figures, ()) = race(entries, lasts, || Ok(()), || Ok(())).await?;
        seen.push(number(&figures[1], "cpu_ms_per_s")?);
    }
    let seen = median(seen);
    sheet.rows.push(Row { name: "fencelock".to_owned(), figures: vec![seen] });
    sheet.target("CPU of a waiting process, ms per second", seen, AtMost(1.0));
    Ok(sheet)
}
