//! When each entry of the registry is next looked at, and when the renewer's task looks.
//!
//! A hundred thousand leases are looked at three times in each of their lengths: there are few moments, with many entries
//! each, and those of one moment are chained in the order in which they came, so that neither finding them, nor moving
//! them on, searches anything.

use std::collections::BTreeMap;
use std::task::Waker;
use std::time::Duration;

use super::entries::{Entries, Slot, Stage};
use crate::port::Instant;

/// A lease at least this long is a long one: it may wait its turn to be renewed.
const LONG: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Default)]
pub(super) struct DueQueue {
    dues: Dues,
    /// The long leases, of which not too many go out at once.
    long: Dues,
    /// No more of them go out until then, unless those under way are answered before.
    pub(super) paced_until: Instant,
    /// Until when the renewer's task rests; it is woken if something is due earlier.
    pub(super) rests_until: Instant,
    pub(super) task: Option<Waker>,
}

/// Where an entry stands in the due queue.
#[derive(Clone, Copy)]
pub(super) struct Date {
    due: Instant,
    among: Among,
    /// The previous and the next one of the same moment.
    before: Option<Slot>,
    after: Option<Slot>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Among {
    Nobody,
    Dues,
    Long,
}

impl Date {
    /// Not in the due queue.
    pub(super) const NONE: Self =
        Self { due: Instant::FAR, among: Among::Nobody, before: None, after: None };
}

/// The first and the last of every moment.
#[derive(Default)]
struct Dues(BTreeMap<Instant, (Slot, Slot)>);

impl Dues {
    fn first(&self) -> Instant {
        self.0.first_key_value().map_or(Instant::FAR, |(due, _)| *due)
    }

    fn add(&mut self, entries: &mut Entries, slot: Slot, due: Instant) {
        let (_, last) = self.0.entry(due).or_insert((slot, slot));
        let before = Some(std::mem::replace(last, slot)).filter(|last| *last != slot);
        if let Some(before) = before {
            entries[before].date.after = Some(slot);
        }
        (entries[slot].date.before, entries[slot].date.after) = (before, None);
    }

    fn remove(&mut self, entries: &mut Entries, Date { due, before, after, .. }: Date) {
        if before.is_none() && after.is_none() {
            self.0.remove(&due);
            return;
        }
        let Some((first, last)) = self.0.get_mut(&due) else { return };
        match before {
            Some(before) => entries[before].date.after = after,
            None => *first = after.unwrap_or(*first),
        }
        match after {
            Some(after) => entries[after].date.before = before,
            None => *last = before.unwrap_or(*last),
        }
    }
}

impl DueQueue {
    /// When somebody is looked at next.
    pub(super) fn first(&self) -> Instant {
        self.dues.first().min(self.long.first().max(self.paced_until))
    }

    /// Whether long leases are due.
    pub(super) fn long_are_due(&self, now: Instant) -> bool {
        self.long.first() <= now
    }

    /// Takes off one that is due, the long leases last; it is to be set again.
    pub(super) fn take(&mut self, entries: &mut Entries, now: Instant) -> Option<Slot> {
        let dues = if self.dues.first() <= now {
            &self.dues
        } else if now >= self.paced_until && self.long_are_due(now) {
            &self.long
        } else {
            return None;
        };
        let (_, (slot, _)) = dues.0.first_key_value()?;
        let slot = *slot;
        self.forget(entries, slot);
        Some(slot)
    }

    /// An entry is due then, and not when it was before.
    pub(super) fn set(&mut self, entries: &mut Entries, slot: Slot, due: Instant) {
        self.forget(entries, slot);
        let entry = &mut entries[slot];
        let is_long = match &entry.stage {
            Stage::Held(hold) => hold.renew && hold.ttl() >= LONG,
            Stage::Pending(_) | Stage::Free(_) => false,
        };
        let among = if is_long { Among::Long } else { Among::Dues };
        entry.date = Date { due, among, ..Date::NONE };
        if let Some(dues) = self.among(among) {
            dues.add(entries, slot, due);
        }
        if due < self.rests_until {
            self.rests_until = due;
            self.wake_task();
        }
    }

    /// Takes an entry off.
    pub(super) fn forget(&mut self, entries: &mut Entries, slot: Slot) {
        let date = std::mem::replace(&mut entries[slot].date, Date::NONE);
        if let Some(dues) = self.among(date.among) {
            dues.remove(entries, date);
        }
    }

    fn among(&mut self, among: Among) -> Option<&mut Dues> {
        match among {
            Among::Nobody => None,
            Among::Dues => Some(&mut self.dues),
            Among::Long => Some(&mut self.long),
        }
    }

    pub(super) fn wake_task(&mut self) {
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pending_attempt::PendingAttempt;
    use super::*;
    use crate::algorithm::{LockId, Request};
    use crate::port::{Kind, LockKey, OwnerId};

    fn pending(number: u32) -> (OwnerId, Stage) {
        let owner = OwnerId::parse(&format!("{number:032x}")).expect("hexadecimal digits");
        let lock = LockId { key: LockKey::new("orders"), kind: Kind::Mutex };
        let request = Request::of_a_mutex(0);
        let pending = PendingAttempt::new(owner, lock, request, Instant::default());
        (owner, Stage::Pending(Box::new(pending)))
    }

    /// Against a list that is searched, whatever is done in whatever order.
    #[test]
    fn those_due_come_by_their_moment_and_of_one_moment_as_they_came() {
        let (mut due_queue, mut entries) = (DueQueue::default(), Entries::default());
        let mut places = Vec::new();
        for number in 0..20 {
            let (owner, stage) = pending(number);
            entries.insert(owner, stage);
            places.push(entries.find(owner).expect("it was just put there"));
        }
        let mut expected: Vec<(Instant, Slot)> = Vec::new();
        let mut dice = 1u64;
        let mut draw = |sides: u64| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (dice >> 33) % sides
        };
        for _ in 0..5000 {
            let slot = places[draw(20) as usize];
            let moment = Instant::from_nanos(draw(6));
            match draw(4) {
                0 => {
                    expected.retain(|(_, other)| *other != slot);
                    due_queue.forget(&mut entries, slot);
                }
                1 => {
                    expected.sort_by_key(|(due, _)| *due);
                    let due = expected.first().is_some_and(|(due, _)| *due <= moment);
                    let first = due.then(|| expected.remove(0).1);
                    assert!(due_queue.take(&mut entries, moment) == first);
                }
                _ => {
                    expected.retain(|(_, other)| *other != slot);
                    expected.push((moment, slot));
                    due_queue.set(&mut entries, slot, moment);
                }
            }
            let first = expected.iter().map(|(due, _)| *due).min();
            assert_eq!(due_queue.first(), first.unwrap_or(Instant::FAR));
        }
    }

    #[test]
    fn a_place_is_not_taken_for_that_of_its_next_owner() {
        let mut entries = Entries::default();
        let [(one, first), (two, second), (three, third)] = [1, 2, 3].map(pending);
        entries.insert(one, first);
        entries.insert(two, second);
        let slot = entries.find(one).expect("it was just put there");
        assert!(entries.at(slot, one).is_some());
        entries.remove(one);
        assert!(entries.at(slot, one).is_none());
        entries.insert(three, third);
        assert!(entries.find(three) == Some(slot), "the slot stays empty");
        assert!(entries.at(slot, one).is_none());
        assert!(entries.at(slot, three).is_some());
        assert_eq!(entries.len(), 2);
    }
}
