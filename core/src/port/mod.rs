//! The doors between the algorithms and what they stand on: a lease store, a clock.
//!
//! A driver implements [`LeaseStore`]; a platform implements [`Runtime`]. Nothing here knows a product.

mod batch;
mod key;
mod lease;
mod marker;
mod mode;
mod runtime;

pub use batch::{BoxFuture, LeaseHandle};
pub use key::{LockKey, OwnerId};
pub use lease::{
    Action, Answer, Applied, Capabilities, Failure, Fence, Guarantee, HolderView, LeaseStore,
    Notice, NoticeSink, Outcome, State, Step, Take, Vote, WaiterView, limits,
};
pub use marker::{MaybeSend, MaybeSync};
pub use mode::{Kind, Mode};
pub use runtime::{Instant, Runtime, RuntimeHandle};
