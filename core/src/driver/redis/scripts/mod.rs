//! The scripts: plain Lua, known to the server by hash.
//!
//! A script is a few files one behind the other: its head, the rules (`lock.lua`), what differs by layout (`own.lua`, `redisson*.lua`) and
//! by kind (`mutex.lua`, `shared.lua`), and what it does. The plain cases stand in the head, before any function: each run of a script makes
//! all of its functions anew.

use std::sync::atomic::{AtomicU32, Ordering};

use once_cell::race::OnceBox;
use redis::Cmd;

use crate::port::Kind::{self, Mutex, ReadWrite, Semaphore};
use crate::port::Layout::{self, Own, Redisson};

/// The operation of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// Take, also one of a mutex that its holder frees in the same step, and a vote on a node of a quorum.
    Take,
    /// Takes of several mutexes as one.
    All,
    /// Free.
    Free,
    /// Leave.
    Leave,
    /// Renew and Refresh, of many locks.
    Renew,
    /// Read, of any kind.
    Look,
    /// A look at a cell, and its compare-and-set.
    Cell,
    /// The birth mark.
    Born,
}

/// One script: what it does, for one kind of lock in one layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Script(Call, Kind, Layout);

/// Those that serve no lock are of no kind; the first stands for that.
pub(super) const CELL: Script = Script(Call::Cell, Mutex, Own);
pub(super) const BORN: Script = Script(Call::Born, Mutex, Own);

macro_rules! files {
    ($($name:literal)+) => { concat!($(include_str!(concat!($name, ".lua"))),+) };
}

/// So many of [`SCRIPTS`] are those of a mutex.
const LOADED: usize = 6;

const SCRIPTS: [(Script, &str); 22] = [
    (
        Script(Call::Take, Mutex, Own),
        files!("clock" "vote" "take_plain" "lock" "own" "mutex" "ask" "take"),
    ),
    (Script(Call::All, Mutex, Own), files!("clock" "lock" "own" "mutex" "ask" "all")),
    (Script(Call::Free, Mutex, Own), files!("free_plain" "lock" "own" "mutex" "free")),
    (Script(Call::Leave, Mutex, Own), files!("clock" "lock" "own" "mutex" "leave")),
    (Script(Call::Renew, Mutex, Own), files!("clock" "lock" "own" "mutex" "ask" "renew")),
    (Script(Call::Look, Mutex, Own), files!("clock" "lock" "own" "look")),
    (Script(Call::Take, ReadWrite, Own), files!("clock" "vote" "lock" "own" "shared" "ask" "take")),
    (Script(Call::Free, ReadWrite, Own), files!("clock" "lock" "own" "shared" "free")),
    (Script(Call::Leave, ReadWrite, Own), files!("clock" "lock" "own" "shared" "leave")),
    (Script(Call::Renew, ReadWrite, Own), files!("clock" "lock" "own" "shared" "ask" "renew")),
    (CELL, files!("cell")),
    (BORN, files!("born")),
    (Script(Call::Take, Mutex, Redisson), files!("clock" "lock" "redisson" "mutex" "ask" "take")),
    (Script(Call::All, Mutex, Redisson), files!("clock" "lock" "redisson" "mutex" "ask" "all")),
    (Script(Call::Free, Mutex, Redisson), files!("clock" "lock" "redisson" "mutex" "free")),
    (Script(Call::Leave, Mutex, Redisson), files!("clock" "lock" "redisson" "mutex" "leave")),
    (Script(Call::Renew, Mutex, Redisson), files!("clock" "lock" "redisson" "mutex" "ask" "renew")),
    (
        Script(Call::Look, Mutex, Redisson),
        files!("clock" "lock" "redisson" "shared" "redisson_read_write" "redisson_look" "look"),
    ),
    (
        Script(Call::Take, ReadWrite, Redisson),
        files!("clock" "lock" "redisson" "shared" "redisson_read_write" "ask" "take"),
    ),
    (
        Script(Call::Free, ReadWrite, Redisson),
        files!("clock" "lock" "redisson" "shared" "redisson_read_write" "free"),
    ),
    (
        Script(Call::Leave, ReadWrite, Redisson),
        files!("clock" "lock" "redisson" "shared" "redisson_read_write" "leave"),
    ),
    (
        Script(Call::Renew, ReadWrite, Redisson),
        files!("clock" "lock" "redisson" "shared" "redisson_read_write" "ask" "renew"),
    ),
];

impl Script {
    /// The script that does this for a lock. A plain dialect differs from our own layout in its keys only, and there one script serves
    /// readers, writers and permits.
    pub(super) fn of(call: Call, kind: Kind, layout: Layout) -> Self {
        let layout = if layout == Redisson { Redisson } else { Own };
        match (call, kind, layout) {
            (Call::Look, ..) => Self(call, Mutex, layout),
            (_, Semaphore, Own) => Self(call, ReadWrite, Own),
            _ => Self(call, kind, layout),
        }
    }

