//! Three misfortunes of a holder, each on its cue: killed, cut off from the store, frozen before its write.
//!
//! None is left to luck. The worker chosen is told to wait between its last look at the guard and its write; it says
//! when it stands there, holding the lock, and only then the misfortune happens.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::conductor::{Conductor, End};
use super::event::Event;
use super::order::{Order, Report};
use super::sale::Sale;
use super::verdict::StoreStall;

#[derive(Clone, Copy)]
enum Kind {
    Kill,
    Stall,
    Freeze,
}

enum Phase {
    /// Nothing is amiss.
    Calm,
    /// This worker's next sale is the one.
    Chosen { worker: usize, kind: Kind },
    /// Killed; waiting for somebody else to get the lock.
    Killed { worker: usize, since: Instant },
    /// The store answers nobody.
    Stalled { worker: usize, since: Instant },
    /// It answers again; waiting for the holder's write.
    Recovering { worker: usize, since: Instant },
    /// Frozen; waiting for somebody else to get the lock.
    Frozen { worker: usize, token: u64, since: Instant },
    /// Waiting for somebody else to write with a newer token.
    Overtaken { worker: usize, token: u64, since: Instant },
    /// Running again; waiting for its late write.
    Thawed { worker: usize },
}

pub(super) struct Misfortunes {
    phase: Phase,
    /// What is still to come, and after how many sales.
    planned: VecDeque<(u32, Kind)>,
}

impl Misfortunes {
    pub(super) fn planned(pieces: u32) -> Self {
        let at = |percent: u32, kind| (pieces * percent / 100, kind);
        let planned = [at(20, Kind::Kill), at(45, Kind::Stall), at(65, Kind::Freeze)];
        Self { phase: Phase::Calm, planned: planned.into() }
    }

    /// Whether this worker's next sale is to stop before its write.
    pub(super) fn wants(&self, worker: usize) -> bool {
        matches!(self.phase, Phase::Chosen { worker: chosen, .. } if chosen == worker)
    }

    /// Whether it is this worker's fate to have ended.
    pub(super) fn killed(&self, worker: usize) -> bool {
        matches!(self.phase, Phase::Killed { worker: killed, .. } if killed == worker)
    }

    /// Goes on with what a report leads to.
    pub(super) async fn advance(
        &mut self,
        show: &mut Conductor,
        sale: &mut Sale,
        reporter: usize,
        report: &Report,
    ) -> Result<(), End> {
        match (&self.phase, report) {
            (Phase::Calm, Report::Sold { .. }) => {
                if let Some((_, kind)) = self.planned.pop_front_if(|next| next.0 <= sale.sold()) {
                    let worker = show.chance.below(show.crew.size() as u64) as usize;
                    self.phase = Phase::Chosen { worker, kind };
                }
            }
            (&Phase::Chosen { worker, kind }, &Report::Poised { token, .. })
                if worker == reporter =>
            {
                self.phase = strike(show, worker, token, kind).await?;
            }
            (&Phase::Killed { worker, since }, &Report::Granted { token, .. }) => {
                show.verdict.after_kill_ms = Some(take_over(show, reporter, worker, token, since)?);
                sale.waits().trouble(since);
                sale.abandon(worker);
                show.crew.replace(worker).await?;
                let pid = show.crew.pid(worker);
                show.show(&Event::Replaced { worker: worker + 1, pid })?;
                self.phase = Phase::Calm;
            }
            (
                &Phase::Recovering { worker, since },
                Report::Sold { .. } | Report::Refused { .. } | Report::GaveUp { .. },
            ) if worker == reporter => {
                let held = matches!(report, Report::Sold { .. });
                show.verdict.store_stall =
                    if held { StoreStall::Survived } else { StoreStall::Lost };
                show.show(&Event::StallEnded { worker: worker + 1, held })?;
                sale.waits().trouble(since);
                self.phase = Phase::Calm;
            }
            (&Phase::Frozen { worker, token, since }, &Report::Granted { token: newer, .. }) => {
                let after = take_over(show, reporter, worker, newer, since)?;
                show.verdict.after_freeze_ms = Some(after);
                self.phase = Phase::Overtaken { worker, token, since };
            }
            (&Phase::Overtaken { worker, token, since }, &Report::Sold { token: newer, .. })
                if newer > Some(token) =>
            {
                // It lies in the pipe when the worker wakes, so writing is the first thing it does.
                show.crew.order(worker, Order::Proceed).await;
                show.crew.resume(worker)?;
                show.show(&Event::Thawed { worker: worker + 1, token })?;
                sale.waits().trouble(since);
                self.phase = Phase::Thawed { worker };
            }
            (&Phase::Thawed { worker }, Report::Refused { .. }) if worker == reporter => {
                show.verdict.frozen_write_refused = true;
            }
            (&Phase::Thawed { worker }, Report::Done) if worker == reporter => {
                self.phase = Phase::Calm;
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends the stall in time, so that the holder can still renew its lease.
    pub(super) async fn tick(&mut self, show: &mut Conductor) {
        if let Phase::Stalled { worker, since } = self.phase
            && since.elapsed() >= Duration::from_millis(show.verdict.lease.stall_ms)
        {
            show.stall.end();
            show.crew.order(worker, Order::Proceed).await;
            self.phase = Phase::Recovering { worker, since };
        }
    }
}

async fn strike(show: &mut Conductor, number: usize, token: u64, kind: Kind) -> Result<Phase, End> {
    let (worker, pid, since) = (number + 1, show.crew.pid(number), Instant::now());
    match kind {
        Kind::Kill => {
            show.crew.kill(number)?;
            show.show(&Event::Killed { worker, pid, token })?;
            Ok(Phase::Killed { worker: number, since })
        }
        Kind::Freeze => {
            show.crew.stop(number)?;
            show.show(&Event::Frozen { worker, pid, token })?;
            Ok(Phase::Frozen { worker: number, token, since })
        }
        Kind::Stall => {
            if let Some(why) = show.stall.impossible().map(str::to_owned) {
                show.verdict.store_stall = StoreStall::Skipped(why.clone());
                show.show(&Event::Skipped { what: "a stalled store", why })?;
                show.crew.order(number, Order::Proceed).await;
                return Ok(Phase::Calm);
            }
            let how = show.stall.begin()?;
            let for_ms = show.verdict.lease.stall_ms;
            show.show(&Event::Stalled { worker, for_ms, how })?;
            Ok(Phase::Stalled { worker: number, since })
        }
    }
}

/// Shows who got the lock after a misfortune, and answers after how many milliseconds.
fn take_over(
    show: &mut Conductor,
    reporter: usize,
    from: usize,
    token: u64,
    since: Instant,
) -> Result<u64, End> {
    let after_ms = since.elapsed().as_millis() as u64;
    show.show(&Event::TookOver { worker: reporter + 1, from: from + 1, token, after_ms })?;
    Ok(after_ms)
}
