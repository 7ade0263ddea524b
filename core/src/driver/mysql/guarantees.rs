//! What a lock in a MySQL or MariaDB table survives, in words.

use crate::driver::sql::guarantees::{
    BACK, DELETED, FAILOVER, FORWARD, HOLDER, NETWORK, PAUSED, WAITERS,
};
use crate::driver::sql::session_guarantees as sessions;
use crate::port::Guarantee;

const RESTART: Guarantee = Guarantee::new(
    "a server that writes its log at each commit restarts or crashes (`innodb_flush_log_at_trx_commit=1`)",
    "locks, queue and tokens continue as they were committed",
);
const RELAXED_RESTART: Guarantee = Guarantee::new(
    "a server that writes its log later crashes, or its machine",
    "the changes of the last second may be missing: two clients may believe they hold the lock until the first one's next renewal; tokens still rise, as far as the clock does not step back; a client that connects warns of it",
);
const WAKING: Guarantee = Guarantee::new(
    "a waiter cannot be woken: its client has another database user, is connected to another node, or stands behind a proxy that does not keep sessions",
    "it looks once a second",
);

pub(super) const DURABLE: &[Guarantee] =
    &[HOLDER, WAITERS, PAUSED, NETWORK, RESTART, FAILOVER, FORWARD, BACK, DELETED, WAKING];
pub(super) const RELAXED: &[Guarantee] =
    &[HOLDER, WAITERS, PAUSED, NETWORK, RELAXED_RESTART, FAILOVER, FORWARD, BACK, DELETED, WAKING];

const SESSION_TTL: Guarantee = Guarantee::new(
    "a lock lives with a session, whose end the server counts in whole seconds",
    "where it waits one ttl for a session, it waits to the next whole second; the guard counts the ttl itself",
);
const SESSION_TOLD: Guarantee = Guarantee::new(
    "the connection of a session ends while its client asks nothing",
    "its guards are told within a second",
);
const SESSION_RESTART: Guarantee = Guarantee::new(
    "the server of a session restarts, crashes or fails over",
    "all locks end and their guards are told; tokens still rise",
);
const SESSION_CLOCK: Guarantee = Guarantee::new(
    "the clock of a session's server jumps",
    "on MariaDB tokens still rise; on MySQL they are the clock, so they rise as far as it does not step back",
);
const SESSION_PROXY: Guarantee = Guarantee::new(
    "a proxy stands before a session's server",
    "it has to keep sessions: another connection that answers is noticed at its first answer, and that is no grant",
);
const SESSION_CLUSTER: Guarantee = Guarantee::new(
    "the server of a session is a node of a cluster that writes on several (Galera, Group Replication)",
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

pub(super) const NAMED: &[Guarantee] = &[
    sessions::HOLDER,
    sessions::WAITERS,
    sessions::PAUSED,
    sessions::NETWORK,
    sessions::RESTORE,
    SESSION_TTL,
    SESSION_TOLD,
    SESSION_RESTART,
    SESSION_CLOCK,
    SESSION_PROXY,
    SESSION_CLUSTER,
];
pub(super) const ROWS: &[Guarantee] = &[
    sessions::HOLDER,
    sessions::WAITERS,
    sessions::PAUSED,
    sessions::NETWORK,
    sessions::RESTORE,
    SESSION_TTL,
    SESSION_TOLD,
    SESSION_RESTART,
    SESSION_CLOCK,
    SESSION_PROXY,
    SESSION_CLUSTER,
    ROW_DEAD,
    ROW_LONG,
];
