//! fencelock for Ruby, Swift and Kotlin on Android. uniffi generates the sources of these languages from the items here.
//!
//! Every call that waits is an `async` function. Swift and Kotlin await it; Ruby waits for it in a thread or a fiber
//! (`ruby/lib/fencelock/native.rb`). A caller that stops waiting drops the work, and the core takes back what it had won.

pub mod client;
pub mod election;
pub mod error;
pub mod guard;
pub mod job;
pub mod lock;
pub mod options;
pub mod process;
pub mod version;

uniffi::setup_scaffolding!("fencelock_native");

/// The answer of a call that may fail.
pub type Result<T, E = error::FencelockError> = std::result::Result<T, E>;
