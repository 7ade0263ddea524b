//! One key, an empty section: how often a second the lock goes to *another* task.

use std::time::Duration;

use super::{Bench, MUTEXES, all, contending, evenness, number, turn_file};
use crate::Result;
use crate::contender::{Contender, race};
use crate::report::Bound::AtLeast;
use crate::report::Sheet;

pub(super) async fn run(bench: &mut Bench) -> Result<Vec<Sheet>> {
    let one = setting(bench, 1, 8).await?;
    let four = setting(bench, 4, 2).await?;
    Ok(vec![one, four])
}

async fn setting(bench: &mut Bench, processes: u64, tasks: u64) -> Result<Sheet> {
    let title =
        format!("handover: {processes} process(es) of {tasks} tasks, one key, empty section");
    let columns = ["hand-overs/s", "acquisitions/s", "min/max"];
    let mut sheet = Sheet::new(&title, "fencelock local=0", &columns);
    let fencelock = Contender::built_in("fencelock")?;
    let mut contenders = vec![fencelock.clone().with("local=0"), fencelock];
    contenders.extend(bench.peers(&MUTEXES));
    let length = Duration::from_millis(bench.of(3_000, 200));
    let measure = async |bench: &mut Bench, contender: &Contender| {
        let turn = if processes > 1 { turn_file(&bench.room)? } else { String::new() };
        let words = bench.words();
        let entry = |process| {
            let words = contending(&words, length, Duration::ZERO, tasks, process, &turn);
            contender.entry("contend", words)
        };
        let entries = (0..processes).map(entry).collect();
        let (figures, ()) = race(entries, length, || Ok(()), || Ok(())).await?;
        let mut handed = 0.0;
        for figures in &figures {
            handed += number(figures, "handed")?;
        }
        let seconds = length.as_secs_f64();
        let acquired: f64 = all(&figures, "acquired").iter().sum();
        Ok(vec![handed / seconds, acquired / seconds, evenness(&figures)])
    };
    bench.rounds(&mut sheet, contenders, measure).await?;
    let best = sheet.best_peer(0);
    let ratio = sheet.figure("fencelock local=0", 0) / best;
    sheet.target("without local passing, hand-overs / the best peer's", ratio, AtLeast(3.0));
    let evenness = sheet.figure("fencelock local=0", 2);
    sheet.target("without local passing, min/max per task", evenness, AtLeast(0.95));
    if processes == 1 {
        let ratio = sheet.figure("fencelock", 0) / best;
        sheet.target("with local passing, hand-overs / the best peer's", ratio, AtLeast(20.0));
    }
    Ok(sheet)
}
