//! Every kind of lock: alone, and with 64 who want it. What it costs the server is counted, so it holds for any machine.

use std::time::Duration;

use serde_json::Value;

use super::{Bench, all, contending, evenness, number, turn_file};
use crate::Result;
use crate::contender::{Contender, race};
use crate::report::Bound::{AtLeast, AtMost};
use crate::report::Sheet;

/// The mutex first: the others are shown beside it.
const KINDS: [&str; 4] =
    ["fencelock", "fencelock mode=read", "fencelock mode=write", "fencelock mode=permit"];
/// Redisson's, and how many times as often the same of ours should change hands.
const THEIRS: [(&str, &str, f64); 3] = [
    ("fencelock local=0", "kind=fair", 5.0),
    ("fencelock mode=write local=0", "kind=write", 10.0),
    ("fencelock mode=permit local=0", "kind=permit", 1.0),
];
const PROCESSES: u64 = 4;
const TASKS: u64 = 16;
/// How many times as many tasks show that what one of them costs does not grow with those who wait.
const MORE: u64 = 4;

pub(super) async fn run(bench: &mut Bench) -> Result<Vec<Sheet>> {
    Ok(vec![alone(bench).await?, wanted(bench).await?])
}

/// A contender of ours and what it is told, as one name.
fn contender(name: &str) -> Result<Contender> {
    let mut words = name.split(' ');
    let built_in = Contender::built_in(words.next().unwrap_or_default())?;
    Ok(words.fold(built_in, Contender::with))
}

async fn alone(bench: &mut Bench) -> Result<Sheet> {
    let title = "kinds: acquire and release, nobody else around";
    let columns = ["p50 µs", "round trips", "scripts", "commands"];
    let mut sheet = Sheet::new(title, KINDS[0], &columns);
    let contenders = KINDS.iter().map(|name| contender(name)).collect::<Result<Vec<_>>>()?;
    let pairs = bench.of(20_000, 300);
    let measure = async |bench: &mut Bench, contender: &Contender| {
        let mut words = bench.words();
        words.push(format!("pairs={pairs}"));
        let entry = contender.entry("pair", words.clone());
        let (times, ()) = race(vec![entry], Duration::from_mins(1), || Ok(()), || Ok(())).await?;
        let entry = contender.entry("metered", words);
        let (figures, counts) = bench.counted(vec![entry], Duration::from_mins(1)).await?;
        let per_pair = |calls: u64| calls as f64 / pairs as f64;
        let trips = number(&figures[0], "round_trips")?;
        let (scripts, calls) = (per_pair(counts.scripts()), per_pair(counts.calls()));
        Ok(vec![number(&times[0], "p50_us")?, trips, scripts, calls])
    };
    bench.rounds(&mut sheet, contenders, measure).await?;
    for name in KINDS {
        sheet.target(format!("{name}, round trips per pair"), sheet.figure(name, 1), AtMost(2.0));
        sheet.target(format!("{name}, scripts per pair"), sheet.figure(name, 2), AtMost(2.0));
    }
    Ok(sheet)
}

async fn wanted(bench: &mut Bench) -> Result<Sheet> {
    let title = "kinds: 4 processes of 16 tasks, one key, empty section";
    let columns = [
        "acquisitions/s",
        "scripts/acquisition",
        "min/max",
        "hand-overs/s",
        "scripts/acquisition, 256 tasks",
    ];
    let mut sheet = Sheet::new(title, "fencelock local=0", &columns);
    let names = KINDS.map(|name| format!("{name} local=0"));
    let mut contenders = names.iter().map(|name| contender(name)).collect::<Result<Vec<_>>>()?;
    for redisson in bench.peers(&["redisson"]) {
        contenders.extend(THEIRS.map(|(_, kind, _)| redisson.clone().with(kind)));
    }
    let length = Duration::from_millis(bench.of(3_000, 200));
    let measure = async |bench: &mut Bench, contender: &Contender| {
        let (figures, acquired, scripts) = contend(bench, contender, length, TASKS).await?;
        // A herd of theirs takes long to end.
        let ours = contender.name.starts_with("fencelock");
        let crowd =
            if ours { contend(bench, contender, length, TASKS * MORE).await?.2 } else { f64::NAN };
        let mut handed = 0.0;
        for figures in &figures {
            handed += number(figures, "handed")?;
        }
        let seconds = length.as_secs_f64();
        Ok(vec![acquired / seconds, scripts, evenness(&figures), handed / seconds, crowd])
    };
    bench.rounds(&mut sheet, contenders, measure).await?;
    for name in &names {
        for (column, tasks) in [(1, TASKS), (4, TASKS * MORE)] {
            let title = format!("{name}, scripts per acquisition, {} tasks", PROCESSES * tasks);
            sheet.target(title, sheet.figure(name, column), AtMost(2.2));
        }
    }
    for (ours, kind, least) in THEIRS {
        let ratio = sheet.figure(ours, 3) / sheet.figure(&format!("redisson {kind}"), 3);
        if ratio.is_finite() {
            let title = format!("{ours}, hand-overs / those of redisson {kind}");
            sheet.target(title, ratio, AtLeast(least));
        }
    }
    Ok(sheet)
}

/// Everybody wants the one key. What each process says, how often it was acquired, and how many scripts that took.
async fn contend(
    bench: &mut Bench,
    contender: &Contender,
    length: Duration,
    tasks: u64,
) -> Result<(Vec<Value>, f64, f64)> {
    let turn = turn_file(&bench.room)?;
    let words = bench.words();
    let entry = |process| {
        let words = contending(&words, length, Duration::ZERO, tasks, process, &turn);
        contender.entry("contend", words)
    };
    let entries = (0..PROCESSES).map(entry).collect();
    let (figures, counts) = bench.counted(entries, length).await?;
    let acquired: f64 = all(&figures, "acquired").iter().sum();
    Ok((figures, acquired, counts.scripts() as f64 / acquired))
}
