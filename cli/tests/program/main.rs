//! The command line, as a terminal and scripts use it.
#![allow(missing_docs)]

mod descendants;
mod etcd_runs;
mod gate;
mod input;
mod job;
mod look;
mod loss;
mod orphan;
mod redis;
mod run;
#[cfg(target_os = "linux")]
#[path = "../scene/mod.rs"]
mod scene;
mod signals;
mod store_runs;
mod terminal;
