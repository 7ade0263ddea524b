//! How evenly clients that all want one lock have their turns, and how long a thing takes in the middle of many.

use std::time::{Duration, Instant};

use fencelock::Client;
use fencelock::port::{LeaseStore, Outcome};

use crate::peer::Peer;

/// How long one of them waits at most.
const PATIENCE: Duration = Duration::from_secs(60);

/// What came of it.
pub struct Turns {
    /// How long all of them took.
    pub took: Duration,
    /// How many of the first half of the turns the client with the fewest had.
    pub least: usize,
    /// The same of the client with the most.
    pub most: usize,
}

/// Each client takes the lock `x` so often. While all of them wait, each should have its turn in each round.
pub async fn all_take(clients: Vec<Client>, turns: u64) -> Turns {
    let (count, began) = (clients.len(), Instant::now());
    let tasks = clients.into_iter().map(|client| {
        tokio::spawn(async move {
            let mut ends = Vec::new();
            for _ in 0..turns {
                let guard = client.lock("x").acquire_within(PATIENCE).await.unwrap();
                ends.push(guard.token());
                guard.release().await.check().unwrap();
            }
            ends
        })
    });
    let mut tokens = Vec::new();
    for (number, task) in tasks.collect::<Vec<_>>().into_iter().enumerate() {
        tokens.extend(task.await.unwrap().into_iter().map(|token| (token, number)));
    }
    let took = began.elapsed();
    tokens.sort_unstable();
    let half = &tokens[..tokens.len() / 2];
    let share = |number| half.iter().filter(|(_, of)| *of == number).count();
    let (least, most) =
        (0..count).map(share).fold((usize::MAX, 0), |(a, b), n| (a.min(n), b.max(n)));
    Turns { took, least, most }
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
