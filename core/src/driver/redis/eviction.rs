//! Whether a server evicts keys when its memory is full, by its own word.

use redis::{Cmd, Value};

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
pub(super) fn what_follows(told: Value) -> Option<&'static str> {
    let told: String = redis::from_redis_value(told).ok()?;
    let value = |name| told.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let policy = value("maxmemory_policy")?;
    // Without a limit nothing is evicted.
    let limited = value("maxmemory")? != "0";
    EVICTION.iter().find(|(name, _)| limited && policy.starts_with(name)).map(|(_, what)| *what)
}
