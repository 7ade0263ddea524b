//! The algorithms: straight-line async functions over the doors. No driver, no clock, no executor in sight.
//!
//! An acquire goes through [`acquire`] (the line of this client: [`cohort`]) to one remote attempt ([`lease`]). The wheel
//! ([`renew`]) keeps tickets and holds alive; a guard ends through [`release`], and [`undo`] repeats what is not confirmed.
//! Values with versions are changed through [`cell`]; [`job`] stands on that.

mod acquire;
mod agenda;
mod cell;
mod change;
mod cohort;
mod core;
mod ended;
mod entries;
mod floors;
mod hold;
mod inspect;
mod job;
mod lease;
mod quorum;
mod reason;
mod reentrant;
mod register;
mod release;
mod renew;
mod rest;
mod several;
#[cfg(all(test, feature = "shuttle"))]
mod shuttle;
mod target;
mod undo;
mod who_holds;

pub(crate) use acquire::Wait;
pub(crate) use cell::UpdateTerms;
pub(crate) use change::Upgraded;
pub(crate) use cohort::Local;
pub(crate) use core::Core;
pub(crate) use hold::Terms;
pub(crate) use job::{Begun, Ending, JobTerms, Schedule};
pub use job::{JobState, Skipped, Status};
pub use quorum::Quorum;
pub(crate) use reentrant::{Counts, Share};
pub(crate) use release::GivenUp;
pub(crate) use several::Member;
pub(crate) use target::Target;
