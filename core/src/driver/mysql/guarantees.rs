//! The guarantees of a lock in a MySQL or MariaDB table, in words.

use crate::driver::sql::guarantees::{
    BACK, DELETED, FAILOVER, FORWARD, HOLDER, NETWORK, PAUSED, WAITERS,
};
use crate::port::Guarantee;

const RESTART: Guarantee = Guarantee::new(
    "a server that writes its log at each commit restarts or crashes (`innodb_flush_log_at_trx_commit=1`)",
    "locks, queue and tokens continue as they were committed",
);
const RELAXED_RESTART: Guarantee = Guarantee::new(
    "a server that writes its log later crashes, or its machine",
    "the changes of the last second may be missing: two clients may believe they hold the lock until the first one's next renewal; tokens still rise, as far as the clock does not step back; a client that connects warns of it",
);
pub(super) const DURABLE: &[Guarantee] =
    &[HOLDER, WAITERS, PAUSED, NETWORK, RESTART, FAILOVER, FORWARD, BACK, DELETED];
pub(super) const RELAXED: &[Guarantee] =
    &[HOLDER, WAITERS, PAUSED, NETWORK, RELAXED_RESTART, FAILOVER, FORWARD, BACK, DELETED];