    pub(super) fn call(self) -> Call {
        self.0
    }

    fn place(self) -> usize {
        SCRIPTS.iter().position(|(known, _)| *known == self).expect("every step has its script")
    }

    pub(super) fn text(self) -> &'static str {
        SCRIPTS[self.place()].1
    }

    /// The hash by which servers know the text.
    fn hash(self) -> &'static str {
        // Nobody waits for another one to compute it: after a fork, that one might not exist.
        static HASHES: [OnceBox<String>; SCRIPTS.len()] = [const { OnceBox::new() }; SCRIPTS.len()];
        let place = self.place();
        let hash = || Box::new(redis::Script::new(SCRIPTS[place].1).get_hash().to_owned());
        HASHES[place].get_or_init(hash)
    }

    /// The verb of a call, and the word for the script: the hash if the text was sent before.
    pub(super) fn as_sent(self, sent: &Sent) -> (&'static str, &'static str) {
        if sent.note(self) { ("EVALSHA", self.hash()) } else { ("EVAL", self.text()) }
    }
}

/// The commands that make the scripts of a mutex known to the server. All of them are half a megabyte, so any other one is sent with its first
/// call ([`Sent`]).
pub(super) fn load() -> Vec<Cmd> {
    let load = |(_, text): &(Script, &str)| {
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(*text);
        command
    };
    SCRIPTS[..LOADED].iter().map(load).collect()
}

/// The scripts whose text was sent: over one connection, or by one client where the host connects. The first call of any other one has the
/// text. By the hash alone, a server that does not know it would refuse that step of a batch, and carry out those behind it first.
#[derive(Debug)]
pub(super) struct Sent(AtomicU32);

const _: () = assert!(SCRIPTS.len() <= 32, "one bit each");

impl Sent {
    /// The state after [`load`]: its scripts count as sent.
    pub(super) const fn loaded() -> Self {
        Self(AtomicU32::new((1 << LOADED) - 1))
    }

    /// Whether this one was sent before. It counts as sent from now on.
    fn note(&self, script: Script) -> bool {
        let bit = 1 << script.place();
        self.0.fetch_or(bit, Ordering::Relaxed) & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::driver::redis::steps::ENTRY_SIZE;
    use crate::fence::Token;
    use crate::port::limits;

    /// The scripts repeat the numbers of the port.
    #[test]
    fn the_numbers_in_the_scripts_are_those_of_the_port() {
        let micros = |time: Duration| time.as_micros();
        let (rules, kinds) = (files!("lock" "ask"), files!("mutex" "shared"));
        let (plain, take) = (files!("take_plain"), files!("take" "all"));
        for (text, expected) in [
            (rules, format!("ticket.refreshed + {} then return", micros(limits::TICKET_LIFE))),
            (rules, format!("lock:keep(now + {})", micros(limits::TICKET_LIFE))),
            (files!("look"), format!("ticket.refreshed + {} then", micros(limits::TICKET_LIFE))),
            (rules, format!("ticket.refreshed + {} then\n", micros(limits::UNREACHABLE_AFTER))),
            (rules, format!("ticket.passed < {} and now", limits::PASSES)),
            (rules, format!("ticket.passed < {} and lock:admits", limits::PASSES)),
            (rules, format!("now < lock.open + {}", micros(limits::OPEN_FOR))),
            (rules, format!("served == {} then", limits::SERVED_AT_ONCE)),
            (rules, format!("math.min(ticket.ttl, {})", limits::GRANT_TTL.as_millis())),
            (rules, format!("ticket.block, {})", micros(limits::TOKEN_LEAD))),
            (rules, format!("math.max(lock.last, now + {})", micros(limits::FLOOR_AHEAD))),
            (rules, format!("now) + ttl * {})", 1000 * limits::COUNTER_TTLS)),
            (rules, format!("token > {} then", Token::MAX)),
            (kinds, format!("lock.last + ttl * {})", 1000 * limits::COUNTER_TTLS)),
            (plain, format!("top + ttl * {} and", 1000 * limits::COUNTER_TTLS)),
            (plain, format!("top <= {}\n", Token::MAX)),
            (
                plain,
                format!(
                    "(ARGV[12] and {} or {})",
                    micros(limits::VOTE_LEAD),
                    micros(limits::TOKEN_LEAD)
                ),
            ),
            (
                take,
                format!(
                    "lead = ARGV[12] and {} or {},",
                    micros(limits::VOTE_LEAD),
                    micros(limits::TOKEN_LEAD)
                ),
            ),
            (take, format!("lead = {},", micros(limits::TOKEN_LEAD))),
            (files!("renew"), format!("#entries / {ENTRY_SIZE} do")),
            (files!("cell"), format!("version > {} then", Token::MAX)),
            (files!("cell"), format!("1, {})", (limits::TRAIL - 1) * 48)),
            (files!("cell"), format!("1000 + {})", limits::TOMBSTONE_LIFE.as_millis())),
        ] {
            assert!(text.contains(&expected), "{expected}");
        }
    }
}
