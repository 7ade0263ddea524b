//! Stores around stores.

// A layer writes every call: one that is forwarded by default is a call that it forgets to count or to refuse.

mod resident;
#[cfg(all(feature = "tokio", feature = "redis"))]
mod standby;

pub(crate) use resident::Resident;
#[cfg(all(feature = "tokio", feature = "redis"))]
pub(crate) use standby::Standby;
