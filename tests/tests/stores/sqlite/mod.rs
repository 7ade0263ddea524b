//! SQLite files: bad input, faults, killed processes.

mod faults;
mod identity;
