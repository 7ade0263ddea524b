//! Platforms: the only modules of the core that read a clock, sleep, spawn or draw randomness.

#[cfg(feature = "tokio")]
mod inline;
#[cfg(feature = "tokio")]
mod process;
#[cfg(feature = "tokio")]
mod suspend_clock;
pub(crate) mod sync;
#[cfg(feature = "tokio")]
mod tokio;

#[cfg(feature = "tokio")]
pub(crate) use self::inline::InlineRuntime;
#[cfg(feature = "tokio")]
#[doc(hidden)]
pub use self::process::process_id;
#[cfg(feature = "tokio")]
pub use self::tokio::TokioRuntime;
