//! The first act: the shop without a lock, until it has sold what it does not have.

use std::collections::{BTreeSet, VecDeque};

use super::conductor::{Conductor, End, Heard, gone};
use super::event::Event;
use super::order::{Order, Report, Way};

/// How long a worker thinks between reading and writing, at first, and how much longer at each further attempt.
const THINK_US: u64 = 100;
const LONGER: u64 = 4;
const ATTEMPTS: u32 = 5;
/// How long a customer looks around before the sale begins.
const BROWSE_US: u64 = 9_000;

/// Nothing is arranged: whether two workers read the same stock is up to the machine. Where they never did, thinking
/// takes longer the next time.
pub(super) async fn race(show: &mut Conductor, buyers: u32) -> Result<(), End> {
    let mut think_us = THINK_US;
    for _ in 0..ATTEMPTS {
        show.shop.restock(show.verdict.pieces)?;
        show.show(&Event::WithoutLock { think_us })?;
        sell(show, buyers, think_us).await?;
        let books = show.shop.books()?;
        show.verdict.without_lock(books);
        let (sold, oversold) = (books.sold, show.verdict.oversold_without_lock);
        show.show(&Event::RaceEnded { sold, pieces: show.verdict.pieces, oversold })?;
        if oversold > 0 {
            break;
        }
        think_us *= LONGER;
    }
    Ok(())
}

async fn sell(show: &mut Conductor, buyers: u32, think_us: u64) -> Result<(), End> {
    let mut buyers: VecDeque<u32> = show.chance.shuffled(buyers).into();
    let mut pieces = BTreeSet::new();
    let mut busy = 0;
    for worker in 0..show.crew.size() {
        busy += u32::from(serve(show, worker, &mut buyers, think_us).await);
    }
    while busy > 0 {
        let event = match show.hear().await? {
            Heard::Report(worker, Report::Sold { buyer, piece, .. }) => {
                let again = !pieces.insert(piece);
                Event::Raced { worker: worker + 1, buyer, piece, again }
            }
            Heard::Report(worker, Report::SoldOut { buyer }) => {
                Event::TurnedAway { worker: worker + 1, buyer }
            }
            Heard::Report(worker, Report::Done) => {
                busy -= u32::from(!serve(show, worker, &mut buyers, think_us).await);
                continue;
            }
            Heard::Gone(worker) => return Err(gone(worker)),
            _ => continue,
        };
        show.show(&event)?;
    }
    Ok(())
}

/// Sends the next customer to a worker, if there is one.
async fn serve(
    show: &mut Conductor,
    worker: usize,
    buyers: &mut VecDeque<u32>,
    think_us: u64,
) -> bool {
    let Some(buyer) = buyers.pop_front() else { return false };
    let browse_us = show.chance.around(BROWSE_US);
    let think_us = show.chance.around(think_us);
    show.crew.order(worker, Order::Sell { buyer, browse_us, think_us, way: Way::Unlocked }).await;
    true
}
