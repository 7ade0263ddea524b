//! The algorithms over the interfaces in `port` that do not belong to the engine of a client: values with versions ([`cell`]), jobs ([`job`]), and
//! stores made of others ([`quorum`], [`queue`], [`session`]). They know no driver, clock or executor.

mod cell;
mod job;
mod queue;
mod quorum;
mod session;
mod session_lease;

pub(crate) use cell::UpdateRequest;
#[cfg(test)]
pub(crate) use job::Times;
pub(crate) use job::{Begun, Ending, JobRequest, micros_of, moment};
pub use job::{JobState, Schedule, Skipped, Status};
pub use queue::Queue;
pub use quorum::Quorum;
pub use session::Sessions;
