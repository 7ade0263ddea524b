//! One node of a quorum: whether it answers, and what is owed to it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use event_listener::Event;

use super::late::Owed;
use crate::port::{Action, Instant, Kind, LeaseHandle, LockKey, OwnerId, Step};
use crate::runtime::sync::Mutex;

/// How many requests a node that does not answer is sent beside each other; the rest is owed.
const PROBES: usize = 8;
/// How many debts are asked for at once: what a store answers in some 10 ms.
const BILL: usize = 1000;

/// A lease store that votes.
pub(super) struct Node {
    pub(super) store: LeaseHandle,
    /// It let a request wait too long, and has not answered any since: nobody waits for it.
    silent: AtomicBool,
    under_way: AtomicUsize,
    /// Since when requests are under way of which none was answered.
    unheard: Mutex<Option<Instant>>,
    pub(super) debts: Mutex<Debts>,
    /// It was reached again.
    pub(super) news: Event,
}

/// Attempts and holds that the node has yet to confirm it knows nothing of.
#[derive(Default)]
pub(super) struct Debts {
    owed: BTreeMap<(LockKey, OwnerId), Debt>,
    /// Whether a task is at it.
    pub(super) served: bool,
}

#[derive(Clone, Copy)]
struct Debt {
    kind: Kind,
    /// When it has settled itself.
    until: Instant,
    owed: Owed,
    /// Whether it was asked for since it was last owed.
    billed: bool,
}

impl Node {
    pub(super) fn new(store: LeaseHandle) -> Self {
        let (silent, under_way) = (AtomicBool::new(false), AtomicUsize::new(0));
        let (debts, unheard, news) = (Mutex::default(), Mutex::default(), Event::new());
        Self { store, silent, under_way, unheard, debts, news }
    }

    pub(super) fn is_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed)
    }

    /// A request goes out; false if the node has enough of them to answer first. One that answers none for longer than
    /// `patience` is silent, also where the others decide without it.
    pub(super) fn begin(&self, now: Instant, patience: Duration) -> bool {
        let since = *self.unheard.lock().get_or_insert(now);
        if now.since(since) > patience {
            self.fell_silent();
        }
        if self.is_silent() && self.under_way.load(Ordering::Relaxed) >= PROBES {
            return false;
        }
        self.under_way.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// It has come back, with or without an answer.
    pub(super) fn end(&self, answered: bool, now: Instant) {
        let others = self.under_way.fetch_sub(1, Ordering::Relaxed) > 1;
        if answered {
            self.spoke();
            *self.unheard.lock() = others.then_some(now);
        }
    }

    pub(super) fn spoke(&self) {
        self.silent.store(false, Ordering::Relaxed);
    }

    pub(super) fn fell_silent(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }
}

impl Debts {
    /// Owes the undoing of an attempt; true if nobody serves the debts yet.
    pub(super) fn owe(&mut self, step: &Step, until: Instant, owed: Owed) -> bool {
        let debt = Debt { kind: step.kind, until, owed, billed: false };
        let known = self.owed.entry((step.lock.clone(), step.owner)).or_insert(debt);
        let owed = if known.owed == Owed::Unknown { Owed::Unknown } else { owed };
        *known = Debt { owed, ..debt };
        !std::mem::replace(&mut self.served, true)
    }

    /// A step of a bill was confirmed. What came to be owed since stays owed: the node may have granted it behind the bill.
    pub(super) fn paid(&mut self, step: &Step) {
        let debt = (step.lock.clone(), step.owner);
        let again = self.owed.get(&debt).is_some_and(|debt| !debt.billed);
        if !again || mutant!(DebtPaidBeforehand) {
            self.owed.remove(&debt);
        }
    }

    /// Some of what is owed now, as steps; with nothing owed, nobody serves any more.
    pub(super) fn bill(&mut self, now: Instant) -> Vec<Step> {
        self.owed.retain(|_, debt| debt.until > now);
        self.served = !self.owed.is_empty();
        let step = |(of, debt): (&(LockKey, OwnerId), &mut Debt)| {
            debt.billed = true;
            let action = match debt.owed {
                Owed::Nothing | Owed::Granted => Action::Free { open: false },
                Owed::Unknown => Action::Leave { tombstone: Some(debt.until.since(now)) },
            };
            Step { lock: of.0.clone(), owner: of.1, kind: debt.kind, action }
        };
        self.owed.iter_mut().take(BILL).map(step).collect()
    }

    pub(super) fn forgive(&mut self) {
        self.owed.clear();
        self.served = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_owed_again_behind_a_bill_is_not_paid_by_it() {
        let (lock, owner) = (LockKey::new("x"), OwnerId::parse(&"1".repeat(32)).unwrap());
        let action = Action::Read;
        let step = Step { lock, owner, kind: Kind::Mutex, action };
        let until = Instant::FAR;
        for (first, again) in [
            (Owed::Granted, Owed::Granted),
            (Owed::Granted, Owed::Unknown),
            (Owed::Unknown, Owed::Granted),
        ] {
            let mut debts = Debts::default();
            assert!(debts.owe(&step, until, first));
            let bill = debts.bill(Instant::default());
            assert!(!debts.owe(&step, until, again));
            debts.paid(&bill[0]);
            let bill = debts.bill(Instant::default());
            assert_eq!(bill.len(), 1, "{again:?} after {first:?}");
            debts.paid(&bill[0]);
            assert_eq!(debts.bill(Instant::default()), []);
        }
    }
}
