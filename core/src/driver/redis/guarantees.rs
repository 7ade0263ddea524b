//! The guarantees of a lock on Redis, in words, and the warning where a server breaks one.

use redis::{Cmd, Value};

use crate::port::Guarantee;

const HOLDER_DIES: Guarantee = Guarantee::new(
    "the holder dies",
    "the lock is free after at most one ttl; its waiters are served in order",
);
const WAITERS_DIE: Guarantee = Guarantee::new(
    "waiters die too",
    "their places in the queue end 5 s after they die; if a dead waiter is granted the lock before that, the next one waits for its lease to end, 5 s at most",
);
const NETWORK: Guarantee = Guarantee::new(
    "the network drops, delays or cuts",
    "a request without an answer is never a grant, and is cleaned up; a lock that cannot be renewed is reported lost before its lease ends",
);
const RESTART: Guarantee = Guarantee::new(
    "the server restarts with its data",
    "locks, queue and tokens continue; guards that could not be renewed in time are lost",
);
const AMNESIA: Guarantee = Guarantee::new(
    "the server restarts without its data, or FLUSHALL, or a foreign DEL",
    "two clients may believe they hold the lock until the first one's next renewal; the fence covers it: tokens come from the server's clock, and run ahead of it by 10 ms at most; for 10 ms after its grant the first client may pass the lock on to its own waiters, with tokens below the second client's",
);
const FAILOVER: Guarantee = Guarantee::new(
    "failover (Sentinel, Cluster) without `acks`",
    "locks are granted again within a second of it; what the old master had not replicated is gone, so two clients may believe they hold the lock until the first one's next renewal; the fence covers it as far as the clocks of the two servers agree",
);
const ACKED: Guarantee = Guarantee::new(
    "failover with `acks`",
    "a grant or a renewal counts only when that many replicas have it, so it survives on any of them; if another replica takes over, or the clocks differ, the row without `acks` holds",
);
const CUT_OFF: Guarantee = Guarantee::new(
    "a master is cut off from its replicas, but not from its clients",
    "until it steps down it may grant a lock that the new master grants too; the fence covers it; with `acks` it grants and renews nothing",
);
const SLOT: Guarantee = Guarantee::new(
    "a slot of a cluster moves to another node",
    "locks, queue and tokens move with it; a free lock cannot be taken until its slot has moved, and in the dialect `redisson` no further reader can enter",
);
const FORWARD: Guarantee = Guarantee::new(
    "the server's clock jumps forward",
    "leases may end early; two clients may believe they hold the lock until the next renewal; the fence covers it",
);
const STEPS_BACK: Guarantee = Guarantee::new(
    "the server's clock steps back",
    "no guard counts on a longer lease than it asked for; the lock of a holder that died is free one lease after the next client asks for it",
);
const CORRECTED: Guarantee = Guarantee::new(
    "the server's clock steps back and is corrected",
    "two clients may believe they hold the lock, for one lease at most; the fence covers it",
);
const BACKWARD: Guarantee = Guarantee::new(
    "the server's clock steps back and its data is lost",
    "the store no longer knows the older tokens; a client accepts no token below those it has seen: it raises the store's counter by up to a minute, and beyond that waits until the clock has passed them",
);
const FIXED: Guarantee = Guarantee::new(
    "renew is false",
    "a delete by another program, or a loss of data, is not reported before the deadline; the fence covers it",
);
const VALUES: Guarantee = Guarantee::new(
    "the data is lost or an older copy is restored: jobs and versions",
    "a job may run once more for its last scheduled instant; tokens and versions still rise, as far as the clock does not step back",
);
const JOBS: Guarantee = Guarantee::new(
    "the server's clock was ahead and is corrected: jobs",
    "a recorded run that lies ahead by more than half a period plus a minute is ignored: the run that is due starts and overwrites the record, but not beside a run in progress, which has the job's lock; a record that lies ahead by less keeps runs from starting until the clock has caught up, and a start reports that",
);
const SHORTENED: Guarantee = Guarantee::new(
    "a Redisson reader renews beside a fencelock reader (dialect `redisson`)",
    "Redisson sets the end of the shared lock to its own lease, even if that is earlier; give it a `lockWatchdogTimeout` of at least `ttl`, or a writer may enter before the fencelock reader renews next",
);

/// The rows of servers that fail over like this, and have slots that move.
macro_rules! rows {
    ($failover:ident $(, $slot:ident)?) => {
        &[
            HOLDER_DIES, WAITERS_DIE, Guarantee::PAUSED, NETWORK, RESTART, AMNESIA, $failover, CUT_OFF, $($slot,)? FORWARD, STEPS_BACK,
            CORRECTED, BACKWARD, FIXED, VALUES, JOBS, SHORTENED,
        ]
    };
}

/// The guarantees of one server, or of a cluster of them.
pub(super) fn guarantees(cluster: bool, acks: u32) -> &'static [Guarantee] {
    match (cluster, acks) {
        (true, 0) => rows!(FAILOVER, SLOT),
        (true, _) => rows!(ACKED, SLOT),
        (false, 0) => rows!(FAILOVER),
        (false, _) => rows!(ACKED),
    }
}

/// Warnings about the keys lost when the server's memory is full, by the beginnings of the names of policies that evict.
const EVICTION: [(&str, &str); 2] = [
    (
        "allkeys-",
        "the server evicts keys when its memory is full, also locks and what gates and values remember: two may hold at once, and a stale write may pass; set `maxmemory-policy noeviction`, or use a server of its own for locks",
    ),
    (
        "volatile-",
        "the server evicts keys with an end when its memory is full, locks among them: two may hold at once until the first one's next renewal; set `maxmemory-policy noeviction`, or use a server of its own for locks",
    ),
];

/// Asks what becomes of keys when the server's memory is full. Who may not ask is not told, and works.
pub(super) fn memory() -> Cmd {
    let mut question = redis::cmd("INFO");
    question.arg("memory");
    question
}

/// The warning that follows from the answer to [`memory`], if any.
pub(super) fn eviction_warning(reply: Value) -> Option<&'static str> {
    let info: String = redis::from_redis_value(reply).ok()?;
    let value = |name| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let policy = value("maxmemory_policy")?;
    // Without a limit nothing is evicted.
    let limited = value("maxmemory")? != "0";
    EVICTION.iter().find(|(name, _)| limited && policy.starts_with(name)).map(|(_, what)| *what)
}
