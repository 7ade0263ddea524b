//! The compiled part of fencelock's package for WebAssembly: connects, submits, drains, over a Redis client of the host's or
//! in memory. It holds no lock logic; what users touch is the TypeScript of the Node package.
//!
//! Text and numbers cross, as in the Node package. Clock, timers, randomness and the event loop are the host's, too.
#![cfg(target_arch = "wasm32")]
#![allow(
    unsafe_code,
    reason = "wasm-bindgen's macros expand to it; nothing here is written unsafe"
)]
#![allow(clippy::needless_pass_by_value, reason = "text crosses as a value of its own")]

mod door;
mod host;
mod runtime;
mod transport;

use fencelock::options::TABLE;
use wasm_bindgen::prelude::wasm_bindgen;

/// The table of options as JSON: name, kind, default, scope and meaning of each.
#[wasm_bindgen]
pub fn options() -> String {
    serde_json::to_string(TABLE).unwrap_or_default()
}

/// Lets every task that can go on do so, once.
#[wasm_bindgen]
pub fn turn() {
    runtime::turn();
}
