//! The keys of locks, their side records, cells and gates, and those of other libraries beside them. All keys of a lock lie in one hash slot.

use once_cell::race::OnceBox;
use std::borrow::Cow;

use redis::{Cmd, ParsingError, Value};

use crate::port::{Action, CellKey, Kind, Layout, LockKey, Mode, Step, Take};

/// The dialects spoken beside the own layout, by their words.
pub(super) const DIALECTS: &[&str] = &["plain", "redisson"];

/// How many slots a cluster has.
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

/// The slot of a lock's keys.
#[cfg(any(feature = "redis", test))]
pub(super) fn slot_of(key: &str) -> u16 {
    slot(hash_tag(key).unwrap_or(key).as_bytes())
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

/// The text in the braces of the record's key, chosen so that both keys share a slot.
fn tag(key: &str) -> Cow<'_, str> {
    match hash_tag(key) {
        Some(tag) => tag.into(),
        None if !key.contains(['{', '}']) => key.into(),
        // The whole key is hashed, but it cannot stand within braces: any short text of the same slot does.
        None => {
            let tag = tags()[usize::from(slot(key.as_bytes()))];
            tag.iter().map(|byte| char::from(*byte)).collect::<String>().into()
        }
    }
}

/// The part of the key that a cluster hashes: between the first `{` and the first `}` after it, if that is not empty.
fn hash_tag(key: &str) -> Option<&str> {
    let (_, rest) = key.split_once('{')?;
    let (tag, _) = rest.split_once('}')?;
    (!tag.is_empty()).then_some(tag)
}

fn slot(hashed: &[u8]) -> u16 {
    let crc = hashed.iter().fold(0u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    });
    crc % SLOTS as u16
}

/// One text of four letters and digits for every slot.
fn tags() -> &'static [[u8; 4]] {
    // Nobody waits for another one to find them: after a fork, that one might not exist.
    static TAGS: OnceBox<Vec<[u8; 4]>> = OnceBox::new();
    TAGS.get_or_init(|| Box::new(find_tags()))
}

fn find_tags() -> Vec<[u8; 4]> {
    const LETTERS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut tags = vec![[0; 4]; SLOTS];
    let mut missing = SLOTS;
    for number in 0..LETTERS.len().pow(4) {
        let letter = |place: u32| LETTERS[number / 36usize.pow(place) % 36];
        let text = [letter(0), letter(1), letter(2), letter(3)];
        let tag = &mut tags[usize::from(slot(&text))];
        if *tag == [0; 4] {
            *tag = text;
            missing -= 1;
            if missing == 0 {
                break;
            }
        }
    }
    tags
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
        Action::Read => None,
        _ if step.kind == Kind::Semaphore => Some(beside(step.lock.as_str(), "timeout")),
        Action::Take(Take { mode: Mode::Read, .. }) => {
            let suffix = format!("{}:0:rwlock_timeout:1", step.owner.hyphenated());
            Some(beside(step.lock.as_str(), &suffix))
        }
        _ => None,
    }
}

/// Whether Redisson's keys of this lock lie in different slots: a brace that stands alone changes what is hashed.
#[cfg(feature = "redis")]
pub(super) fn lies_apart(lock: &LockKey) -> bool {
    let key = lock.as_str();
    lock.layout() == Layout::Redisson && slot_of(&beside(key, "")) != slot_of(key)
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

/// A look at all keys, a part at a time.
pub(super) struct Scan<'a> {
    prefix: &'a str,
    /// Where to go on; none: it was all.
    cursor: Option<String>,
}

impl<'a> Scan<'a> {
    /// For the locks whose key begins like this.
    pub(super) fn of(prefix: &'a str) -> Self {
        Self { prefix, cursor: Some("0".to_owned()) }
    }

    /// The next command to send, if the scan is not at its end.
    pub(super) fn next(&self) -> Option<Cmd> {
        let cursor = self.cursor.as_ref()?;
        let mut command = redis::cmd("SCAN");
        command.arg(cursor).arg("MATCH").arg(pattern(self.prefix)).arg("COUNT").arg(COUNT);
        Some(command)
    }

    /// The locks in what came back, perhaps some of them again.
    pub(super) fn take_in(&mut self, reply: Value) -> Result<Vec<LockKey>, ParsingError> {
        let (next, keys): (String, Vec<Vec<u8>>) = redis::from_redis_value(reply)?;
        self.cursor = (next != "0").then_some(next);
        let records = keys.iter().filter_map(|key| std::str::from_utf8(key).ok());
        let locks = records.filter_map(lock_of_record);
        Ok(locks.filter(|lock| lock.as_str().starts_with(self.prefix)).collect())
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
    fn every_slot_has_a_tag() {
        for (number, tag) in tags().iter().enumerate() {
            assert_eq!(usize::from(slot(tag)), number);
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
