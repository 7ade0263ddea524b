//! Nothing to use: the programs stand in `rust/`, in `inventory/`, which is told in every language, and in
//! `counter/`. This library exists to run the README's code.

/// The README; its Rust blocks are documentation tests.
#[doc = include_str!("../../README.md")]
pub mod readme {}
