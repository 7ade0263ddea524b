//! The state that the checker keeps of a world.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fencelock::port::{Instant, LockKey, Mode, OwnerId};
use fencelock::{Claim, Token};
use fencelock_sim::SimNode;

use super::cells::Operations;
use super::violation::{Figures, Rule, Violation};
use crate::plan::Act;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) live: BTreeMap<u64, Live>,
    pub(super) pending: BTreeMap<u64, Pending>,
    pub(super) numbers: u64,
    pub(super) clients: Vec<Watched>,
    pub(super) locks: Vec<Shared>,
    /// Losses told: client, lock, token.
    pub(super) told: BTreeMap<(usize, LockKey, Token), u32>,
    /// Guards of those who share, given out: readers that enter a quorum at once may show the same token.
    pub(super) shared: BTreeMap<(usize, LockKey, Token), u32>,
    /// The token of the last guard of a client's scope, by client and lock, and when the last of them was gone.
    pub(super) entered: BTreeMap<(usize, usize), (Token, Option<Duration>)>,
    pub(super) facts_read: usize,
    pub(super) operations: Operations,
    /// Whether no message is lost or late, so that progress has bounds, and the longest way there and back.
    pub(super) prompt: bool,
    /// Whether nothing fails and every push arrives, so that nobody waits longer than messages take.
    pub(super) pushes: bool,
    /// Holds on the store that no guard of the client shows, by client and lock, and since when.
    pub(super) unclaimed: BTreeMap<(usize, usize), (OwnerId, Duration)>,
    pub(super) round_trip: Duration,
    pub(super) figures: Figures,
    pub(super) violations: Vec<Violation>,
    pub(super) history: Option<Vec<(Duration, String)>>,
}

/// A client, seen from outside.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) node: Arc<SimNode>,
    pub(super) channel: Arc<str>,
    pub(super) timeout: Duration,
    pub(super) crashed: bool,
    pub(super) closed: Option<Duration>,
    /// Until when it is, or suffers from having been, kept from its work.
    pub(super) kept: Duration,
    /// The same, or from a store that broke its word.
    pub(super) disturbed: Duration,
    /// The same, but for single lost messages.
    pub(super) unhealthy: Duration,
    /// How often it stopped and went on.
    pub(super) pauses: u64,
    /// How many of its tasks are at something, the end of a release included.
    pub(super) acting: u32,
    /// For each lock: how many of its tasks hold it or ask for it, and since when none.
    pub(super) idle: Vec<(u32, Duration)>,
    /// For each lock: when the store last ended a hold of this client.
    pub(super) ended: Vec<Duration>,
}

/// A lock, seen from outside.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) key: Option<LockKey>,
    /// The newest token seen on a guard, by anybody and by each client.
    pub(super) newest: Token,
    pub(super) newest_of: Vec<Token>,
    /// The same, of those who held it alone.
    pub(super) alone: Token,
    pub(super) alone_of: Vec<Token>,
    /// The newest token granted on the store.
    pub(super) granted: Token,
    pub(super) grants: u64,
    /// Since when it has been free, at which count of grants.
    pub(super) free: Option<(Duration, u64)>,
    /// The protected resource: its value, the writes it took, the newest token that wrote.
    pub(super) value: u64,
    pub(super) accepted: u64,
    pub(super) wrote: Token,
}

/// A guard that was given out and not yet given back.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) client: usize,
    pub(super) lock: usize,
    pub(super) claim: Claim,
    pub(super) since: Instant,
    pub(super) act: Act,
    /// When it was first seen not to be held.
    pub(super) unheld: Option<Duration>,
    /// Whether a task awaits the loss, and has heard of it.
    pub(super) awaits: bool,
    pub(super) heard: bool,
    /// It is gone from the store, and has to know.
    pub(super) doomed: Option<Doomed>,
}

/// A hold that the store has lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doomed {
    /// When.
    pub(super) at: Duration,
    /// The lease its client went by then, and what else may pass before it looks.
    pub(super) lease: Duration,
    pub(super) slack: Duration,
}

impl Doomed {
    /// Whether it should be known by now, with so much left of the lease. An answer may have been under way that told of a
    /// longer one.
    pub(super) fn is_overdue(self, now: Duration, left: Duration) -> bool {
        let lease = self.lease.max((now + left).saturating_sub(self.at));
        now > self.at + lease / 2 + self.slack
    }
}

#[derive(Debug)]
pub(super) struct Pending {
    pub(super) client: usize,
    pub(super) lock: usize,
    pub(super) mode: Mode,
    /// In the scope of its client, which may hold it already.
    pub(super) scoped: bool,
    pub(super) waits: bool,
    pub(super) since: Duration,
}

impl Shared {
    /// A guard shows a token. Answers the one it has to be above: whoever holds alone comes after all, those who share
    /// after all who held alone.
    pub(super) fn saw(&mut self, client: usize, token: Token, mode: Mode, faithful: bool) -> Token {
        let alone = if faithful { &mut self.alone } else { &mut self.alone_of[client] };
        let newest = if faithful { &mut self.newest } else { &mut self.newest_of[client] };
        let before = if mode.is_exclusive() { *newest } else { *alone };
        if mode.is_exclusive() {
            *alone = token.max(*alone);
        }
        *newest = token.max(*newest);
        before
    }
}

impl State {
    /// Whether a guard of a scope shows the hold that the scope's last one showed. Whoever is on the way in keeps it, and
    /// has it at the very moment at which nobody asks any more.
    pub(super) fn enters_again(
        &mut self,
        who: (usize, usize),
        token: Token,
        now: Duration,
    ) -> bool {
        let last = self.entered.insert(who, (token, None));
        last.is_some_and(|(last, left)| last == token && left.is_none_or(|left| left == now))
    }

    /// Somebody of a scope has left, or asks no more.
    pub(super) fn leaves(&mut self, who: (usize, usize), now: Duration) {
        let guards = self.live.values().filter(|one| one.act.scope.is_some());
        let asks = self.pending.values().filter(|one| one.scoped);
        let mut others =
            guards.map(|one| (one.client, one.lock)).chain(asks.map(|one| (one.client, one.lock)));
        if !others.any(|other| other == who)
            && let Some((_, left)) = self.entered.get_mut(&who)
        {
            left.get_or_insert(now);
        }
    }

    pub(super) fn violated(&mut self, at: Duration, rule: Rule, detail: String) {
        if let Some(history) = &mut self.history {
            history.push((at, format!("*** {rule:?}: {detail}")));
        }
        self.violations.push(Violation { at, rule, detail });
    }
}
