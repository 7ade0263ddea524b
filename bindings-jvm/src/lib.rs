//! The JVM's door: [`natives`] are what `io.github.fencelock.Natives` calls, and all that a JVM ever sees of Rust.
//!
//! Calls are numbers and bytes. None of them waits for a lock: an operation is submitted and gets a number, and one Java
//! thread, which waits in `drain`, hears how it ended. No thread of ours ever attaches to the JVM.

mod end;
mod hub;
pub mod natives;
mod parcel;
mod wakeup;
