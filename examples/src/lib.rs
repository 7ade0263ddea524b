//! Nothing to use: the programs stand in `rust/`, one language a folder, and the two that are told in
//! every language in `inventory/` and `counter/`. This library exists to run the README's code.

/// The README; its Rust blocks are documentation tests.
#[doc = include_str!("../../README.md")]
pub mod readme {}
