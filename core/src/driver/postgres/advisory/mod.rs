//! Locks that live with a session of a PostgreSQL database: advisory locks. Whoever waits does so in the server's own queue, and the
//! lock of a process that dies is free at once.
//!
//! The server ends a session that was silent for the length of the lease (`idle_session_timeout`), so that a session is a lease. The
//! number of a lock is 64 bits of a hash of its name, and tokens are drawn from a sequence, which no rollback turns back; both are
//! functions of the printed migration, so that a user's own transaction takes the same locks.

mod session;
mod statement;
mod store;
mod unclosed;
mod view;

pub use self::session::AdvisorySession;
pub use self::store::AdvisoryStore;
