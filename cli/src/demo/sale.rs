//! The second act: the same shop under the lock, with its misfortunes.

use std::collections::VecDeque;
use std::time::Duration;

use super::conductor::{Conductor, End, Heard, gone};
use super::event::Event;
use super::misfortune::Misfortunes;
use super::order::{Order, Report, Way};
use super::waits::Waits;

/// How long a worker thinks while it holds the lock: enough for the eye to follow.
const THINK_US: u64 = 1_500;

pub(super) struct Sale {
    buyers: VecDeque<u32>,
    /// Whom each worker serves.
    serving: Vec<Option<u32>>,
    sold: u32,
    waits: Waits,
}

/// Sells to every buyer, or tells him that there is nothing left.
pub(super) async fn sell(show: &mut Conductor, buyers: u32, store: String) -> Result<(), End> {
    show.shop.restock(show.verdict.pieces)?;
    show.show(&Event::WithLock { store, ttl_ms: show.verdict.lease.ttl_ms })?;
    let mut sale = Sale {
        buyers: show.chance.shuffled(buyers).into(),
        serving: vec![None; show.crew.size()],
        sold: 0,
        waits: Waits::default(),
    };
    let mut misfortunes = Misfortunes::planned(show.verdict.pieces);
    for worker in 0..show.crew.size() {
        sale.serve(show, &misfortunes, worker).await;
    }
    while sale.serving.iter().any(Option::is_some) {
        match show.hear().await? {
            Heard::Report(worker, report) => {
                sale.note(show, worker, &report)?;
                misfortunes.advance(show, &mut sale, worker, &report).await?;
                if matches!(report, Report::Done | Report::Ready) {
                    sale.serving[worker] = None;
                    sale.serve(show, &misfortunes, worker).await;
                }
            }
            Heard::Gone(worker) if misfortunes.killed(worker) => {}
            Heard::Gone(worker) => return Err(gone(worker)),
            Heard::Tick => misfortunes.tick(show).await,
        }
    }
    let (waits, verdict) = (&sale.waits, &mut show.verdict);
    verdict.hand_overs = waits.hand_overs();
    verdict.p50_wait_ms = waits.percentile(0.5);
    verdict.p99_wait_ms = waits.percentile(0.99);
    verdict.p99_calm_wait_ms = waits.calm_percentile(0.99);
    verdict.with_lock(show.shop.books()?);
    Ok(())
}

impl Sale {
    pub(super) fn sold(&self) -> u32 {
        self.sold
    }

    pub(super) fn waits(&mut self) -> &mut Waits {
        &mut self.waits
    }

    /// The worker will not come back to its customer, who goes to the head of the line.
    pub(super) fn abandon(&mut self, worker: usize) {
        if let Some(buyer) = self.serving[worker].take() {
            self.buyers.push_front(buyer);
        }
    }

    async fn serve(&mut self, show: &mut Conductor, misfortunes: &Misfortunes, worker: usize) {
        let Some(buyer) = self.buyers.pop_front() else { return };
        let way = if misfortunes.wants(worker) { Way::Poised } else { Way::Locked };
        let think_us = show.chance.around(THINK_US);
        self.serving[worker] = Some(buyer);
        show.crew.order(worker, Order::Sell { buyer, browse_us: 0, think_us, way }).await;
    }

    /// Shows a report and keeps count.
    fn note(&mut self, show: &mut Conductor, number: usize, report: &Report) -> Result<(), End> {
        let worker = number + 1;
        let event = match *report {
            Report::Waiting { buyer } => Event::Waiting { worker, buyer },
            Report::Granted { buyer, token, waited_us, left_ms } => {
                self.waits.grant(number, token, Duration::from_micros(waited_us));
                Event::Granted { worker, buyer, token, waited_us, left_ms }
            }
            Report::Poised { left_ms, .. } | Report::Holding { left_ms } => {
                Event::Holding { worker, left_ms }
            }
            Report::Writing => Event::Writing { worker },
            Report::Sold { buyer, piece, token } => {
                self.sold += 1;
                let token = token.unwrap_or_default();
                Event::Sold { worker, buyer, piece, token, sold: self.sold }
            }
            Report::SoldOut { buyer } => {
                show.verdict.turned_away += 1;
                Event::TurnedAway { worker, buyer }
            }
            Report::Refused { buyer, token, newest, knew } => {
                show.verdict.stale_writes_refused += 1;
                show.verdict.refused_while_held += u32::from(!knew);
                self.buyers.push_front(buyer);
                let refused = show.verdict.stale_writes_refused;
                Event::Refused { worker, buyer, token, newest, knew, refused }
            }
            Report::GaveUp { buyer, token } => {
                self.buyers.push_front(buyer);
                Event::GaveUp { worker, buyer, token }
            }
            Report::Done | Report::Ready => Event::Idle { worker },
            Report::Counted { .. } | Report::Failed { .. } => return Ok(()),
        };
        show.show(&event)
    }
}
