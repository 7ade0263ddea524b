//! The public API without lifetimes and generics, for fencelock's own bindings, with which it changes: it is no part of what versions
//! promise. All bindings use the same pump.
//!
//! A binding puts its clients behind a [`Facade`] each, and has a [`Pump`] for every way it is woken: an event loop, an
//! environment, a thread that drains. It submits an operation, gets a number, can abort it, and drains completions in
//! batches. Guards live in the facade behind numbers, so nothing heavy crosses. A grant nobody collects is released.

mod client;
mod election;
mod environment;
mod feed;
mod gate;
mod held;
mod job;
mod lock;
mod operation;
mod pump;
mod version;

pub use self::client::{Facade, Load, defect};
pub use self::environment::Environment;
pub use self::feed::{Feed, for_host};
pub use self::operation::{Answer, Form, GateWrite, Granted, JobTimes, Operation};
pub use self::pump::{Completion, Pump, Wake};
