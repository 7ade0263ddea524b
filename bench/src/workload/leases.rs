//! Many leases held by one process, and one lease after many: what keeping them costs.

use std::time::Duration;

use super::{Bench, milliseconds, number};
use crate::Result;
use crate::contender::{Contender, race};
use crate::report::Bound::AtMost;
use crate::report::{Row, Sheet};

pub(super) async fn run(bench: &mut Bench) -> Result<Vec<Sheet>> {
    let title = format!("leases: 10,000 held for {} s by one process", bench.of(60, 6));
    let columns = ["% of a core", "MB above idle", "lost"];
    let mut sheet = Sheet::new(&title, "fencelock", &columns);
    let mut contenders = vec![Contender::built_in("fencelock")?];
    contenders.extend(bench.peers(&["redis-semaphore"]));
    let length = bench.of(60_000, 6_000);
    let ttl = bench.of(30_000, 6_000);
    let measure = async |bench: &mut Bench, contender: &Contender| {
        let mut words = bench.words();
        words.extend([format!("ttl={ttl}"), "leases=10000".to_owned(), milliseconds(length)]);
        let entry = contender.entry("leases", words);
        let lasts = Duration::from_millis(length);
        let (figures, ()) = race(vec![entry], lasts, || Ok(()), || Ok(())).await?;
        let figure = |name| number(&figures[0], name);
        Ok(vec![figure("cpu_percent")?, figure("above_idle_mb")?, figure("lost")?])
    };
    bench.rounds(&mut sheet, contenders, measure).await?;
    if !bench.quick {
        sheet.target("% of a core", sheet.figure("fencelock", 0), AtMost(0.5));
    }
    sheet.target("MB above idle", sheet.figure("fencelock", 1), AtMost(20.0));
    sheet.target("leases lost", sheet.figure("fencelock", 2), AtMost(0.0));
    Ok(vec![sheet, rest(bench).await?])
}

/// One lock held after many short pairs.
async fn rest(bench: &mut Bench) -> Result<Sheet> {
    let title = "leases: one lock held after 10,000 short pairs";
    let columns = ["requests/s", "commands/s"];
    let mut sheet = Sheet::new(title, "fencelock", &columns);
    let length = bench.of(30_000, 3_000);
    let mut words = bench.words();
    words.extend(["pairs=10000".to_owned(), milliseconds(length)]);
    let entry = Contender::built_in("fencelock")?.entry("rest", words);
    let server = std::cell::RefCell::new(&mut bench.server);
    let (figures, counts) = race(
        vec![entry],
        Duration::from_millis(length),
        || server.borrow_mut().reset(),
        || server.borrow_mut().counts(),
    )
    .await?;
    let per_second = |calls: u64| calls as f64 * 1000.0 / length as f64;
    let (requests, commands) = (per_second(counts.scripts()), per_second(counts.calls()));
    sheet.rows.push(Row { name: "fencelock".to_owned(), figures: vec![requests, commands] });
    sheet.target("requests per second", requests, AtMost(0.2));
    sheet.target("commands per second, those inside scripts included", commands, AtMost(0.2));
    sheet.target("leases lost", number(&figures[0], "lost")?, AtMost(0.0));
    Ok(sheet)
}
