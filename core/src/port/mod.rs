//! The interfaces between the algorithms and what they stand on: leases, cells, a clock.
//!
//! A driver implements [`LeaseStore`], [`QueueStore`] or `SessionStore`, and [`CellStore`] beside it; a platform implements [`Runtime`]. Nothing here
//! knows a product. A minor version may change what is here.

pub(crate) mod backoff;
mod batch;
mod capabilities;
mod cell;
pub(crate) mod detach_on_drop;
pub(crate) mod failure;
mod key;
mod lease;
pub(crate) mod left_owners;
#[doc(hidden)]
pub mod limits;
mod marker;
pub(crate) mod millis;
mod queue;
mod runtime;
mod session;

pub use batch::LeaseHandle;
pub use capabilities::{Capabilities, Fence, Guarantee, Life};
pub use cell::{
    Cell, CellKey, CellStore, Cells, Change, Family, Look, Mark, Swap, Untold, Version,
};
pub use failure::{Applied, Failure};
pub use key::{Layout, LockKey, OwnerId};
#[doc(hidden)]
pub use lease::is_hidden;
pub use lease::{
    Action, Answer, HolderView, Kind, LeaseStore, LockState, Mode, Notice, NoticeSink, Outcome,
    Step, Take, Vote, WaiterView,
};
pub use marker::{BoxFuture, MaybeSend, MaybeSync};
pub use queue::{
    Entry, EntryView, Joined, QueueNotice, QueueSink, QueueStore, Rank, SessionId, Standing,
};
pub use runtime::{Instant, Runtime, RuntimeHandle};
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) use session::names_unknown;
pub use session::{EndSink, SESSION_TOKENS, Session, SessionStore};
