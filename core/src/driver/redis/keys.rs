//! The keys of locks, their side records, cells and gates. All keys of a lock lie in one hash slot.

use once_cell::race::OnceBox;
use std::borrow::Cow;

use crate::port::{CellKey, Layout, LockKey};

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
}
