//! PostgreSQL servers and poolers of a test's own, and databases whose clock it moves.

mod moved;
mod pooler;
mod server;
mod sessions;

pub use self::moved::{MovedClock, PostgresSubject};
pub use self::pooler::Pooler;
pub use self::server::PostgresServer;
pub(crate) use self::server::start_with_rights;
pub use self::sessions::PostgresSessions;
