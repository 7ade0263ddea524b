//! Distributed locks that tell the truth: a fencing token on every grant, guards that know their deadline, nothing left
//! behind.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use std::time::Duration;
//!
//! let client = fencelock::connect("memory:").await?; // or redis://127.0.0.1, or sqlite:locks.db
//! let guard = client.lock("orders:42").acquire_within(Duration::from_secs(5)).await?;
//! println!("charging with fencing token {}", guard.token());
//! guard.release().await.check()?;
//! # Ok::<(), fencelock::Error>(()) }).unwrap();
//! ```
//!
//! * [`connect`] gives a [`Client`]; [`Client::lock`] names a [`Lock`]; acquiring it gives a [`Guard`].
//! * The guard's [`Token`] rises with every grant. Hand it to the resource, which refuses older ones ([`Gate`]).
//! * The lease is renewed while the guard lives. If it is lost all the same, [`Claim::is_held`] says so and
//!   [`Claim::lost`] completes, before the store may give the lock to another.
//! * Dropping a guard, or an acquire that is still [`Pending`], frees whatever it had within one round trip.
//! * [`Client::job`] runs something at most once in a period, [`Client::election`] finds one leader, [`Client::version`] keeps a
//!   value that nobody overwrites unseen.
//! * In the child of a plain `fork` clients and guards of the parent are inert: a guard is not held there, what is asked of a client
//!   is answered `closed`, and neither a release nor a drop frees anything; the parent keeps what it has. Connect again in the
//!   child. An async runtime that was made before the fork must not be driven there: its tasks and sockets are the parent's.
//!   Around a fork beside a SQLite store, see `driver::sqlite::still`.
//! * [`blocking`] has the same nouns for threads.
//!
//! Stores are cargo features: `redis`, `sqlite`, `etcd`, `zookeeper`, `postgres`, `mysql`; memory is always there. [`port`] has
//! the interfaces that a store implements.

mod algorithm;
mod all;
#[cfg(feature = "tokio")]
pub mod blocking;
mod client;
pub mod driver;
mod elect;
mod engine;
mod error;
mod event;
#[doc(hidden)]
pub mod facade;
mod fence;
mod guard;
mod identity;
mod job;
mod lock;
pub mod options;
pub mod port;
mod reason;
mod released;
pub mod runtime;
mod scope;
#[cfg(any(feature = "tokio", feature = "host"))]
mod url;
mod version;

mod with_error;

pub use algorithm::{Queue, Quorum, Sessions};
pub use all::All;
#[cfg(feature = "tokio")]
pub use client::connect;
#[cfg(feature = "redis")]
pub use client::connect_gate;
pub use client::{Client, ClientBuilder, Stats};
#[cfg(feature = "redis")]
pub use driver::redis::RedisGate;
pub use elect::{Election, Leader, Observer};
pub use error::{Code, Error, Result};
pub use event::{Event, EventKind};
pub use fence::{Gate, Token};
pub use guard::{Claim, Guard, Pending};
pub use job::{Job, JobState, Run, RunClaim, Schedule, Skipped, Status};
pub use lock::Lock;
pub use port::{Capabilities, HolderView, Kind, LockState, Mode, Version};
pub use reason::Reason;
pub use released::Released;
pub use scope::Scope;
pub use version::{Snapshot, Swapped, Versioned};
pub use with_error::WithError;
