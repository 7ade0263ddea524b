//! Many leases held by one process, and one lease after many: what keeping them costs.

use std::time::Duration;

use super::{Bench, milliseconds, number};
use crate::Result;
use crate::contender::Contender;
use crate::report::Bound::AtMost;
use crate::report::Sheet;

/// The number of leases per script by which the target counts; one script renews somewhat more.
const GROUP: f64 = 500.0;

pub(super) async fn run(bench: &mut Bench) -> Result<Vec<Sheet>> {
    let mut sheets = vec![held(bench, 10_000, 0.5, 20.0).await?];
    if !bench.quick {
        sheets.push(held(bench, 100_000, 1.0, 60.0).await?);
    }
    sheets.push(rest(bench).await?);
    Ok(sheets)
}

/// So many leases, which may take so much of a core and of memory.
async fn held(bench: &mut Bench, leases: u64, percent: f64, megabytes: f64) -> Result<Sheet> {
    let title = format!("leases: {leases} held for {} s by one process", bench.of(60, 6));
    let columns = ["% of a core", "MB above idle", "lost", "scripts / 500 leases and period"];
    let mut sheet = Sheet::new(&title, "fencelock", &columns);
    let mut contenders = vec![Contender::built_in("fencelock")?];
    if leases == 10_000 {
        contenders.extend(bench.peers(&["redis-semaphore"]));
    }
    let length = bench.of(60_000, 6_000);
    let ttl = bench.of(30_000, 6_000);
    let measure = async |bench: &mut Bench, contender: &Contender| {
        let mut words = bench.words();
        words.extend([format!("ttl={ttl}"), format!("leases={leases}"), milliseconds(length)]);
        let entry = contender.entry("leases", words);
        let lasts = Duration::from_millis(length);
        let (figures, counts) = bench.counted(vec![entry], lasts).await?;
        let figure = |name| number(&figures[0], name);
        let periods = length as f64 / (ttl as f64 / 3.0);
        let scripts = counts.scripts() as f64 / (leases as f64 / GROUP) / periods;
        Ok(vec![figure("cpu_percent")?, figure("above_idle_mb")?, figure("lost")?, scripts])
    };
    bench.rounds(&mut sheet, contenders, measure).await?;
    if !bench.quick {
        sheet.target("% of a core", sheet.figure("fencelock", 0), AtMost(percent));
    }
    sheet.target("MB above idle", sheet.figure("fencelock", 1), AtMost(megabytes));
    sheet.target("leases lost", sheet.figure("fencelock", 2), AtMost(0.0));
    let scripts = sheet.figure("fencelock", 3);
    sheet.target("scripts per 500 leases and period", scripts, AtMost(1.0));
    Ok(sheet)
}

/// One lock held after many short pairs.
async fn rest(bench: &mut Bench) -> Result<Sheet> {
    let title = "leases: one lock held after 10,000 short pairs";
    let columns = ["requests/s", "commands/s", "lost"];
    let mut sheet = Sheet::new(title, "fencelock", &columns);
    let length = bench.of(30_000, 3_000);
    let measure = async |bench: &mut Bench, contender: &Contender| {
        let mut words = bench.words();
        words.extend(["pairs=10000".to_owned(), milliseconds(length)]);
        let entry = contender.entry("rest", words);
        let (figures, counts) = bench.counted(vec![entry], Duration::from_millis(length)).await?;
        let per_second = |calls: u64| calls as f64 * 1000.0 / length as f64;
        let lost = number(&figures[0], "lost")?;
        Ok(vec![per_second(counts.scripts()), per_second(counts.calls()), lost])
    };
    bench.rounds(&mut sheet, vec![Contender::built_in("fencelock")?], measure).await?;
    let [requests, commands, lost] = [0, 1, 2].map(|column| sheet.figure("fencelock", column));
    sheet.target("requests per second", requests, AtMost(0.2));
    sheet.target("commands per second, those inside scripts included", commands, AtMost(0.2));
    sheet.target("leases lost", lost, AtMost(0.0));
    Ok(sheet)
}
