//! The scripts for locks that are laid out as Redisson does: what they do where the layouts differ.

#[cfg(feature = "redis")]
use super::keys::slot_of;
use super::script::Call;
#[cfg(feature = "redis")]
use crate::port::LockKey;
use crate::port::{Action, Kind, Layout, Mode, Step, Take};

/// The parts of a script between the record and the kind.
pub(super) fn parts(call: Call, kind: Kind) -> Vec<&'static str> {
    let layout = include_str!("lua/redisson/layout.lua");
    let hash = include_str!("lua/redisson/hash.lua");
    let (readers, counter) =
        (include_str!("lua/redisson/readers.lua"), include_str!("lua/redisson/counter.lua"));
    match (call, kind) {
        (Call::Look, _) => vec![layout, hash, readers, counter],
        (_, Kind::Mutex) => vec![layout, hash],
        (_, Kind::ReadWrite) => {
            vec![layout, hash, readers, include_str!("lua/redisson/read_write.lua")]
        }
        (_, Kind::Semaphore) => {
            vec![layout, hash, counter, include_str!("lua/redisson/permits.lua")]
        }
    }
}

/// The texts that the names stand for.
pub(super) fn constants() -> Vec<(&'static str, &'static str)> {
    vec![
        ("UNDER(", "under("),
        ("WRITE_HOLDER", include_str!("lua/redisson/hold.lua")),
        ("WAKE_NEIGHBOURS", include_str!("lua/redisson/wake.lua")),
        ("SOME_VOID", "some_vanished(lock)"),
        ("THIS_VOID", "vanished(lock, owner)"),
        ("KEEPS_OUT(", "keeps_out("),
        ("NONE_TOUCHED", "touched = {},"),
        ("TOUCHED", "lock.touched[owner] = true"),
        ("ONLY_OURS", "and only_ours(lock.key)"),
        (
            "AND_ALONE",
            "and not (beneath[lock.key] and (beneath[lock.key].mode or beneath[lock.key].ends))",
        ),
        ("ADD_OTHERS", include_str!("lua/redisson/others.lua")),
    ]
}

/// A key that Redisson puts beside the lock, in its slot.
fn beside(key: &str, suffix: &str) -> String {
    if key.contains('{') { format!("{key}:{suffix}") } else { format!("{{{key}}}:{suffix}") }
}

/// The key that a step needs besides the lock and its record. The server has to know it, or it would find out in the
/// middle of the script that a slot is on its way elsewhere.
pub(super) fn side_key(step: &Step) -> Option<String> {
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
