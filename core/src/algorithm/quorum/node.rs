//! One node of a quorum: whether it answers, and what it has yet to confirm.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use event_listener::Event;

use super::pending_cleanup::PendingCleanups;
use crate::port::{Instant, LeaseHandle};
use crate::runtime::sync::Mutex;

/// How many requests a node that does not answer is sent beside each other; the rest waits for its cleanup.
const PROBES: usize = 8;

/// A lease store that votes.
pub(super) struct Node {
    pub(super) store: LeaseHandle,
    /// It let a request wait too long, and has not answered any since: nobody waits for it.
    silent: AtomicBool,
    under_way: AtomicUsize,
    /// Since when requests are under way of which none was answered.
    unheard: Mutex<Option<Instant>>,
    pub(super) cleanups: Mutex<PendingCleanups>,
    /// It was reached again.
    pub(super) news: Event,
}

impl Node {
    pub(super) fn new(store: LeaseHandle) -> Self {
        let (silent, under_way) = (AtomicBool::new(false), AtomicUsize::new(0));
        let (cleanups, unheard, news) = (Mutex::default(), Mutex::default(), Event::new());
        Self { store, silent, under_way, unheard, cleanups, news }
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
