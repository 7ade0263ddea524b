//! Platforms: the only rooms of the core that read a clock, sleep, spawn or draw randomness.

#[cfg(feature = "sim")]
pub mod sim;
pub(crate) mod sync;
#[cfg(feature = "tokio")]
mod tokio;

#[cfg(feature = "tokio")]
pub use self::tokio::TokioRuntime;
