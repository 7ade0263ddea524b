//! One key and a section of a millisecond, wanted by many: how much of the time the lock is held, and how long one waits.

use std::time::Duration;

use super::{Bench, MUTEXES, all, contending, evenness, number, quantile, turn_file};
use crate::Result;
use crate::contender::Contender;
use crate::report::Bound::{AtLeast, AtMost};
use crate::report::Sheet;

const PROCESSES: u64 = 4;
const TASKS: u64 = 16;

pub(super) async fn run(bench: &mut Bench) -> Result<Vec<Sheet>> {
    let title = "busy: 4 processes of 16 tasks, one key, a section of 1 ms";
    let columns = ["part of time held", "p99 wait / ideal", "scripts/acquisition", "min/max"];
    let mut sheet = Sheet::new(title, "fencelock", &columns);
    let fencelock = Contender::built_in("fencelock")?;
    let mut contenders = vec![fencelock.clone(), fencelock.with("local=0")];
    contenders.extend(bench.peers(&MUTEXES));
    let length = Duration::from_millis(bench.of(10_000, 500));
    let measure = async |bench: &mut Bench, contender: &Contender| {
        let turn = turn_file(&bench.room)?;
        let words = bench.words();
        let entry = |process| {
            let section = Duration::from_millis(1);
            let words = contending(&words, length, section, TASKS, process, &turn);
            contender.entry("contend", words)
        };
        let entries = (0..PROCESSES).map(entry).collect();
        let (figures, counts) = bench.counted(entries, length).await?;
        let mut held = 0.0;
        for figures in &figures {
            held += number(figures, "held_s")?;
        }
        let acquired: f64 = all(&figures, "acquired").iter().sum();
        // The section as it was: no timer rests exactly as long as it was asked to.
        let ideal = held / acquired * 1e6 * (PROCESSES * TASKS - 1) as f64;
        Ok(vec![
            held / length.as_secs_f64(),
            quantile(&all(&figures, "waits_us"), 0.99) / ideal,
            counts.scripts() as f64 / acquired,
            evenness(&figures),
        ])
    };
    bench.rounds(&mut sheet, contenders, measure).await?;
    for name in ["fencelock", "fencelock local=0"] {
        sheet.target(format!("{name}, part of time held"), sheet.figure(name, 0), AtLeast(0.85));
        sheet.target(format!("{name}, p99 wait / ideal"), sheet.figure(name, 1), AtMost(1.25));
        let scripts = sheet.figure(name, 2);
        sheet.target(format!("{name}, scripts per acquisition"), scripts, AtMost(2.2));
    }
    Ok(vec![sheet])
}
