//! MariaDB servers of a test's own, and databases whose clock it moves.

mod moved;
mod server;
mod sessions;

pub use self::moved::{MovedClock, MysqlSubject};
pub use self::server::MysqlServer;
pub use self::sessions::MysqlSessions;
