//! The keys of locks, their side records, cells and gates, and those of other libraries beside them. All keys of a lock lie in one hash slot.

use std::borrow::Cow;
use std::collections::BTreeSet;

use redis::{Cmd, Value};

use super::fault::{self, Named};
use crate::error::Result;
use crate::port::{Action, CellKey, Layout, LockKey, Mode, Step, Take};

/// The dialects spoken beside the own layout, by their words.
pub(super) const DIALECTS: &[&str] = &["plain", "redisson"];

/// How many slots a cluster has.
#[cfg(any(feature = "redis", test))]
pub(super) const SLOTS: usize = 16384;
/// Where the birth mark of a node of a quorum lies.
pub(super) const BIRTH: &str = "fencelock:born";
const OPENING: &str = "fencelock:{";
const MIDDLE: &str = "}:lock";
/// The text between `MIDDLE` and the lock's key, one for each layout.
const OWN: &str = ":";
const PLAIN: &str = "/plain:";
const REDISSON: &str = "/redisson:";
/// The text before the name in the key of a lock in our own layout.
const HELD: &str = "}:held:";

/// The key that says who holds a mutex. In our own layout it lies among our keys, where no value of an application is in its way.
pub(super) fn holder_key(lock: &LockKey) -> Cow<'_, str> {
    match lock.layout() {
        Layout::Own => [OPENING, &tag(lock.as_str()), HELD, lock.as_str()].concat().into(),
        _ => lock.as_str().into(),
    }
}

/// The key of a lock's side record.
pub(super) fn record_key(lock: &LockKey) -> String {
    let mut key = String::new();
    write_record_key(lock, &mut key);
    key
}

/// The same, behind what `key` is already.
pub(super) fn write_record_key(lock: &LockKey, key: &mut String) {
    let layout = match lock.layout() {
        Layout::Plain => PLAIN,
        Layout::Redisson => REDISSON,
        // That of another store is refused before.
        _ => OWN,
    };
    key.extend([OPENING, &tag(lock.as_str()), MIDDLE, layout, lock.as_str()]);
}

/// The key of a cell.
pub(super) fn cell_key(cell: &CellKey) -> String {
    [OPENING, &tag(&cell.name), "}:", cell.family.word(), ":", &cell.name].concat()
}

/// The key of the newest token that has written a key.
#[cfg(feature = "redis")]
pub(super) fn gate_key(key: &str) -> String {
    [OPENING, &tag(key), "}:gate:", key].concat()
}

/// A key beside a lock's, for what replicas have to acknowledge.
#[cfg(any(feature = "redis", test))]
pub(super) fn mark_key(key: &str) -> String {
    [OPENING, &tag(key), "}:acks"].concat()
}

/// The slot of our keys for a lock.
#[cfg(any(feature = "redis", test))]
pub(super) fn slot_of(key: &str) -> u16 {
    slot(tag(key).as_bytes())
}

/// The lock whose side record lies under this key, if it is one.
pub(super) fn lock_of_record(record: &str) -> Option<LockKey> {
    // A tag never contains a closing brace, so the first `MIDDLE` is the one that was written.
    let (_, rest) = record.strip_prefix(OPENING)?.split_once(MIDDLE)?;
    let laid_out = |layout, infix| Some(LockKey::laid_out(layout, rest.strip_prefix(infix)?));
    let lock = laid_out(Layout::Plain, PLAIN)
        .or_else(|| laid_out(Layout::Redisson, REDISSON))
        .or_else(|| laid_out(Layout::Own, OWN))?;
    (record_key(&lock) == record).then_some(lock)
}

/// A glob that matches the side records of all locks whose key begins with `prefix`, and perhaps a few more.
pub(super) fn pattern(prefix: &str) -> String {
    let mut pattern = [OPENING, "*", MIDDLE, "*:"].concat();
    for c in prefix.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('*');
    pattern
}

/// The text in the braces of our keys: what a cluster hashes of the key itself, unless a lone brace is in it.
fn tag(key: &str) -> Cow<'_, str> {
    match hash_tag(key) {
        Some(tag) => tag.into(),
        None => key.replace(['{', '}'], "_").into(),
    }
}

/// The part of the key that a cluster hashes: between the first `{` and the first `}` after it, if that is not empty.
fn hash_tag(key: &str) -> Option<&str> {
    let (_, rest) = key.split_once('{')?;
    let (tag, _) = rest.split_once('}')?;
    (!tag.is_empty()).then_some(tag)
}

#[cfg(any(feature = "redis", test))]
fn slot(hashed: &[u8]) -> u16 {
    let crc = hashed.iter().fold(0u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    });
    crc % SLOTS as u16
}

/// A key that Redisson puts beside the lock, in its slot.
fn beside(key: &str, suffix: &str) -> String {
    if key.contains('{') { format!("{key}:{suffix}") } else { format!("{{{key}}}:{suffix}") }
}

