//! Every case on every backend with every kind of actor: a cell is played, or says why it cannot be.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fencelock::port::RuntimeHandle;
use fencelock::runtime::TokioRuntime;
use fencelock_sim::Sim;
use futures_util::StreamExt;
use futures_util::stream::iter;
use serde_json::Value;

use super::case::{Case, Need};
use super::column::Column;
use super::engine::{Notes, Run, number};
use super::ground::{Ground, Grounds};
use super::player::{ActorKind, Player};
use crate::queues;

/// In virtual time every case is played in so many orders of events, and in `FULL_SEEDS` with `FENCELOCK_FULL=1`.
const SEEDS: u64 = 4;
const FULL_SEEDS: u64 = 16;
/// Added to every upper bound in real time, for a machine that has other work. Virtual time holds the exact bounds.
const SLACK: Duration = Duration::from_secs(20);

/// The result of a cell.
enum Cell {
    Passed(Duration),
    Failed(String),
    Cannot(&'static str),
    Skipped,
    /// Left to `--full`.
    Later,
}

/// All cells.
pub struct Grid {
    columns: Vec<Column>,
    rows: Vec<String>,
    cells: BTreeMap<(usize, usize), Cell>,
    /// The errors after the last case.
    complaints: Vec<String>,
}

impl Grid {
    /// Plays all cases in all columns, so many cells at once; those that wait for hundreds of locks one after the other.
    pub async fn play(cases: Vec<Case>, columns: Vec<Column>, at_once: usize) -> Self {
        let (cases, grounds) = (Arc::new(cases), Arc::new(Grounds::default()));
        let play = |(row, at): (usize, usize)| {
            let (cases, grounds, column) = (cases.clone(), grounds.clone(), columns[at].clone());
            let later = !crate::in_full() && !column.plays_in_the_first_length(&cases[row]);
            async move {
                if later {
                    return ((row, at), Cell::Later);
                }
                // A task of its own: cells share the machine, not a thread.
                let cell = tokio::spawn(async move { cell(&column, &cases[row], &grounds).await });
                let failed = |error| Cell::Failed(format!("the engine itself failed: {error}"));
                ((row, at), cell.await.unwrap_or_else(failed))
            }
        };
        let places = (0..cases.len()).flat_map(|row| (0..columns.len()).map(move |at| (row, at)));
        // What waits for hundreds of locks at once leaves no time to the leases of others, unless time is virtual.
        let (alone, others): (Vec<_>, Vec<_>) = places.partition(|(row, at)| {
            !columns[*at].backend.is_simulated() && cases[*row].needs().contains(&Need::ManyWaits)
        });
        let others = iter(others).map(&play).buffer_unordered(at_once);
        let cells = iter(alone).then(&play).chain(others).collect().await;
        let rows = cases.iter().map(Case::title).collect();
        let mut complaints = Vec::new();
        for column in &columns {
            if let Some(ready) = &column.ready
                && let Err(why) = ready.leave(SLACK).await
            {
                complaints.push(format!("{}: {why}", column.name()));
            }
        }
        Self { columns, rows, cells, complaints }
    }

    /// Why cells cannot be played, each with its letter in the table and how many they are.
    fn reasons(&self) -> BTreeMap<&'static str, (char, usize)> {
        let mut reasons = BTreeMap::new();
        for cell in self.cells.values() {
            if let Cell::Cannot(why) = cell {
                reasons.entry(*why).or_insert(('-', 0)).1 += 1;
            }
        }
        for (reason, letter) in reasons.values_mut().zip('a'..='z') {
            reason.0 = letter;
        }
        reasons
    }

    /// How many cells were played, and came to no harm.
    pub fn passed(&self) -> usize {
        self.cells.values().filter(|cell| matches!(cell, Cell::Passed(_))).count()
    }

    /// The table, the failures in full, the reasons of cells that cannot be, and the sums. True if all is well.
    pub fn report(&self) -> (String, bool) {
        let mut text = String::new();
        let reasons = self.reasons();
        let (mut passed, mut failed, mut missing, mut skipped, mut later) = (0, 0, 0, 0, 0);
        let width = self.rows.iter().map(|row| row.chars().count()).max().unwrap_or(0);
        let mut failures = String::new();
        for complaint in &self.complaints {
            failed += 1;
            let _ = writeln!(failures, "FAILED: after the last case [{complaint}]");
        }
        for (at, column) in self.columns.iter().enumerate() {
            let _ = writeln!(text, "  {at}: {}", column.name());
        }
        let _ = write!(text, "{:width$}", "");
        for at in 0..self.columns.len() {
            let _ = write!(text, " {at:>6}");
        }
        text.push('\n');
        for (row, name) in self.rows.iter().enumerate() {
            let _ = write!(text, "{name:width$}");
            let mut played = false;
            for at in 0..self.columns.len() {
                let shown = match self.cells.get(&(row, at)) {
                    Some(Cell::Passed(time)) => {
                        (passed, played) = (passed + 1, true);
                        format!("{:.1}s", time.as_secs_f64())
                    }
                    Some(Cell::Failed(why)) => {
                        (failed, played) = (failed + 1, true);
                        let _ = writeln!(
                            failures,
                            "FAILED: {name} [{}]\n    {why}",
                            self.columns[at].name()
                        );
                        "FAILED".to_owned()
                    }
                    Some(Cell::Cannot(why)) => reasons[why].0.to_string(),
                    Some(Cell::Skipped) => {
                        (skipped, played) = (skipped + 1, true);
                        "skip".to_owned()
                    }
                    Some(Cell::Later) => {
                        (later, played) = (later + 1, true);
                        "~".to_owned()
                    }
                    None => {
                        missing += 1;
                        "MISSING".to_owned()
                    }
                };
                let _ = write!(text, " {shown:>6}");
            }
            // What no other door can play is played in the grid of Rust.
            if !played && !self.columns.iter().all(Column::is_door) {
                failed += 1;
                let _ = writeln!(failures, "FAILED: {name} is played nowhere");
            }
            text.push('\n');
        }
        let cannot: usize = reasons.values().map(|(_, count)| count).sum();
        for (why, (letter, count)) in reasons {
            let _ = writeln!(text, "  {letter}: {why} ({count} cells)");
        }
        if later > 0 {
            let _ = writeln!(text, "  ~: played with --full ({later} cells)");
        }
        for column in &self.columns {
            if let Some(why) = &column.missing {
                let _ = writeln!(text, "skipped: {}: {why}", column.name());
            }
        }
        let well = failed == 0 && missing == 0;
        let word = if well { "ok" } else { "FAILED" };
        let _ = writeln!(text, "{failures}{} cases, {missing} cells missing", self.rows.len());
        // As the other tests end, for those who count: a cell that cannot be is one the grid filters out.
        let _ = write!(
            text,
            "test result: {word}. {passed} passed; {failed} failed; {skipped} ignored; 0 measured; {} filtered out",
            cannot + later
        );
        (text, well)
    }
}

