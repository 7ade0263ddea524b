//! Other lock libraries: which versions, how they are had from their registries, and the programs around them that the
//! bench measures and the tests play against. This is the only place that knows versions and installs, and the tables that some need. Our own packages
//! for other languages are installed from here too ([`Door`]), each by its own script.
//!
//! A folder beside this file is a family: what can be installed in one go. Its manifest pins the versions. What is
//! installed lies below `target/peers` and is kept until the manifest changes.

mod door;
mod family;
mod program;
mod tables;

pub use door::{DOORS, Door};
pub use family::{Family, Lack};
pub use program::{Program, target};
pub use tables::{MYSQL_TABLES, POSTGRES_TABLES};

/// The role of a program around a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Runs the bench's courses; `bench/src/subject/mod.rs` has the protocol.
    Bench,
    /// Does what it is asked for, line by line; `tests/README.md` has the protocol.
    Actor,
}
