//! MariaDB servers of a test's own, and databases whose clock it moves.

mod moved;
mod server;

pub use self::moved::{MovedClock, MysqlSubject};
pub use self::server::MysqlServer;
