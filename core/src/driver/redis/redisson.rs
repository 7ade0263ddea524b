//! The keys of locks that are laid out as Redisson does.

#[cfg(feature = "redis")]
use super::keys::slot_of;
#[cfg(feature = "redis")]
use crate::port::LockKey;
use crate::port::{Action, Kind, Layout, Mode, Step, Take};

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
