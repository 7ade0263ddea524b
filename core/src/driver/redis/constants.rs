//! The texts put in place of the words in capitals in the scripts, before they are sent.

use std::collections::BTreeMap;
use std::time::Duration;

use super::assemble::plain;
use super::cell::MARK;
use super::renew_batch::ENTRY_SIZE;
use super::script::{Call, Form, Script, word};
use super::{code, foreign_wake, redisson};
use crate::fence::Token;
use crate::port::Layout::Redisson;
use crate::port::{Kind, Mode, limits};

/// The version of the record's layout, the last byte of its counter. A script that finds another one changes nothing.
pub(super) const LAYOUT: u8 = 1;
/// How many holds the buckets of a lock have room for. One more, and they become twice as many.
pub(super) const CAPACITY: &str = "64 * lock.buckets";

/// The text put in place of a word.
#[derive(Debug)]
pub(super) struct Constant {
    /// The text that has to follow the word and is replaced with it.
    pub(super) ending: &'static str,
    pub(super) value: String,
}

/// The constants by their words.
pub(super) type Constants = BTreeMap<&'static str, Constant>;

/// The constants of the scripts: numbers of the port, the words of a reply, the forms of what is packed, and what differs
/// between kinds.
pub(super) fn constants(script: Script, form: Form) -> Constants {
    let Script(call, kind, layout) = script;
    let micros = |time: Duration| time.as_micros().to_string();
    let shared = kind != Kind::Mutex;
    let where_shared = |text: &str| if shared { text.to_owned() } else { String::new() };
    let mode = |mode| code::of_mode(mode).to_string();
    let mark = |kind| {
        format!("'fencelock:{}'", if kind == Kind::Semaphore { "semaphore" } else { "read-write" })
    };
    let terms = (form == Form::Packed).then(|| ("TERMS(", "struct.unpack('<Bdd', ".to_owned()));
    // How one of many numbers is told.
    let number =
        if form == Form::Packed { "struct.pack('<d', " } else { "string.format('%.0f ', " };
    let of_layout = match layout {
        Redisson => redisson::constants(),
        _ => own(call),
    };
    let of_layout = of_layout.into_iter().map(|(name, text)| (name, text.to_owned()));
    let all = vec![
        ("WORD(", number.to_owned()),
        ("ENTRY_SIZE", ENTRY_SIZE.to_string()),
        ("SIGNAL_LIFE", foreign_wake::SIGNAL_LIFE.as_millis().to_string()),
        ("EXPIRE\n", where_shared("expire(lock)\n")),
        // An open lock was entered: whoever may hold beside the one who entered is granted.
        ("SETTLE_THE_REST", where_shared("settle(lock, me)")),
        ("NOTE_HOLDS", where_shared("note(lock)")),
        ("ONE_IS_ENOUGH", if shared { String::new() } else { "do return end".to_owned() }),
        (
            "TERMS_OF_KIND",
            if shared { "ARGV[6] + 0, ARGV[7] + 0, ARGV[8] + 0" } else { "MODE_EXCLUSIVE, 1, 1" }
                .to_owned(),
        ),
        ("THIS_KIND", code::of_kind(kind).to_string()),
        ("THIS_MARK", mark(kind)),
        ("MARK_READ_WRITE", mark(Kind::ReadWrite)),
        ("MARK_SEMAPHORE", mark(Kind::Semaphore)),
        ("KIND_MUTEX", code::of_kind(Kind::Mutex).to_string()),
        ("KIND_READ_WRITE", code::of_kind(Kind::ReadWrite).to_string()),
        ("KIND_SEMAPHORE", code::of_kind(Kind::Semaphore).to_string()),
        ("MODE_EXCLUSIVE", mode(Mode::Exclusive)),
        ("MODE_READ", mode(Mode::Read)),
        ("MODE_WRITE", mode(Mode::Write)),
        ("MODE_PERMIT", mode(Mode::Permit)),
        // Owner id, end, permits.
        ("HOLD_SIZE", "42".to_owned()),
        ("LAYOUT", LAYOUT.to_string()),
        ("CAPACITY", CAPACITY.to_owned()),
        // Infinity, packed: the soonest end where nobody holds.
        ("NO_BOUND", r"'\0\0\0\0\0\0\240\127'".to_owned()),
        // Refreshed, passed over, ttl, block, since, mode, limit, permits, channel. The info follows.
        ("TICKET_FORM", "'<dBdddBdHs'".to_owned()),
        // Leases are in milliseconds, the unit of their keys' expiry; moments and other times in microseconds.
        (
            "TOKEN_LEAD",
            micros(if call == Call::Vote { limits::VOTE_LEAD } else { limits::TOKEN_LEAD }),
        ),
        ("TOKEN_MAX", Token::MAX.to_string()),
        ("GRANT_TTL", limits::GRANT_TTL.as_millis().to_string()),
        ("TICKET_LIFE", micros(limits::TICKET_LIFE)),
        ("UNREACHABLE_AFTER", micros(limits::UNREACHABLE_AFTER)),
        ("OPEN_FOR", micros(limits::OPEN_FOR)),
        ("FLOOR_AHEAD", micros(limits::FLOOR_AHEAD)),
        ("SERVED_AT_ONCE", limits::SERVED_AT_ONCE.to_string()),
        ("FIELDS_AT_ONCE", "1000".to_owned()),
        ("PASSES", limits::PASSES.to_string()),
        ("COUNTER_TTLS", limits::COUNTER_TTLS.to_string()),
        ("FAILED", word::FAILED.to_string()),
        ("GRANTED", word::GRANTED.to_string()),
        ("QUEUED", word::QUEUED.to_string()),
        ("HELD", word::HELD.to_string()),
        ("FREED", word::FREED.to_string()),
        ("GONE", word::GONE.to_string()),
        ("CONFLICT", word::CONFLICT.to_string()),
        ("TOMBSTONE_LIFE", limits::TOMBSTONE_LIFE.as_millis().to_string()),
        ("TRAIL_REST", ((limits::TRAIL - 1) * MARK).to_string()),
        ("UNBORN", word::UNBORN.to_string()),
        ("RECOVERING", word::RECOVERING.to_string()),
    ];
    let constant = |(name, value): (&'static str, String)| {
        let word = name.trim_end_matches(['(', '\n']);
        let value = if value.trim_end().contains('\n') { plain(&value) } else { value };
        (word, Constant { ending: &name[word.len()..], value })
    };
    of_layout.chain(terms).chain(all).map(constant).collect()
}

/// The code where scripts differ by layout, for our own layout: a lock's key holds one text, the whole hold or nothing.
fn own(call: Call) -> Vec<(&'static str, &'static str)> {
    // Only these two are told whom.
    let wakes = matches!(call, Call::Free | Call::Leave);
    vec![
        ("UNDER(", "call('GET', "),
        ("WRITE_HOLDER", "call('SET', lock.key, lock.holder, 'PX', lock.granted)"),
        ("WAKE_NEIGHBOURS", if wakes { include_str!("lua/wake.lua") } else { "" }),
        ("SOME_VOID", "lock.holder ~= THIS_MARK"),
        ("THIS_VOID", "void"),
        ("KEEPS_OUT(", "foreign("),
        ("NONE_TOUCHED", ""),
        ("TOUCHED", ""),
        ("ONLY_OURS", ""),
        ("AND_ALONE", ""),
        ("ADD_OTHERS", ""),
    ]
}
