//! fencelock (front page to come)
#![forbid(unsafe_code)]

#[macro_use]
#[cfg_attr(feature = "mutants", doc(hidden))]
pub mod mutation;

pub mod driver;
mod error;
mod fence;
pub mod options;
pub mod port;
pub mod runtime;

pub use error::{Code, Error, Result};
pub use fence::{Gate, Token};
