//! Databases, each beside bare statements and the libraries that lock in tables there: alone, and with several who want one key. Statements
//! and writes of the log are counted by the server.

use std::time::Duration;

use super::{Bench, all, contending, evenness, number, turn_file, worst};
use crate::Result;
use crate::contender::{Contender, race};
use crate::crossing::Crossing;
use crate::database::{Commit, Database, Store};
use crate::report::Bound::{AtLeast, AtMost};
use crate::report::Sheet;

/// How locks are kept there (the word before `://`; none: in the table), and how many times as long as with bare statements a pair may take.
const WAYS: &[(Store, &str, f64)] = &[
    (Store::Postgres, "", 1.25),
    (Store::Postgres, "advisory", 1.25),
    (Store::Postgres, "row", 1.25),
    (Store::Mysql, "", 1.5),
    (Store::Mysql, "getlock", 1.1),
    (Store::Mysql, "row", 1.25),
];
const PEERS: [&str; 2] = ["shedlock", "spring-jdbc"];
const PAIR: [&str; 5] = ["p50 µs", "p99 µs", "statements", "round trips", "fsyncs"];
const HANDOVER: [&str; 6] =
    ["hand-overs/s", "p50 µs", "statements each", "transactions each", "fsyncs each", "min/max"];
/// Processes, and the tasks of each.
const CROWDS: [(u64, u64); 3] = [(1, 2), (1, MANY), (4, 2)];
const MANY: u64 = 64;

pub(super) async fn run(bench: &mut Bench) -> Result<Vec<Sheet>> {
    let mut sheets = Vec::new();
    for store in [Store::Postgres, Store::Mysql] {
        if !store.is_installed() {
            eprintln!(
                "without {}: its server or its client is not there; install them",
                store.name()
            );
            continue;
        }
        let mut database = Database::start(store)?;
        for commit in [Commit::Durable, Commit::Relaxed] {
            // How long the disk takes is not what a short run is to show.
            if bench.quick && commit == Commit::Durable {
                continue;
            }
            database.set_commit(commit);
            sheets.push(pair(bench, store, &database).await?);
            for (processes, tasks) in CROWDS {
                let short = bench.quick || commit == Commit::Durable;
                if tasks == MANY || !short {
                    sheets.push(handover(bench, store, &database, processes, tasks).await?);
                }
            }
        }
    }
    Ok(sheets)
}

/// The title of a sheet: the database, its kind of commit, and the subject.
fn title(store: Store, database: &Database, what: &str) -> String {
    let waits = match database.commit() {
        Commit::Durable => "a commit waits for the disk",
        Commit::Relaxed => "no commit waits for the disk",
    };
    format!("databases: {}, {waits}, {what}", store.name())
}

/// The ways on this store with the factor of each.
fn ways(store: Store) -> impl Iterator<Item = (&'static str, f64)> {
    WAYS.iter().filter(move |(of, ..)| *of == store).map(|(_, by, most)| (*by, *most))
}

/// Somebody who locks in this way.
fn built_in(name: &str, by: &str) -> Result<Contender> {
    let contender = Contender::built_in(name)?;
    Ok(if by.is_empty() { contender } else { contender.with(&format!("by={by}")) })
}

/// The words of a course there, with a key nobody has used.
fn words(bench: &mut Bench, database: &Database, port: u16) -> Vec<String> {
    bench.runs += 1;
    let mut words = vec![format!("key=bench-{}", bench.runs)];
    words.extend(database.words(port));
    words
}

/// How many round trips a pair takes.
async fn round_trips(bench: &mut Bench, contender: &Contender, database: &Database) -> Result<f64> {
    let pairs = bench.of(200, 50);
    let crossing = Crossing::before(database.port()).await?;
    let mut words = words(bench, database, crossing.port());
    words.push(format!("pairs={pairs}"));
    let entries = vec![contender.entry("pair", words)];
    let mut before = 0;
    let go = || {
        before = crossing.trips();
        Ok(())
    };
    let (_, after) = race(entries, Duration::from_mins(1), go, || Ok(crossing.trips())).await?;
    Ok((after - before) as f64 / pairs as f64)
}

