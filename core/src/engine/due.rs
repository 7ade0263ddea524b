//! When each attempt and hold of a client is looked at next, and when the client's task looks.
//!
//! A hundred thousand leases are looked at three times in each of their lengths. They come due at few moments ([`aligned`]), each of which has a
//! list, so adding, moving and taking one searches nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use slab::Slab;

use super::hold::Hold;
use super::hold::Pending;
use super::request::Request;
use crate::port::{Instant, OwnerId};

/// No ticket rests longer than this after an answer: where the store answers, a lost push costs no more.
pub(super) const LONGEST_REST: Duration = Duration::from_secs(1);
pub(super) const SHORTEST_REST: Duration = Duration::from_millis(2);
/// A lease at least this long may wait its turn to be renewed.
const LONG: Duration = Duration::from_secs(10);

/// An attempt or a hold, and its place in the due queue.
pub(super) struct Entry {
    pub stage: Stage,
    place: Option<Place>,
}

pub(super) enum Stage {
    /// Boxed, since there may be a hundred thousand holds and only few attempts.
    Pending(Box<Pending>),
    Held(Arc<Hold>),
}

/// The list of a moment, and the index in it.
struct Place {
    due: Instant,
    is_long: bool,
    index: u32,
}

impl Entry {
    pub(super) fn new(pending: Pending) -> Self {
        Self { stage: Stage::Pending(Box::new(pending)), place: None }
    }

    pub(super) fn owner(&self) -> OwnerId {
        match &self.stage {
            Stage::Pending(pending) => pending.owner,
            Stage::Held(hold) => hold.owner,
        }
    }

    fn is_long(&self) -> bool {
        matches!(&self.stage, Stage::Held(hold) if hold.renew && hold.ttl() >= LONG)
    }
}

/// The entries that are due at each moment.
#[derive(Default)]
struct Moments(BTreeMap<Instant, Vec<usize>>);

impl Moments {
    fn first(&self) -> Instant {
        self.0.first_key_value().map_or(Instant::FAR, |(due, _)| *due)
    }
}

/// The entries of a client by the moment at which each is looked at.
#[derive(Default)]
pub(super) struct DueQueue {
    short: Moments,
    /// The long leases, of which not too many go out at once.
    long: Moments,
    /// No more long leases go out until then, unless those under way are answered before.
    pub(super) paced_until: Instant,
    /// Until when the client's task rests; it is woken if something is due earlier.
    pub(super) rests_until: Instant,
    pub(super) task: Option<Waker>,
}

impl DueQueue {
    /// The next moment at which something is due.
    pub(super) fn first(&self) -> Instant {
        self.short.first().min(self.long.first().max(self.paced_until))
    }

    pub(super) fn long_are_due(&self, now: Instant) -> bool {
        self.long.first() <= now
    }

    /// Takes an entry that is due out of the queue, the long leases last.
    pub(super) fn take(&mut self, entries: &mut Slab<Entry>, now: Instant) -> Option<usize> {
        let moments = if self.short.first() <= now {
            &self.short
        } else if now >= self.paced_until && self.long_are_due(now) {
            &self.long
        } else {
            return None;
        };
        let slot = *moments.0.first_key_value()?.1.last()?;
        self.forget(entries, slot);
        Some(slot)
    }

    /// An entry is due then, and no longer when it was before.
    pub(super) fn set(&mut self, entries: &mut Slab<Entry>, slot: usize, due: Instant) {
        self.forget(entries, slot);
        let is_long = entries[slot].is_long();
        let list = self.moments(is_long).0.entry(due).or_default();
        let index = u32::try_from(list.len()).expect("that many entries do not fit into memory");
        list.push(slot);
        entries[slot].place = Some(Place { due, is_long, index });
        if due < self.rests_until {
            self.rests_until = due;
            self.wake_task();
        }
    }

    /// Takes an entry out of the queue.
    pub(super) fn forget(&mut self, entries: &mut Slab<Entry>, slot: usize) {
        let Some(Place { due, is_long, index }) = entries[slot].place.take() else { return };
        let moments = self.moments(is_long);
        let Some(list) = moments.0.get_mut(&due) else { return };
        list.swap_remove(index as usize);
        match list.get(index as usize) {
            Some(moved) => {
                entries[*moved].place.iter_mut().for_each(|place| place.index = index);
            }
            None if list.is_empty() => drop(moments.0.remove(&due)),
            None => {}
        }
    }

    fn moments(&mut self, is_long: bool) -> &mut Moments {
        if is_long { &mut self.long } else { &mut self.short }
    }

    pub(super) fn wake_task(&mut self) {
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }
}

/// Moves the moment forward to a grid of a quarter of the period, which brings entries of one period together.
pub(super) fn aligned(now: Instant, period: Duration) -> Instant {
    let grid = u64::try_from(period.as_nanos() / 4).unwrap_or(u64::MAX).max(1);
    let due = (now + period).as_nanos();
    Instant::from_nanos(due - due % grid).max(now + period / 2)
}

/// How long a ticket that waits rests between two refreshes.
pub(super) fn ticket_rest(request: &Request) -> Duration {
    (request.ttl / 4).clamp(SHORTEST_REST, LONGEST_REST)
}

/// How long it takes until a hold whose renewal failed is renewed again: the less is left, the sooner.
pub(super) fn renewal_rest(hold: &Hold, now: Instant) -> Duration {
    (hold.deadline().since(now) / 6).clamp(SHORTEST_REST, LONGEST_REST)
}

/// A hold is looked at after a third of its lease, or when it ends. A lease counts from its request, which a push or a slow answer
/// comes long after, and a hold that is passed on wants another: then after a third of a shorter lease, which fits the time left.
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
    use crate::engine::LockId;
    use crate::port::{Kind, LockKey};

    /// Random changes, compared with a list that is searched.
    #[test]
    fn entries_come_due_by_their_moment() {
        let (mut queue, mut entries) = (DueQueue::default(), Slab::new());
        let slots: Vec<usize> = (0..20u32)
            .map(|number| {
                let owner = OwnerId::parse(&format!("{number:032x}")).expect("hexadecimal digits");
                let lock = LockId { key: LockKey::new("orders"), kind: Kind::Mutex };
                let request = Request::of_a_mutex(0);
                entries.insert(Entry::new(Pending::new(owner, lock, request, Instant::default())))
            })
            .collect();
        let mut expected: Vec<(Instant, usize)> = Vec::new();
        let mut dice = 1u64;
        let mut draw = |sides: u64| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (dice >> 33) % sides
        };
        for _ in 0..5000 {
            let slot = slots[draw(20) as usize];
            let moment = Instant::from_nanos(draw(6));
            match draw(4) {
                0 => {
                    expected.retain(|(_, other)| *other != slot);
                    queue.forget(&mut entries, slot);
                }
                1 => {
                    let first = expected.iter().map(|(due, _)| *due).min();
                    let due = first.filter(|due| *due <= moment);
                    let taken = queue.take(&mut entries, moment);
                    assert_eq!(taken.is_some(), due.is_some());
                    if let (Some(taken), Some(due)) = (taken, due) {
                        assert!(expected.contains(&(due, taken)));
                        expected.retain(|(_, other)| *other != taken);
                    }
                }
                _ => {
                    expected.retain(|(_, other)| *other != slot);
                    expected.push((moment, slot));
                    queue.set(&mut entries, slot, moment);
                }
            }
            let first = expected.iter().map(|(due, _)| *due).min();
            assert_eq!(queue.first(), first.unwrap_or(Instant::FAR));
        }
    }

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