async fn cell(column: &Column, case: &Case, grounds: &Grounds) -> Cell {
    if let Some(why) = column.lacks(case) {
        return Cell::Cannot(why);
    }
    if column.missing.is_some() {
        return Cell::Skipped;
    }
    let begin = Instant::now();
    let seeds = if crate::in_full() { FULL_SEEDS } else { SEEDS };
    let played = if column.backend.is_simulated() {
        tokio::task::block_in_place(|| {
            (0..seeds).try_for_each(|seed| in_virtual_time(column, case, seed))
        })
    } else {
        in_real_time(column, case, grounds).await
    };
    match played {
        Ok(()) => Cell::Passed(begin.elapsed()),
        Err(why) => Cell::Failed(why),
    }
}

/// Every actor is a machine of its own, and the bounds are exact.
fn in_virtual_time(column: &Column, case: &Case, seed: u64) -> Result<(), String> {
    let sim = Sim::new(seed);
    let number = number();
    let name = format!("sim-{number}");
    let ground = Grounds::default().store(column.backend, &name, &case.needs());
    let clock: RuntimeHandle = sim.world().clone();
    let _queue = queues::keep(&ground.url, &clock);
    let kind = || ActorKind::Node(sim.node(0));
    let run = run(column, case, ground, clock, Duration::ZERO, number, kind);
    let played = sim.block_on(run.play());
    played
        .unwrap_or_else(|stuck| Err(stuck.to_string()))
        .map_err(|why| format!("seed {seed}: {why}"))
}

async fn in_real_time(column: &Column, case: &Case, grounds: &Grounds) -> Result<(), String> {
    let number = number();
    // Servers take seconds to start, and whoever wants the same ones waits: not where other cells' clients run.
    let store = || grounds.store(column.backend, &format!("conformance-{number}"), &case.needs());
    let mut ground = tokio::task::block_in_place(store);
    if column.incumbent.is_some() {
        ground.lift_rights();
    }
    let clock: RuntimeHandle = Arc::new(TokioRuntime::current().ok_or("the engine runs on tokio")?);
    let kind = || match &column.program {
        Some(program) => ActorKind::Program(program),
        None => ActorKind::Here(clock.clone()),
    };
    let run = run(column, case, ground, clock.clone(), SLACK, number, kind);
    run.play().await?;
    if let Some(ready) = &column.ready {
        let players = run.players.into_values();
        players.filter(|player| !player.is_gone()).for_each(|player| ready.put(player));
    }
    Ok(())
}

fn run<'a>(
    column: &'a Column,
    case: &'a Case,
    ground: Ground,
    clock: RuntimeHandle,
    slack: Duration,
    number: u64,
    kind: impl Fn() -> ActorKind<'a>,
) -> Run<'a> {
    let player = |name: &String, kind| (name.clone(), Player::launch(&kind, clock.clone()));
    // Who has never been connected begins anew.
    let ready = || column.ready.as_ref().filter(|_| case.connected)?.take();
    let actors = case.actors.iter().map(|name| match ready() {
        Some(ready) => (name.clone(), ready),
        None => player(name, kind()),
    });
    let incumbent = column.incumbent.as_ref();
    let others = incumbent.into_iter().flat_map(|(_, program)| {
        case.incumbents.iter().map(move |name| (name, ActorKind::Program(program)))
    });
    let players = actors.chain(others.map(|(name, kind)| player(name, kind))).collect();
    let of_case = case.options.get("dialect").and_then(Value::as_str);
    let of_column = incumbent.map(|(incumbent, _)| incumbent.dialect);
    let dialect = of_case.or(of_column).or(column.backend.dialect());
    let (slack, notes) = (slack.as_millis() as u64, Notes::default());
    let prefix = format!("c{number}/");
    let stay = column.ready.is_some();
    Run { case, ground, clock, slack, prefix, players, dialect, stay, notes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_without_a_result_fails() {
        let columns = crate::conformance::columns("actor".as_ref());
        let cells = (0..columns.len()).map(|at| ((0, at), Cell::Passed(Duration::ZERO)));
        let mut grid = Grid {
            rows: vec!["a case".into()],
            cells: cells.collect(),
            columns,
            complaints: Vec::new(),
        };
        assert!(grid.report().1);
        grid.cells.remove(&(0, 1));
        let (text, well) = grid.report();
        assert!(!well && text.contains("MISSING") && text.contains("1 cells missing"), "{text}");
    }
}
