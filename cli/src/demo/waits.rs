//! The grants of an act: how long they were waited for, and how often the lock changed hands.

use std::time::{Duration, Instant};

#[derive(Default)]
pub(super) struct Waits {
    grants: Vec<Grant>,
    troubles: Vec<(Instant, Instant)>,
}

struct Grant {
    token: u64,
    worker: usize,
    waited: Duration,
    at: Instant,
}

impl Waits {
    pub(super) fn grant(&mut self, worker: usize, token: u64, waited: Duration) {
        self.grants.push(Grant { token, worker, waited, at: Instant::now() });
    }

    /// Something was amiss from `since` until now.
    pub(super) fn trouble(&mut self, since: Instant) {
        self.troubles.push((since, Instant::now()));
    }

    /// Grants that followed, in the order of their tokens, one of another worker.
    pub(super) fn hand_overs(&self) -> u32 {
        let mut order: Vec<_> =
            self.grants.iter().map(|grant| (grant.token, grant.worker)).collect();
        order.sort_unstable();
        order.windows(2).filter(|pair| pair[0].1 != pair[1].1).count() as u32
    }

    /// The wait that `share` of all waits did not exceed, in milliseconds.
    pub(super) fn percentile(&self, share: f64) -> f64 {
        percentile(self.grants.iter().map(|grant| grant.waited).collect(), share)
    }

    /// The same of the waits into which no trouble fell.
    pub(super) fn calm_percentile(&self, share: f64) -> f64 {
        let calm = |grant: &&Grant| {
            let began = grant.at.checked_sub(grant.waited);
            let met = |(from, to): &_| began.is_none_or(|began| began <= *to) && *from <= grant.at;
            !self.troubles.iter().any(met)
        };
        percentile(self.grants.iter().filter(calm).map(|grant| grant.waited).collect(), share)
    }
}

fn percentile(mut waits: Vec<Duration>, share: f64) -> f64 {
    waits.sort_unstable();
    let rank = (waits.len() as f64 * share).ceil() as usize;
    let wait = waits.get(rank.saturating_sub(1)).copied().unwrap_or_default();
    (wait.as_secs_f64() * 1e5).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hundredth_of_a_hundred_is_the_longest() {
        let waits: Vec<_> = (1..=100).rev().map(Duration::from_millis).collect();
        assert_eq!(percentile(waits.clone(), 0.5).to_bits(), 50f64.to_bits());
        assert_eq!(percentile(waits.clone(), 0.99).to_bits(), 99f64.to_bits());
        assert_eq!(percentile(waits, 1.0).to_bits(), 100f64.to_bits());
        assert_eq!(percentile(Vec::new(), 0.5).to_bits(), 0f64.to_bits());
    }

    #[test]
    fn reports_that_arrive_out_of_order_are_put_in_the_order_of_their_tokens() {
        let mut waits = Waits::default();
        for (worker, token) in [(1, 10), (2, 30), (1, 20), (2, 40)] {
            waits.grant(worker, token, Duration::ZERO);
        }
        assert_eq!(waits.hand_overs(), 1);
    }

    #[test]
    fn a_wait_into_which_trouble_fell_is_not_calm() {
        let mut waits = Waits::default();
        waits.grant(1, 1, Duration::from_millis(3));
        std::thread::sleep(Duration::from_millis(2));
        waits.trouble(Instant::now());
        waits.grant(1, 2, Duration::from_secs(2));
        assert_eq!(waits.percentile(1.0).to_bits(), 2000f64.to_bits());
        assert_eq!(waits.calm_percentile(1.0).to_bits(), 3f64.to_bits());
    }
}
