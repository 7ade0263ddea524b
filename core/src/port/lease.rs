//! The store interface of locks: a named record with an end time, changed by atomic steps; how a hold stands beside others; and the state of a
//! lock, for people who look.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::capabilities::Capabilities;
use super::cell::Cells;
use super::failure::Failure;
use super::key::{LockKey, OwnerId};
use super::marker::{MaybeSend, MaybeSync};
use crate::error::{Code, Error, Result};
use crate::fence::Token;

/// One atomic change of one lock, asked for by one attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The lock.
    pub lock: LockKey,
    /// The attempt that asks.
    pub owner: OwnerId,
    /// The kind that the lock is used as. If the lock is in use as another kind, the step changes nothing: a Take answers
    /// `Conflict`, all others `Gone`.
    pub kind: Kind,
    /// The action that the attempt asks for.
    pub action: Action,
}

/// The action of a step. Every action first removes what has ended by the store's clock; all but `Read` then *settle*: as
/// long as the head of the queue may hold beside the present holders, it is granted and its client is notified.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Ask for the lock; answers `Granted`, `Queued`, `Held` (not willing to wait, or a store without a queue), `Gone` (this owner
    /// id has a tombstone), `Conflict`, or `Recovering` (a node of a quorum).
    Take(Take),
    /// Keep a ticket alive, with the lease it wants. Answers `Queued`; `Granted` if it holds by now, renewed to `ttl`;
    /// `Gone` if there is no such ticket: a refresh never makes one.
    Refresh {
        /// The lease wanted.
        ttl: Duration,
    },
    /// Push the end of a hold to at least now + `ttl`, never nearer. Answers `Granted` or `Gone`.
    Renew {
        /// The lease wanted.
        ttl: Duration,
    },
    /// End a hold. Answers `Freed` or `Gone`.
    Free {
        /// Leave the lock open to whoever comes first (`fair: false`) instead of handing it to the head.
        open: bool,
    },
    /// Take an attempt back, whatever its outcome: a ticket is removed, a hold is freed (`Freed`). If nothing is found (`Gone`)
    /// and `tombstone` is given, the owner id has a tombstone for that long, so that a Take still under way finds it and is refused.
    Leave {
        /// How long to refuse this owner id; given after an unknown outcome.
        tombstone: Option<Duration>,
    },
    /// End another client's hold; the step's owner id is the holder's, from [`HolderView::owner`](super::HolderView::owner). It may be
    /// repeated. Answers `Freed` or `Gone`.
    Break,
    /// Look, change nothing. Answers `State`.
    Read,
}

impl Action {
    /// Whether it changes nothing.
    pub fn only_looks(&self) -> bool {
        matches!(self, Self::Read)
    }
}

/// The terms of a Take on one node of a quorum. It never waits: nodes that grant in an order of their own would split the grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vote {
    /// How long the node must have kept its data for its vote to count: the longest lease on the quorum, so that none it
    /// may have forgotten is still believed in. Else the answer is `Recovering`.
    pub aged: Duration,
    /// The owner holds already, and wants its counter raised to the floor: `Gone` if it does not, nothing is taken.
    pub again: bool,
}

/// The details of [`Action::Take`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Take {
    /// How to hold it.
    pub mode: Mode,
    /// For `Permit`: of how many. Each Take counts by its own limit, so that it can be changed while in use.
    pub limit: u32,
    /// For `Permit`: how many it takes at once. Otherwise 1.
    pub permits: u32,
    /// The lease wanted.
    pub ttl: Duration,
    /// Whether to queue if the lock is not free.
    pub wait: bool,
    /// How many consecutive tokens to draw with the grant, at most; the first is answered. At least 1.
    pub block: u32,
    /// The highest token of this name the client has seen: the counter is raised to it at once, also if the Take only
    /// queues, but never further than [`FLOOR_AHEAD`](super::limits::FLOOR_AHEAD) beyond the store's clock.
    pub floor: Token,
    /// The information about the client that asks, as JSON, for people who inspect.
    pub info: Arc<str>,
    /// Given where it is asked of one node of a quorum.
    pub vote: Option<Vote>,
}

