//! The algorithms: async functions over the interfaces in `port`. They know no driver, clock or executor.
//!
//! An acquire goes through [`acquire`] (the line of this client: [`cohort`]) to one remote attempt ([`attempt`]). The renewer
//! ([`renewer`]) keeps tickets and holds alive; a guard ends through [`release`], and [`cleanup`] repeats what is not confirmed.
//! Values with versions are changed through [`cell`]; [`job`] stands on that.

mod acquire;
mod attempt;
mod break_lock;
mod cell;
mod cleanup;
mod cohort;
mod core;
mod due_queue;
mod entries;
mod floors;
mod hold;
mod inspect;
mod job;
mod life;
mod lock_id;
mod next_look;
mod pending_attempt;
mod queue;
mod quorum;
mod reason;
mod recent_releases;
mod reentrant;
mod registry;
mod release;
mod renewal_batch;
mod renewer;
mod retry_delays;
mod session;
mod session_lease;
mod several;
#[cfg(test)]
mod shuttle;
mod who_holds;

pub(crate) use acquire::Wait;
pub(crate) use cell::UpdateRequest;
pub(crate) use cohort::Local;
pub(crate) use core::Core;
pub(crate) use hold::Request;
pub(crate) use job::{Begun, Ending, JobRequest};
pub use job::{JobState, Schedule, Skipped, Status};
pub(crate) use lock_id::LockId;
pub use queue::Queue;
pub use quorum::Quorum;
pub(crate) use reentrant::{Counts, Share};
pub(crate) use release::GivenUp;
pub use session::Sessions;
pub(crate) use several::Member;