async fn pair(bench: &mut Bench, store: Store, database: &Database) -> Result<Sheet> {
    let title = title(store, database, "acquire and release, nobody else around");
    let mut sheet = Sheet::new(&title, "fencelock", &PAIR);
    let mut contenders = Vec::new();
    for (by, _) in ways(store) {
        contenders.push(built_in(store.bare(), by)?);
        contenders.push(built_in("fencelock", by)?);
    }
    contenders.extend(bench.peers(&PEERS));
    let pairs = match database.commit() {
        Commit::Durable => 1_000,
        Commit::Relaxed => bench.of(5_000, 100),
    };
    let measure = async |bench: &mut Bench, contender: &Contender| {
        let mut words = words(bench, database, database.port());
        words.push(format!("pairs={pairs}"));
        let entries = vec![contender.entry("pair", words)];
        let (figures, spent) = database.raced(entries, Duration::from_mins(5)).await?;
        let figures = &figures[0];
        let measured = number(figures, "pairs")?;
        let with_warm = measured + number(figures, "warm_pairs")?;
        Ok(vec![
            number(figures, "p50_us")?,
            number(figures, "p99_us")?,
            spent.statements as f64 / measured,
            round_trips(bench, contender, database).await?,
            spent.syncs as f64 / with_warm,
        ])
    };
    bench.rounds(&mut sheet, contenders, measure).await?;
    for (by, most) in ways(store) {
        let name = built_in("fencelock", by)?.name;
        let ratio = sheet.figure(&name, 0) / sheet.figure(&built_in(store.bare(), by)?.name, 0);
        sheet.target(format!("{name}, p50 / the same by bare statements"), ratio, AtMost(most));
        // A transaction has a beginning and an end, and on MySQL a mark.
        let statements = if by == "row" { 4.01 } else { 2.01 };
        let counted = sheet.figure(&name, 2);
        sheet.target(format!("{name}, statements a pair"), counted, AtMost(statements));
    }
    Ok(sheet)
}

async fn handover(
    bench: &mut Bench,
    store: Store,
    database: &Database,
    processes: u64,
    tasks: u64,
) -> Result<Sheet> {
    let crowd = format!("{processes} process(es) of {tasks} tasks, one key, empty section");
    let title = title(store, database, &crowd);
    let mut sheet = Sheet::new(&title, "fencelock local=0", &HANDOVER);
    let mut contenders = Vec::new();
    for (by, _) in ways(store) {
        contenders.push(built_in("fencelock", by)?.with("local=0"));
        if by.is_empty() {
            contenders.push(built_in("fencelock", by)?);
            // The floor does not wait.
            continue;
        }
        contenders.push(built_in(store.bare(), by)?);
    }
    let queue = format!("clients={MANY}");
    if tasks == MANY {
        contenders.push(built_in("fencelock", "")?.with(&queue));
    }
    contenders.extend(bench.peers(&PEERS));
    let length = Duration::from_millis(bench.of(2_000, 150));
    let measure = async |bench: &mut Bench, contender: &Contender| {
        let turn = turn_file(&bench.room)?;
        let words = words(bench, database, database.port());
        let entry = |process| {
            let words = contending(&words, length, Duration::ZERO, tasks, process, &turn);
            contender.entry("contend", words)
        };
        let entries = (0..processes).map(entry).collect();
        let (figures, spent) = database.raced(entries, length).await?;
        let acquired: f64 = all(&figures, "acquired").iter().sum();
        let handed: f64 = figures.iter().map(|each| number(each, "handed")).sum::<Result<f64>>()?;
        let slowest = worst(&figures, "passage_p50_us");
        let each = |count: u64| count as f64 / acquired;
        let (statements, begun) = (each(spent.statements), each(spent.begun));
        let (per_second, syncs) = (handed / length.as_secs_f64(), each(spent.syncs));
        Ok(vec![per_second, slowest, statements, begun, syncs, evenness(&figures)])
    };
    bench.rounds(&mut sheet, contenders, measure).await?;
    for (by, most) in ways(store).filter(|(by, _)| !by.is_empty()) {
        let name = built_in("fencelock", by)?.with("local=0").name;
        let ratio = sheet.figure(&name, 1) / sheet.figure(&built_in(store.bare(), by)?.name, 1);
        sheet.target(
            format!("{name}, hand-over p50 / the same by bare statements"),
            ratio,
            AtMost(most),
        );
    }
    if tasks == MANY && store == Store::Postgres && database.commit() == Commit::Relaxed {
        let name = format!("fencelock {queue}");
        sheet.target(
            format!("{name}, long ways per acquisition"),
            sheet.figure(&name, 3),
            AtMost(2.2),
        );
        sheet.target(format!("{name}, min/max per task"), sheet.figure(&name, 5), AtLeast(0.95));
        sheet.target(format!("{name}, hand-over p50 µs"), sheet.figure(&name, 1), AtMost(150.0));
    }
    let ours = sheet.figure("fencelock local=0", 0);
    for peer in PEERS {
        let ratio = ours / sheet.figure(peer, 0);
        sheet.target(format!("hand-overs / those of {peer}"), ratio, AtLeast(10.0));
    }
    Ok(sheet)
}
