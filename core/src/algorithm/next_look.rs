//! When the renewer looks at a hold or a ticket again.

use std::time::Duration;

use super::hold::{Hold, Request};
use crate::port::Instant;

/// No ticket rests longer than this between two looks: a lost push costs no more.
pub(super) const LONGEST_REST: Duration = Duration::from_secs(1);
pub(super) const SHORTEST_REST: Duration = Duration::from_millis(2);

/// Brings entries of one kind together: the moment is moved forward to a grid of a quarter of the period.
pub(super) fn aligned(now: Instant, period: Duration) -> Instant {
    let grid = u64::try_from(period.as_nanos() / 4).unwrap_or(u64::MAX).max(1);
    let due = (now + period).as_nanos();
    Instant::from_nanos(due - due % grid).max(now + period / 2)
}

/// When a ticket that waits is refreshed, after this long.
pub(super) fn ticket_rest(request: &Request) -> Duration {
    (request.ttl / 4).clamp(SHORTEST_REST, LONGEST_REST)
}

/// A hold is looked at after a third of its lease, or when it ends. A lease counts from its request, which a push, or a slow answer,
/// comes long after, and a hold that is passed on wants another: then after a third of a shorter lease, which fits what is left.
pub(super) fn next_look(hold: &Hold, lease: Duration, now: Instant) -> Instant {
    // However soon `max_hold` ends the claim, the lease is as long as it is.
    let lease = fitting(lease, hold.lease_end().since(now));
    let due = if hold.renew { aligned(now, lease / 3) } else { Instant::FAR };
    due.min(hold.deadline())
}

/// The lease, halved until at least three quarters of it are left. Holds whose leases are left in part then still come due together,
/// and a store that answers at once is not asked without a pause.
fn fitting(mut lease: Duration, left: Duration) -> Duration {
    while left < lease / 4 * 3 && lease > SHORTEST_REST * 6 {
        lease /= 2;
    }
    lease
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_is_left_in_part_is_halved() {
        let of =
            |left| fitting(Duration::from_millis(800), Duration::from_millis(left)).as_millis();
        assert_eq!([800, 600, 599, 300, 299, 10, 0].map(of), [800, 800, 400, 400, 200, 12, 6]);
    }

    #[test]
    fn answers_that_come_late_one_by_one_are_followed_together() {
        let lease = Duration::from_secs(3);
        // Ten thousand, answered within 40 ms when a quarter of the lease and more is over.
        let answers = (0..10_000).map(|at| Instant::from_nanos(1_700_000_000 + at * 4_000));
        let end = Instant::from_nanos(3_900_000_000);
        let looks: std::collections::BTreeSet<_> =
            answers.map(|now| aligned(now, fitting(lease, end.since(now)) / 3)).collect();
        assert!(looks.len() <= 2, "{} moments", looks.len());
    }
}
