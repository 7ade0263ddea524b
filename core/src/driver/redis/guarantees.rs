//! What a lock on Redis survives, in words.

use crate::port::Guarantee;

const HOLDER_DIES: Guarantee = Guarantee::new(
    "the holder dies",
    "the lock is free after at most one ttl; its waiters are served in order",
);
const WAITERS_DIE: Guarantee = Guarantee::new(
    "waiters die too",
    "their places in the queue end 5 s after they died; one that is served before that keeps the next ones waiting for its ttl, 5 s at most",
);
const PAUSED: Guarantee = Guarantee::new(
    "the holder is paused (GC, SIGSTOP, suspend)",
    "past its deadline the guard says lost at its first look; a write made without looking is refused by the fence",
);
const NETWORK: Guarantee = Guarantee::new(
    "the network drops, delays or cuts",
    "an unanswered request is never a grant and is undone; a hold that cannot be renewed is lost before its lease ends",
);
const RESTART: Guarantee = Guarantee::new(
    "the server restarts with its data",
    "holds, queue and tokens go on; guards that could not be renewed in time are lost",
);
const AMNESIA: Guarantee = Guarantee::new(
    "the server restarts without its data, or FLUSHALL, or a foreign DEL",
    "two may believe to hold until the first one's next renewal; the fence covers it: tokens come from the server's clock, and run ahead of it by 10 ms at most; for 10 ms after its grant such a hold may pass on inside its client, with a token below that of who was granted since",
);
const FAILOVER: Guarantee = Guarantee::new(
    "failover (Sentinel, Cluster) without `acks`",
    "locks are granted again within a second of it; what the old master had not passed on is gone, so that two may believe to hold until the first one's next renewal: the fence covers it as far as the clocks of the two servers agree",
);
const ACKED: Guarantee = Guarantee::new(
    "failover with `acks`",
    "a grant or a renewal counts only once that many replicas have it, so it lives on in any of these; if another one takes over, or their clocks differ, as without `acks`",
);
const CUT_OFF: Guarantee = Guarantee::new(
    "a master is cut off from its replicas, but not from us",
    "until it steps down it grants what the new master grants too, and the fence covers it; with `acks` it grants and renews nothing",
);
const SLOT: Guarantee = Guarantee::new(
    "a slot of a cluster moves to another node",
    "holds, queue and tokens go along; a lock that nobody holds cannot be taken until its slot has moved, nor can it in the dialect `redisson` by one more reader",
);
const FORWARD: Guarantee = Guarantee::new(
    "the server's clock jumps forward",
    "leases may end early: two may believe to hold until the next renewal; the fence covers it",
);
const STEPS_BACK: Guarantee = Guarantee::new(
    "the server's clock steps back",
    "no guard believes in more than it asked for; the lock of a holder that died is free one lease after somebody asks for it",
);
const CORRECTED: Guarantee = Guarantee::new(
    "the server's clock steps back and is set right again",
    "two may believe to hold, for one lease at most; the fence covers it",
);
const BACKWARD: Guarantee = Guarantee::new(
    "the server's clock steps back and its data is lost",
    "nothing on the store knows the older tokens; a client accepts none below those it has seen: it raises the counter by up to a minute, and beyond that waits until the clock has passed them",
);
const FIXED: Guarantee = Guarantee::new(
    "renew is false",
    "a foreign delete or data loss is not told before the deadline; the fence covers it",
);
const VALUES: Guarantee = Guarantee::new(
    "the data is lost or falls back: jobs and versions",
    "the instant a job ran last may be run once more; tokens and versions still rise, as far as the clock does not step back",
);
const JOBS: Guarantee = Guarantee::new(
    "the server's clock was ahead and is set right: jobs",
    "what it left of a run that lies ahead by more than half a period, and a minute, is not believed: the run that is due starts and overwrites it, also beside one in progress, which is lost with its next sign of life (the fence covers it); what lies ahead by less keeps runs from starting until the clock has caught up, and a start says so",
);
const SHORTENED: Guarantee = Guarantee::new(
    "a reader of Redisson's renews beside ours (dialect `redisson`)",
    "it sets the end of the common lock to its own lease, also nearer: give it a `lockWatchdogTimeout` no shorter than `ttl`, or a writer may enter before ours renews next",
);

/// The rows of servers that fail over like this, and have slots that move.
macro_rules! rows {
    ($failover:ident $(, $slot:ident)?) => {
        &[
            HOLDER_DIES, WAITERS_DIE, PAUSED, NETWORK, RESTART, AMNESIA, $failover, CUT_OFF, $($slot,)? FORWARD, STEPS_BACK,
            CORRECTED, BACKWARD, FIXED, VALUES, JOBS, SHORTENED,
        ]
    };
}

/// What can be promised of one server, or of a cluster of them.
pub(super) fn guarantees(cluster: bool, acks: u32) -> &'static [Guarantee] {
    match (cluster, acks) {
        (true, 0) => rows!(FAILOVER, SLOT),
        (true, _) => rows!(ACKED, SLOT),
        (false, 0) => rows!(FAILOVER),
        (false, _) => rows!(ACKED),
    }
}