/// How a step was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The lock is this owner's.
    Granted {
        /// The first token drawn with the hold.
        token: Token,
        /// The time left of the lease at the moment of the answer.
        left: Duration,
        /// How many consecutive tokens were drawn: at most what was asked for, fewer where the counter would be too far ahead of the
        /// clock. 1 of a hold that was granted before.
        drawn: u32,
    },
    /// In the queue.
    Queued {
        /// The lock's counter: a push with a token not above it is older than this answer.
        last: Token,
        /// The time left of the present hold; `None` if it has no end.
        left: Option<Duration>,
        /// Tickets ahead.
        ahead: u32,
        /// Whether the holder is not fencelock's, so that nobody will tell when it releases.
        foreign: bool,
    },
    /// Somebody else's, and the Take did not want to wait; or the store has no queue, and who waits asks again.
    Held {
        /// The time left of the present hold; `None` if it has no end.
        left: Option<Duration>,
    },
    /// This owner's ticket or hold has ended.
    Freed,
    /// Nothing of this owner is there.
    Gone,
    /// The lock is in use as another kind.
    Conflict {
        /// The kind that it is in use as.
        kind: Kind,
    },
    /// The node may have lost its data not long ago: it does not vote yet.
    Recovering {
        /// For how long.
        left: Duration,
    },
    /// The state of the lock on the store.
    State(LockState),
}

/// A step's answer: an outcome, or why there is none.
pub type Answer = Result<Outcome, Failure>;

/// Something the store tells without being asked. Any of them may be lost, late or doubled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Notice {
    /// A hand-over: this owner was granted the lock.
    Granted {
        /// The owner id of the ticket.
        owner: OwnerId,
        /// The first token drawn.
        token: Token,
        /// The lease it was granted for.
        ttl: Duration,
        /// How many consecutive tokens were drawn.
        drawn: u32,
    },
    /// This owner should ask now: the lock is open (`fair: false`) and it is the head.
    Open {
        /// The owner id of the ticket.
        owner: OwnerId,
    },
    /// Nothing of this owner is on the store any more, as `Gone` answers a Renew: its hold is lost, its ticket is to be made anew.
    Gone {
        /// The owner id of the hold or the ticket.
        owner: OwnerId,
    },
    /// Notices may have been lost up to now: look at every ticket.
    Gap,
    /// The same where none is heard and the store asks for looks by the clock: nothing is known to have come back.
    Look,
}

/// Where a store delivers its notices. It is called on the store's own task and must return at once.
#[cfg(not(target_arch = "wasm32"))]
pub type NoticeSink = Arc<dyn Fn(Notice) + Send + Sync>;
/// Where a store delivers its notices. It is called on the store's own task and must return at once.
#[cfg(target_arch = "wasm32")]
pub type NoticeSink = Arc<dyn Fn(Notice)>;

/// A store of leases. One value serves one client: its notices are that client's.
///
/// The model, `driver::record`, defines the meaning of each step; every driver is tested against it, outcome by outcome.
pub trait LeaseStore: MaybeSend + MaybeSync + 'static {
    /// The abilities of this store.
    fn capabilities(&self) -> Capabilities;

    /// The setup of the store that breaks a promise, if one was found: a client that connects reports it as an event and to its log.
    fn warning(&self) -> Option<&'static str> {
        None
    }

    /// Carries the steps out, each atomic by itself, in order, in as few round trips as the store allows. One answer per
    /// step. A step is never sent twice by the driver, unless it certainly was not carried out. Dropping the future
    /// recalls nothing that has been sent.
    fn step(&self, batch: &[Step]) -> impl Future<Output = Vec<Answer>> + MaybeSend;

    /// Carries out Takes of different locks that do not wait as one: all are granted, or none is (then whatever stands against it is
    /// answered, and `Gone` for the rest). A store that cannot do that for these locks refuses with `unsupported`; then
    /// they are taken one after another.
    fn step_all(&self, batch: &[Step]) -> impl Future<Output = Vec<Answer>> + MaybeSend {
        let message = "this store takes several locks only one after another";
        let refused = Failure::refused(Error::new(Code::Unsupported, message));
        std::future::ready(batch.iter().map(|_| Err(refused.clone())).collect())
    }

    /// Delivers this client's notices to `sink` from now on, over one subscription however many locks there are.
    /// A stream of notices would need a task that reads it: one hop more for each hand-over.
    fn listen(&self, sink: NoticeSink) -> impl Future<Output = Result<()>> + MaybeSend;

    /// The locks on the store whose key begins with `prefix`, in order, as far as the store remembers them.
    fn names(&self, prefix: &str) -> impl Future<Output = Result<Vec<LockKey>>> + MaybeSend;

    /// The same store's cells, if it keeps any.
    fn cells(&self) -> Option<Cells<'_>> {
        None
    }

    /// Lets go of connections, files and sockets. Steps after it answer `closed`.
    fn close(&self) -> impl Future<Output = ()> + MaybeSend;
}

