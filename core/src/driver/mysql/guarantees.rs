//! The guarantees of a lock in a MySQL or MariaDB table, then of one that lives with a session, in words.

use crate::driver::sql::guarantees as table;
use crate::driver::sql::session::guarantees as session;
use crate::port::Guarantee;

const RESTART: Guarantee = Guarantee::new(
    "a server that writes its log at each commit restarts or crashes (`innodb_flush_log_at_trx_commit=1`)",
    "locks, queue and tokens continue as they were committed",
);
const RELAXED_RESTART: Guarantee = Guarantee::new(
    "a server that writes its log later crashes, or its machine",
    "the changes of the last second may be missing: two clients may believe they hold the lock until the first one's next renewal; tokens still rise, as far as the clock does not step back; a client that connects warns of it",
);
/// The rows of a table on a server that restarts like this.
macro_rules! table {
    ($restart:ident) => {
        &[
            table::HOLDER,
            table::WAITERS,
            Guarantee::PAUSED,
            table::NETWORK,
            $restart,
            table::FAILOVER,
            table::FORWARD,
            table::BACK,
            table::DELETED,
        ]
    };
}
pub(super) const DURABLE: &[Guarantee] = table!(RESTART);
pub(super) const RELAXED: &[Guarantee] = table!(RELAXED_RESTART);

const TTL: Guarantee = Guarantee::new(
    "the ttl is no whole number of seconds",
    "the server counts it to the next whole second; the guard counts the ttl itself",
);
const TOLD: Guarantee = Guarantee::new(
    "a connection ends while its client asks nothing",
    "its guards are told within a second",
);
const SESSION_RESTART: Guarantee = Guarantee::new(
    "the server restarts or crashes",
    "all locks end and their guards are told; tokens still rise",
);
const FAILOVER: Guarantee = Guarantee::new(
    "a failover to a replica",
    "all locks end and their guards are told; tokens still rise, but that those drawn right before it may be drawn again, as far as they were not replicated",
);
const CLOCK: Guarantee = Guarantee::new(
    "the server's clock jumps",
    "on MariaDB tokens still rise; on MySQL they are the clock, so they rise as far as it does not step back",
);
const PROXY: Guarantee = Guarantee::new(
    "a proxy stands before the server",
    "it has to keep sessions: another connection that answers is noticed at its first answer, and that is no grant",
);
const CLUSTER: Guarantee = Guarantee::new(
    "the server is a node of a cluster that writes on several (Galera, Group Replication)",
    "the locks are those of one node: let all clients use the same one",
);
const ROW_DEAD: Guarantee = Guarantee::new(
    "somebody who waits for a row dies",
    "its place stays until it is its turn, and is skipped then, within milliseconds",
);
const ROW_LONG: Guarantee = Guarantee::new(
    "a row is locked for long",
    "its transaction stays open: a change of its table's definition waits for it, and so does who changes the row",
);

/// The rows of a session, and more.
macro_rules! session {
    ($($more:expr),*) => {
        &[
            session::HOLDER, session::WAITERS, session::PAUSED, session::NETWORK, session::RESTORE, session::LOADED, TTL, TOLD,
            SESSION_RESTART, FAILOVER, CLOCK, PROXY, CLUSTER, $($more),*
        ]
    };
}
pub(super) const NAMED: &[Guarantee] = session!();
pub(super) const ROWS: &[Guarantee] = session!(session::LONG_WAIT, ROW_DEAD, ROW_LONG);
