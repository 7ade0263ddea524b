//! MariaDB servers of a test's own, and databases whose clock it moves.

mod moved;
mod server;
mod sessions;
mod switch;

pub use self::moved::{MovedClock, MysqlSubject};
pub use self::server::MysqlServer;
pub(crate) use self::server::start_with_rights;
pub use self::sessions::MysqlSessions;
pub(crate) use self::sessions::{key, mark};
pub use self::switch::Switch;
