//! How evenly clients that all want one lock have their turns, and how long a thing takes in the middle of many.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fencelock::Client;
use fencelock::port::{LeaseStore, Outcome};

use crate::peer::Peer;

/// How long one of them waits at most.
const PATIENCE: Duration = Duration::from_secs(60);

/// The result of the turns.
pub struct Turns {
    /// How long all of them took.
    pub took: Duration,
    /// How often the lock was acquired.
    pub acquired: usize,
    /// How many turns the client with the fewest had, from when each had one.
    pub least: usize,
    /// The same of the client with the most.
    pub most: usize,
}

/// The clients take the lock `x` again and again. They begin one after the other. Once each had a turn, all of them wait, and each should have one
/// turn in each round. So many rounds are counted from then on. No client ends before that.
pub async fn all_take(clients: Vec<Client>, rounds: usize) -> Turns {
    let (count, began) = (clients.len(), Instant::now());
    let not_begun = Arc::new(AtomicUsize::new(count));
    let counted = Arc::new(AtomicUsize::new(0));
    let tasks = clients.into_iter().map(|client| {
        let (not_begun, counted) = (not_begun.clone(), counted.clone());
        tokio::spawn(async move {
            let (mut acquired, mut turns) = (0, 0);
            while counted.load(Ordering::SeqCst) < rounds * count {
                let guard = client.lock("x").acquire_within(PATIENCE).await.unwrap();
                if acquired == 0 {
                    not_begun.fetch_sub(1, Ordering::SeqCst);
                } else if not_begun.load(Ordering::SeqCst) == 0
                    && counted.fetch_add(1, Ordering::SeqCst) < rounds * count
                {
                    turns += 1;
                }
                acquired += 1;
                guard.release().await.check().unwrap();
            }
            (acquired, turns)
        })
    });
    // If one of them fails, the others would go on for ever.
    let ended = futures_util::future::try_join_all(tasks.collect::<Vec<_>>()).await.unwrap();
    let turns = || ended.iter().map(|(_, turns): &(usize, usize)| *turns);
    Turns {
        took: began.elapsed(),
        acquired: ended.iter().map(|(acquired, _)| acquired).sum(),
        least: turns().min().expect("there are clients"),
        most: turns().max().expect("there are clients"),
    }
}

/// The time in the middle.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// How long a Take and a Free take, so often, with no algorithm above the store.
pub async fn bare_pairs<S: LeaseStore>(peer: &Peer<S>, pairs: usize) -> Vec<Duration> {
    let mut times = Vec::with_capacity(pairs);
    for _ in 0..pairs {
        let began = Instant::now();
        let (owner, taken) = peer.try_take("y", Duration::from_secs(30)).await;
        assert!(matches!(taken, Ok(Outcome::Granted { .. })), "{taken:?}");
        peer.free("y", owner).await.unwrap();
        times.push(began.elapsed());
    }
    times
}

/// How long it takes to take the lock `x` and give it back, so often.
pub async fn pairs(client: &Client, pairs: usize) -> Vec<Duration> {
    let lock = client.lock("x");
    let mut times = Vec::with_capacity(pairs);
    for _ in 0..pairs {
        let began = Instant::now();
        lock.acquire().await.unwrap().release().await.check().unwrap();
        times.push(began.elapsed());
    }
    times
}
