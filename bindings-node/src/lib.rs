//! The native part of fencelock's Node package: connects, submits, drains. It holds no lock logic, and what users touch is
//! written in TypeScript beside it (`lib/`).
//!
//! Operations and their ends cross as JSON text, clients and guards as numbers: an object made here costs more than all the
//! rest of a crossing. An error is an end too, and becomes the package's own class in TypeScript.
#![allow(unsafe_code, reason = "napi's macros expand to it; nothing here is written unsafe")]
#![allow(clippy::needless_pass_by_value, reason = "text crosses as a value of its own")]

mod clients;
mod door;
mod end;
mod feed;
mod runtime;

use fencelock::Released;
use fencelock::options::TABLE;
use napi_derive::napi;

/// The table of options as JSON: name, kind, default, scope and meaning of each.
#[napi(catch_unwind)]
pub fn options() -> String {
    serde_json::to_string(TABLE).unwrap_or_default()
}

/// The error of a lock that was found lost when it was given back, as JSON.
#[napi(catch_unwind)]
pub fn lost_before_release() -> String {
    let error = Released::AlreadyLost.check().err();
    serde_json::to_string(&error).unwrap_or_default()
}
