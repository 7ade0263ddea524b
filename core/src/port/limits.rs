//! The numbers that the steps of every store share. The statements of databases are made with
//! them. The scripts of Redis repeat them, which a test compares.

use std::time::Duration;

/// The most a hand-over grants at once; the renewer renews it to the full ttl by its ordinary rule.
/// A grantee that has died costs the others no more than this.
pub const GRANT_TTL: Duration = Duration::from_secs(5);
/// How many of those who wait one step grants a shared lock to, so that no step keeps the store for long. The next one is
/// told that the lock is open to it, asks, and so has the step behind it go on.
pub const SERVED_AT_ONCE: usize = 256;
/// How long a ticket lives, by the store's clock, after it was made or last refreshed.
/// The place of a waiter that has died ends by itself.
pub const TICKET_LIFE: Duration = Duration::from_secs(5);
/// A ticket that was not refreshed for this long *and* whose client cannot be reached is dead at once.
pub const UNREACHABLE_AFTER: Duration = Duration::from_secs(2);
/// How long an open lock (`fair: false`) waits for whoever comes before it is granted outright to the head.
pub const OPEN_FOR: Duration = Duration::from_secs(1);
/// How often the head of the queue may be passed over while the lock is open.
/// With no limit a waiter could starve.
pub const PASSES: u32 = 2;
/// The shortest life of a tombstone.
/// A Take whose answer was lost may still arrive for that long.
pub const TOMBSTONE_LIFE: Duration = Duration::from_mins(1);
/// How far ahead of the store's clock the tokens of one grant may reach, but for the first.
/// A store that loses its counter is soon ahead of its old tokens again.
pub const TOKEN_LEAD: Duration = Duration::from_millis(10);
/// The same for a vote: the token proposed to all nodes lies above the clock of each.
pub const VOTE_LEAD: Duration = Duration::from_secs(1);
/// How far ahead of the store's clock a token floor may lie.
pub const FLOOR_AHEAD: Duration = Duration::from_mins(1);
/// The counter outlives its last token by this many ttls.
/// So it vanishes only when the clock has passed all tokens that it gave out.
pub const COUNTER_TTLS: u32 = 10;
/// How many of its newest changes a cell remembers.
/// The outcome of an older change whose answer was lost is unknown.
pub const TRAIL: usize = 16;
