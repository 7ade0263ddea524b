//! The same nouns, blocking. They run the very same async code on the calling thread; there is no second implementation.
//!
//! ```
//! use std::time::Duration;
//! let client = fencelock::blocking::connect("memory:")?;
//! let guard = client.lock("orders:42").ttl(Duration::from_secs(30)).acquire_within(Duration::from_secs(5))?;
//! println!("charging with fencing token {}", guard.token());
//! guard.release().check()?;
//! # Ok::<(), fencelock::Error>(())
//! ```

// Written by hand, but for the setters: a macro would need the documentation and example of each method in both forms, and hide the
// signatures.

/// Makes the setters of a noun, each with its documentation here: they set the same option of the noun behind it.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),+);)*) => {$(
        $(#[$doc])*
        pub fn $name(self, $($argument: $type),+) -> Self {
            Self { inner: self.inner.$name($($argument),+), runtime: self.runtime }
        }
    )*};
}

mod all;
mod client;
mod election;
#[cfg(feature = "redis")]
mod gate;
mod job;
mod lock;
mod scope;
mod version;

pub use self::all::All;
pub use self::client::{Client, connect};
pub use self::election::{Election, Observer};
#[cfg(feature = "redis")]
pub use self::gate::RedisGate;
pub use self::job::{Job, Run};
pub use self::lock::{Guard, Lock};
pub use self::scope::Scope;
pub use self::version::Versioned;
