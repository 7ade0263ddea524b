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
    let rest = (request.ttl / 4).clamp(SHORTEST_REST, LONGEST_REST);
    if mutant!(TicketsRestLong) { rest * 2 } else { rest }
}

/// A hold is looked at after a third of the lease it has now, or when it ends.
pub(super) fn next_look(hold: &Hold, left: Duration, now: Instant) -> Instant {
    let period = if mutant!(RenewedLate) { left * 9 / 10 } else { left / 3 };
    let due = if hold.renew { aligned(now, period) } else { Instant::FAR };
    due.min(hold.deadline())
}