/// The key that a step needs besides the lock and its record. The server has to know it, or it would find out in the
/// middle of the script that a slot is on its way elsewhere.
pub(super) fn redisson_side_key(step: &Step) -> Option<String> {
    if step.lock.layout() != Layout::Redisson {
        return None;
    }
    match &step.action {
        Action::Take(Take { mode: Mode::Read, .. }) => {
            let suffix = format!("{}:0:rwlock_timeout:1", step.owner.hyphenated());
            Some(beside(step.lock.as_str(), &suffix))
        }
        _ => None,
    }
}

/// Whether the key of another library for this lock lies in another slot than ours: a brace that stands alone changes what is hashed.
#[cfg(feature = "redis")]
pub(super) fn lies_apart(lock: &LockKey) -> bool {
    let elsewhere =
        |key: &str| slot(hash_tag(key).unwrap_or(key).as_bytes()) != slot_of(lock.as_str());
    match lock.layout() {
        Layout::Plain => elsewhere(lock.as_str()),
        Layout::Redisson => elsewhere(lock.as_str()) || elsewhere(&beside(lock.as_str(), "")),
        _ => false,
    }
}

/// Whom to wake when a lock becomes free: an element of this list, and a message to this channel; either may be empty.
pub(super) struct Wake {
    pub(super) list: String,
    pub(super) channel: String,
}

/// The signals for waiters of other libraries, by the dialect's prefix; without a prefix there is nobody to signal.
pub(super) fn wake_of(lock: &LockKey) -> Option<Wake> {
    let (prefix, name) = lock.split();
    // Of every lock `lock:<name>` python-redis-lock's waiters pop the list `lock-signal:<name>`.
    let list = if prefix == "lock:" { format!("lock-signal:{name}") } else { String::new() };
    // Of the locks `<registry>:<path>` Spring's waiters listen to `<registry>-channel:*`.
    let channel = match prefix.strip_suffix(':') {
        Some(registry) if !registry.is_empty() => format!("{registry}-channel:{}", lock.as_str()),
        _ => String::new(),
    };
    (!list.is_empty() || !channel.is_empty()).then_some(Wake { list, channel })
}

/// How many keys one `SCAN` looks at.
const COUNT: u32 = 1000;

/// The locks on a server whose key begins with `prefix`; `look` sends a command.
pub(super) async fn names<F: Future<Output = Result<Value>>>(
    prefix: &str,
    server: &impl Named,
    look: impl Fn(Cmd) -> F,
) -> Result<BTreeSet<LockKey>> {
    let (mut names, mut cursor) = (BTreeSet::new(), "0".to_owned());
    loop {
        let mut command = redis::cmd("SCAN");
        command.arg(&cursor).arg("MATCH").arg(pattern(prefix)).arg("COUNT").arg(COUNT);
        let keys: Vec<Vec<u8>>;
        (cursor, keys) = redis::from_redis_value(look(command).await?)
            .map_err(|error| fault::unanswered(server, &error.to_string()))?;
        let records = keys.iter().filter_map(|key| std::str::from_utf8(key).ok());
        let locks = records.filter_map(lock_of_record);
        names.extend(locks.filter(|lock| lock.as_str().starts_with(prefix)));
        if cursor == "0" {
            return Ok(names);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_lies_in_the_slot_of_its_lock() {
        for key in
            ["orders:42", "{user}:1", "a{b}c", "{}", "}{", "{", "}", "{}{a}", "{{a}}", "ä{ö}"]
        {
            assert_eq!(slot_of(&mark_key(key)), slot_of(key), "{key}");
            for layout in [Layout::Own, Layout::Plain, Layout::Redisson] {
                let lock = LockKey::laid_out(layout, key);
                assert_eq!(slot_of(&holder_key(&lock)), slot_of(key), "{key}");
                let record = record_key(&lock);
                assert_eq!(slot_of(&record), slot_of(key), "{key} and {record}");
                assert_eq!(lock_of_record(&record), Some(lock));
            }
        }
    }

    #[test]
    fn keys_of_others_are_no_records() {
        for key in ["fencelock:{a}:lock:b", "fencelock:{a", "x:{a}:lock:a", "fencelock:{a}:note:a"]
        {
            assert_eq!(lock_of_record(key), None, "{key}");
        }
    }

    #[test]
    fn only_a_prefix_tells_of_neighbours() {
        let wakes = |lock: &LockKey| wake_of(lock).map(|wake| (wake.list, wake.channel));
        assert_eq!(wakes(&LockKey::new("lock:a")), None);
        assert_eq!(wakes(&LockKey::plain("", "lock:a")), None);
        assert_eq!(wakes(&LockKey::plain(":", "a")), None);
        assert_eq!(wakes(&LockKey::plain("locks/", "a")), None);
        let spring = (String::new(), "shop-channel:shop:a".to_owned());
        assert_eq!(wakes(&LockKey::plain("shop:", "a")), Some(spring));
        let python = ("lock-signal:a".to_owned(), "lock-channel:lock:a".to_owned());
        assert_eq!(wakes(&LockKey::plain("lock:", "a")), Some(python));
    }
}
