//! The native part of fencelock's Node package: connects, submits, drains. It holds no lock logic, and what users touch is
//! written in TypeScript beside it (`lib/`).
//!
//! Operations and their ends cross as JSON text, clients and guards as numbers: an object made here costs more than all the
//! rest of a crossing. An error is an end too, and becomes the package's own class in TypeScript.
#![allow(unsafe_code, reason = "napi's macros expand to it; nothing here is written unsafe")]
#![allow(clippy::needless_pass_by_value, reason = "text crosses as a value of its own")]

mod door;
mod entry;
mod runtime;

use fencelock::options::TABLE;
use napi_derive::napi;

use crate::entry::entry;

/// The table of options as JSON: name, kind, default, scope and meaning of each.
#[napi]
pub fn options() -> napi::Result<String> {
    entry(|| serde_json::to_string(TABLE).unwrap_or_default())
}