/// The way of holding a lock: it decides what the holder may do, and who may hold beside it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mode {
    /// The only holder of a mutex.
    #[default]
    Exclusive,
    /// One of any number of readers.
    Read,
    /// The writer: nobody beside it.
    Write,
    /// One of a limited number of permits.
    Permit,
}

impl Mode {
    /// The kind of lock that is held in this mode.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Exclusive => Kind::Mutex,
            Self::Read | Self::Write => Kind::ReadWrite,
            Self::Permit => Kind::Semaphore,
        }
    }

    /// Whether nobody may hold beside it, so that a hold can pass from waiter to waiter inside a client.
    pub const fn is_exclusive(self) -> bool {
        matches!(self, Self::Exclusive | Self::Write)
    }
}

/// The kind that a name is used as. While it is in use as one kind, it cannot be taken as another.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// One holder.
    #[default]
    Mutex,
    /// Readers, or one writer.
    ReadWrite,
    /// So many permits.
    Semaphore,
}

impl Kind {
    /// The kind in words, for errors.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::ReadWrite => "read-write lock",
            Self::Semaphore => "semaphore",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A lock as it lies on the store. As JSON its times are milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LockState {
    /// The kind that the lock is in use as.
    pub kind: Kind,
    /// The present holders, in the order of their tokens.
    pub holders: Vec<HolderView>,
    /// The lock's counter: the newest token drawn.
    pub last: Token,
    /// The queue, head first, then the waiters inside the client that looks. Those inside other clients are not on the store.
    pub waiters: Vec<WaiterView>,
}

/// A holder, for people who look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HolderView {
    /// How it holds.
    pub mode: Mode,
    /// Its token; `None` for a holder that is not fencelock's.
    pub token: Option<Token>,
    /// The time left of its lease; `None` if it has no end.
    #[serde(with = "super::millis::optional")]
    pub left: Option<Duration>,
    /// How long it has held; `None` if the store does not know.
    #[serde(with = "super::millis::optional")]
    pub held_for: Option<Duration>,
    /// The information it gave about itself, as JSON; empty for a foreign holder.
    pub info: Arc<str>,
    /// The owner id that [`Action::Break`](super::Action::Break) ends it by. `None` for a holder that is not fencelock's, and where a
    /// server's session holds. Whoever has it can release the lock, so it is never shown.
    #[serde(skip)]
    pub owner: Option<OwnerId>,
}

/// A waiter, for people who look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WaiterView {
    /// How it wants to hold.
    pub mode: Mode,
    /// The information it gave about itself, as JSON.
    pub info: Arc<str>,
    /// How long it has been in the queue.
    #[serde(with = "super::millis")]
    pub waiting_for: Duration,
}

/// Whether a character of a text that others wrote is not to be shown as it is: control characters (C0, C1), separators of lines
/// and paragraphs, controls of direction, and whatever else Unicode has programs ignore, so that two names that differ look the
/// same.
///
/// ```
/// use fencelock::port::is_hidden;
/// assert!(is_hidden('\u{1b}') && is_hidden('\u{202e}') && !is_hidden('ß'));
/// ```
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}
