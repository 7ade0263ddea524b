//! The rules that a world may break, and the figures that are counted.

use std::fmt;
use std::time::Duration;

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When, in true time.
    pub at: Duration,
    /// Which promise.
    pub rule: Rule,
    /// The facts.
    pub detail: String,
}

/// The promises, by the codes of the project's list of invariants where they have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// S1: two guards of one name claim to be held.
    Overlap,
    /// S3: a guard claims a lease that the store does not keep.
    Unbacked,
    /// S10: a guard that was lost claims to be held again.
    Revived,
    /// S3: a guard was given out that was lost already.
    BornLost,
    /// S2: a token is not above all earlier ones.
    TokenFell,
    /// S1: a resource behind a gate took a stale write, or lost an accepted one.
    StaleWrite,
    /// H3: a lock was lost in a world, or at a time, in which nothing could take it.
    FalselyLost,
    /// H3: a loss was not told when it could have been, or told twice.
    LossUntold,
    /// H2: a release was told to have freed a hold that it did not end.
    FalselyFreed,
    /// A guard outlived its `max_hold`.
    HeldTooLong,
    /// L1: a free lock with a live waiter was not granted in time.
    Starved,
    /// L1: a step left a lock free beside a live waiter.
    Unserved,
    /// L1: a waiter that holds the lock on the store was not told in time.
    Untold,
    /// L3: somebody was granted the lock past earlier waiters, on the store or in its client.
    Unfair,
    /// A waiter whose ticket had ended was granted the lock.
    DeadGrantee,
    /// L5: a wait took longer than was asked for, or shorter.
    WrongWait,
    /// H1: something of an attempt that was given up is still on the store.
    Ghost,
    /// H1: a client at rest carries attempts, tasks or timers.
    Leak,
    /// L2: a lock cannot be had although everything has healed.
    Stuck,
    /// H4: an error that nothing in the world explains.
    WrongError,
    /// S9: a change replaced another version than it had read, or the version fell or came back.
    WrongVersion,
    /// S11: a change that was told to be done was not, or twice, or one that was told not to be done was.
    WrongFate,
    /// S8: a job ran again for one scheduled instant, or for none.
    RunTwice,
    /// A run's record was changed by somebody else.
    WrongHand,
    /// An observer does not see who leads.
    Unseen,
    /// Tasks run in circles.
    BusyLoop,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:?}: {}", self.rule, self.at, self.detail)
    }
}

/// The counts of a world's events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Guards given out.
    pub grants: u64,
    /// Hand-overs: grants to a ticket, and passes inside a client.
    pub hand_overs: u64,
    /// Acquires and releases that were dropped before their end.
    pub cancels: u64,
    /// Locks that were lost before they were given back.
    pub losses: u64,
    /// Stale writes that the gate refused.
    pub refusals: u64,
}

impl std::ops::AddAssign for Figures {
    fn add_assign(&mut self, other: Self) {
        self.grants += other.grants;
        self.hand_overs += other.hand_overs;
        self.cancels += other.cancels;
        self.losses += other.losses;
        self.refusals += other.refusals;
    }
}
