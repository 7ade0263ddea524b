//! fencelock (front page to come)
#![forbid(unsafe_code)]

#[macro_use]
#[cfg_attr(feature = "mutants", doc(hidden))]
pub mod mutation;

mod algorithm;
#[cfg(feature = "tokio")]
pub mod blocking;
mod client;
pub mod driver;
mod error;
mod event;
pub mod facade;
mod fence;
mod guard;
pub mod layer;
mod lock;
pub mod options;
pub mod port;
pub mod runtime;
#[cfg(feature = "tokio")]
mod url;

#[cfg(feature = "tokio")]
pub use client::connect;
pub use client::{Client, ClientBuilder};
pub use error::{Code, Error, Result};
pub use event::{Event, EventKind};
pub use fence::{Gate, Token};
pub use guard::{Claim, Guard, Pending, Released};
pub use lock::Lock;
