//! The guarantees of a lock in a PostgreSQL table, in words.

use crate::driver::sql::guarantees::{
    BACK, DELETED, FAILOVER, FORWARD, HOLDER, NETWORK, PAUSED, WAITERS,
};
use crate::port::Guarantee;

const RESTART: Guarantee = Guarantee::new(
    "the server restarts or crashes",
    "locks, queue and tokens continue as they were committed (`durability=durable`)",
);
const RELAXED_RESTART: Guarantee = Guarantee::new(
    "the server or its machine crashes",
    "the changes of the last second may be missing (`durability=relaxed`): two clients may believe they hold the lock until the first one's next renewal; tokens still rise, as far as the clock does not step back",
);
const POOLER: Guarantee = Guarantee::new(
    "a pooler stands before the server",
    "it has to keep sessions: one that hands each transaction to another session is found and refused when the client connects",
);

pub(super) const DURABLE: &[Guarantee] =
    &[HOLDER, WAITERS, PAUSED, NETWORK, RESTART, FAILOVER, FORWARD, BACK, DELETED, POOLER];
pub(super) const RELAXED: &[Guarantee] =
    &[HOLDER, WAITERS, PAUSED, NETWORK, RELAXED_RESTART, FAILOVER, FORWARD, BACK, DELETED, POOLER];
