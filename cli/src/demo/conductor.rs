//! The conductor: hears the workers, the keyboard and the clock, and shows what happens.

use std::time::{Duration, Instant};

use fencelock::Code;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::chance::Chance;
use super::crew::{Crew, Said};
use super::event::Event;
use super::order::Report;
use super::output::Output;
use super::shop::Shop;
use super::stall::Stall;
use super::terminal::quit_keys;
use super::verdict::Verdict;
use crate::exit::code_of;

/// Time between two pictures.
const FRAME: Duration = Duration::from_millis(33);
/// A show that takes longer than this has gone wrong.
const LONGEST_SHOW: Duration = Duration::from_mins(2);

pub(super) struct Conductor {
    pub crew: Crew,
    pub shop: Shop,
    pub stall: Stall,
    pub chance: Chance,
    pub verdict: Verdict,
    output: Output,
    frames: Interval,
    keys: Option<mpsc::Receiver<()>>,
    signals: [Signal; 3],
    began: Instant,
}

/// What the conductor hears.
pub(super) enum Heard {
    /// A report, and whose.
    Report(usize, Report),
    /// A worker's process has ended.
    Gone(usize),
    /// Some time went by.
    Tick,
}

/// Why a show ends before its end.
#[derive(Debug)]
pub(super) enum End {
    /// Somebody wants it to.
    Quit,
    /// It cannot go on. The code is one of `sysexits.h`.
    Failed { exit: u8, message: String },
}

impl End {
    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::Failed { exit: 1, message: message.into() }
    }

    /// From an error of fencelock, by its code and message.
    pub(super) fn of(code: Code, message: impl Into<String>) -> Self {
        Self::Failed { exit: code_of(code), message: message.into() }
    }
}

impl From<fencelock::Error> for End {
    fn from(error: fencelock::Error) -> Self {
        Self::of(error.code(), error.to_string())
    }
}

impl From<std::io::Error> for End {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            // Nobody watches any more.
            std::io::ErrorKind::BrokenPipe => Self::Quit,
            _ => Self::failed(error.to_string()),
        }
    }
}

impl From<rusqlite::Error> for End {
    fn from(error: rusqlite::Error) -> Self {
        Self::failed(format!("the demo's own database: {error}"))
    }
}

impl Conductor {
    pub(super) fn new(
        crew: Crew,
        shop: Shop,
        stall: Stall,
        output: Output,
        verdict: Verdict,
    ) -> std::io::Result<Self> {
        let mut frames = interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ends = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = ends.map(signal);
        Ok(Self {
            crew,
            shop,
            stall,
            chance: Chance::new(verdict.seed),
            verdict,
            keys: output.is_screen().then(quit_keys),
            output,
            frames,
            signals: [interrupt?, terminate?, hangup?],
            began: Instant::now(),
        })
    }

    /// Shows what happened.
    pub(super) fn show(&mut self, event: &Event) -> Result<(), End> {
        Ok(self.output.show(event)?)
    }

    /// Waits for what comes next.
    pub(super) async fn hear(&mut self) -> Result<Heard, End> {
        let [interrupt, terminate, hangup] = &mut self.signals;
        tokio::select! {
            biased;
            Some(()) = pressed(&mut self.keys) => Err(End::Quit),
            _ = interrupt.recv() => Err(End::Quit),
            _ = terminate.recv() => Err(End::Quit),
            _ = hangup.recv() => Err(End::Quit),
            _ = self.frames.tick() => {
                self.output.draw()?;
                if self.began.elapsed() > LONGEST_SHOW {
                    let most = LONGEST_SHOW.as_secs();
                    return Err(End::failed(format!("the show did not come to its end in {most} s")));
                }
                Ok(Heard::Tick)
            }
            (worker, said) = self.crew.hear() => match said {
                Said::Report(Report::Failed { code, message }) => {
                    Err(End::of(code, format!("worker {}: {message}", worker + 1)))
                }
                Said::Report(report) => Ok(Heard::Report(worker, report)),
                Said::Gone => Ok(Heard::Gone(worker)),
            },
        }
    }

    /// Waits until every worker is ready.
    pub(super) async fn muster(&mut self) -> Result<(), End> {
        let mut ready = 0;
        while ready < self.crew.size() {
            match self.hear().await? {
                Heard::Report(..) => ready += 1,
                Heard::Gone(worker) => return Err(gone(worker)),
                Heard::Tick => {}
            }
        }
        Ok(())
    }

    /// Judges, gives the terminal back, and lets the workers go.
    pub(super) async fn finish(mut self, end: Result<(), End>) -> Result<bool, End> {
        self.verdict.seconds = self.began.elapsed().as_secs_f64();
        let shown = match end {
            Ok(()) => {
                let verdict = self.verdict.judge();
                let held = verdict.held;
                self.output.end(verdict).map(|()| held).map_err(End::from)
            }
            Err(end) => {
                // The terminal first: a user who quits should not have to wait.
                drop(self.output);
                Err(end)
            }
        };
        self.stall.end();
        self.crew.dismiss().await;
        shown
    }
}

/// A process that ended though nobody killed it.
pub(super) fn gone(worker: usize) -> End {
    End::failed(format!("the process of worker {} ended unexpectedly", worker + 1))
}

async fn pressed(keys: &mut Option<mpsc::Receiver<()>>) -> Option<()> {
    match keys {
        Some(keys) => keys.recv().await,
        None => None,
    }
}
