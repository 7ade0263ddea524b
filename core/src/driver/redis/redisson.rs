//! The scripts for locks that are laid out as Redisson does: what they do where the layouts differ.

use super::script::Call;
use crate::port::Kind;

/// What comes between the record and the kind.
pub(super) fn parts(call: Call, kind: Kind) -> Vec<&'static str> {
    let layout = include_str!("lua/redisson/layout.lua");
    let hash = include_str!("lua/redisson/hash.lua");
    match (call, kind) {
        (Call::Look, _) => vec![layout, hash, include_str!("lua/redisson/any.lua")],
        (_, Kind::Mutex) => vec![layout, hash],
        (_, Kind::ReadWrite) => vec![layout, hash, include_str!("lua/redisson/read_write.lua")],
        (_, Kind::Semaphore) => vec![layout, hash, include_str!("lua/redisson/permits.lua")],
    }
}

/// What the names stand for.
pub(super) fn constants() -> Vec<(&'static str, &'static str)> {
    vec![
        ("UNDER(", "under("),
        ("WRITE_HOLDER", include_str!("lua/redisson/hold.lua")),
        ("WAKE_NEIGHBOURS", include_str!("lua/redisson/wake.lua")),
        ("SOME_VOID", "some_vanished(lock)"),
        ("THIS_VOID", "vanished(lock, at)"),
        ("KEEPS_OUT(", "keeps_out("),
        ("NONE_TOUCHED", "touched = {},"),
        ("TOUCHED", "lock.touched[owner] = true"),
        ("ONLY_OURS", "and only_ours(lock.key)"),
        ("ADD_OTHERS", include_str!("lua/redisson/others.lua")),
    ]
}
