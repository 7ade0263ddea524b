//! How far a hold has come to its end, as one word that any thread may look at.

use std::sync::atomic::{AtomicU8, Ordering};

/// An event that may have happened to a hold. Each happens once, and none is taken back.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum LifeFlag {
    /// Its claim ended without a release.
    Lost = 1,
    /// The last local holder gave it up, and it is to be freed.
    GivenUp = 2,
    /// Its loss was told.
    LossReported = 4,
    /// The store said that it is gone, so that there is nothing left to free.
    Gone = 8,
}

#[derive(Default)]
pub(super) struct Life(AtomicU8);

impl Life {
    /// True for the first who says so.
    pub(super) fn end(&self, flag: LifeFlag) -> bool {
        self.0.fetch_or(flag as u8, Ordering::AcqRel) & flag as u8 == 0
    }

    pub(super) fn has(&self, flag: LifeFlag) -> bool {
        self.0.load(Ordering::Acquire) & flag as u8 != 0
    }
}
