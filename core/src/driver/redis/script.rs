//! The scripts: constant text, known to the server by hash.

use std::sync::LazyLock;
use std::time::Duration;

use redis::{Cmd, RedisError, Value};

use super::cell::MARK;
use super::neighbour;
use crate::port::{Kind, Mode, limits};

/// What a script does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// Take.
    Take,
    /// Vote.
    Vote,
    /// Watch.
    Watch,
    /// The birth mark.
    Birth,
    /// Free.
    Free,
    /// A Free and the Take of the same mutex behind it, as one.
    Pass,
    /// Takes of several mutexes as one.
    All,
    /// Leave.
    Leave,
    /// Renew and Refresh, of many locks.
    Tend,
    /// Change.
    Change,
    /// Read, of any kind.
    Look,
    /// A look at a cell.
    LookCell,
    /// A cell's compare-and-set.
    Swap,
}

/// One script: what it does, for one kind of lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Script(pub(super) Call, pub(super) Kind);

/// Those of cells are of no kind; the first stands for that.
pub(super) const LOOK_CELL: Script = Script(Call::LookCell, Kind::Mutex);
pub(super) const SWAP: Script = Script(Call::Swap, Kind::Mutex);

const ALL: [Script; 23] = [
    Script(Call::Take, Kind::Mutex),
    Script(Call::Free, Kind::Mutex),
    Script(Call::Pass, Kind::Mutex),
    Script(Call::All, Kind::Mutex),
    Script(Call::Leave, Kind::Mutex),
    Script(Call::Tend, Kind::Mutex),
    Script(Call::Look, Kind::Mutex),
    Script(Call::Vote, Kind::Mutex),
    Script(Call::Watch, Kind::Mutex),
    Script(Call::Birth, Kind::Mutex),
    Script(Call::Vote, Kind::ReadWrite),
    Script(Call::Watch, Kind::ReadWrite),
    Script(Call::Take, Kind::ReadWrite),
    Script(Call::Free, Kind::ReadWrite),
    Script(Call::Leave, Kind::ReadWrite),
    Script(Call::Tend, Kind::ReadWrite),
    Script(Call::Change, Kind::ReadWrite),
    Script(Call::Take, Kind::Semaphore),
    Script(Call::Free, Kind::Semaphore),
    Script(Call::Leave, Kind::Semaphore),
    Script(Call::Tend, Kind::Semaphore),
    LOOK_CELL,
    SWAP,
];

/// How the scripts that read the lock themselves begin and end.
const CALL: &str = "local call = redis.call";
const TAKE: &str = "return take(read(KEYS[1], KEYS[2], call('GET', KEYS[1]), me))";
const VOTE: &str = "return vote(read(KEYS[1], KEYS[2], call('GET', KEYS[1]), me))";
const FREEING: &str = "local me, holder = ARGV[1], call('GET', KEYS[1])";
const FREE: &str = "
local lock = read(KEYS[1], KEYS[2], holder, me)
local word = free(lock, me, ARGV[2] == '1')
store(lock)
return word";
const PASS: &str = "
local lock = read(KEYS[1], KEYS[2], holder, me)
local word = free(lock, ARGV[6], ARGV[7] == '1')
local reply = take(lock)
if type(reply) == 'number' then return { word, reply } end
table.insert(reply, 1, word)
return reply";

/// What the first word of a reply says.
pub(super) mod word {
    pub(crate) const FAILED: i64 = 0;
    pub(crate) const GRANTED: i64 = 1;
    pub(crate) const QUEUED: i64 = 2;
    pub(crate) const HELD: i64 = 3;
    pub(crate) const FREED: i64 = 4;
    pub(crate) const GONE: i64 = 5;
    pub(crate) const CONFLICT: i64 = 6;
    pub(crate) const UNBORN: i64 = 7;
    pub(crate) const RECOVERING: i64 = 8;
    /// No word is higher; tokens are.
    pub(crate) const LAST: i64 = RECOVERING;
}

impl Script {
    fn place(self) -> usize {
        ALL.iter().position(|known| *known == self).expect("every step has its script")
    }
}

/// What a script is put together from. Those that everybody waits for decide the plain case before most else is even
/// defined.
fn parts(Script(call, kind): Script, clock: &str) -> Vec<&str> {
    let record = include_str!("lua/record.lua");
    let own = match kind {
        Kind::Mutex => include_str!("lua/mutex.lua"),
        Kind::ReadWrite | Kind::Semaphore => include_str!("lua/shared.lua"),
    };
    let (enter, settle) = (include_str!("lua/enter.lua"), include_str!("lua/settle.lua"));
    let lock = [record, own, enter, settle];
    let (counter, plain) = (include_str!("lua/counter.lua"), include_str!("lua/plain.lua"));
    let (freeing, taking) = (include_str!("lua/freeing.lua"), include_str!("lua/taking.lua"));
    let free = include_str!("lua/free.lua");
    let (vote, voting) = (include_str!("lua/vote.lua"), include_str!("lua/voting.lua"));
    let watching = include_str!("lua/watching.lua");
    let (first, last): (&[&str], &[&str]) = match (call, kind) {
        (Call::Take, Kind::Mutex) => {
            (&[clock, counter, plain, include_str!("lua/take.lua")], &[taking, TAKE])
        }
        (Call::Take, _) => (&[clock, counter], &[taking, TAKE]),
        (Call::Vote, Kind::Mutex) => {
            let take = include_str!("lua/take.lua");
            (&[clock, vote, counter, plain, take], &[watching, taking, voting, VOTE])
        }
        (Call::Vote, _) => (&[clock, vote, counter], &[watching, taking, voting, VOTE]),
        (Call::Watch, _) => (&[clock], &[watching, include_str!("lua/watch.lua")]),
        (Call::Birth, _) => return vec![CALL, clock, include_str!("lua/birth.lua")],
        (Call::Free, Kind::Mutex) => (&[free, clock], &[watching, freeing, FREE]),
        (Call::Free, _) => (&[FREEING, clock], &[watching, freeing, FREE]),
        (Call::Pass, _) => {
            let pass = include_str!("lua/pass.lua");
            (&[clock, counter, plain, pass], &[watching, freeing, taking, PASS])
        }
        (Call::All, _) => {
            (&[clock, include_str!("lua/several.lua")], &[taking, include_str!("lua/all.lua")])
        }
        (Call::Leave, _) => (&[clock], &[watching, include_str!("lua/leave.lua")]),
        (Call::Tend, _) => (&[clock], &[include_str!("lua/tend.lua")]),
        (Call::Change, _) => (&[clock], &[include_str!("lua/change.lua")]),
        (Call::LookCell, _) => return vec![CALL, clock, include_str!("lua/look_cell.lua")],
        (Call::Swap, _) => return vec![CALL, clock, include_str!("lua/swap.lua")],
        (Call::Look, _) => return vec![CALL, clock, record, include_str!("lua/look.lua")],
    };
    [&[CALL], first, &lock, last].concat()
}

/// How a script is told numbers that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(all(feature = "redis", feature = "host")), allow(dead_code))] // Each has one of them.
pub(super) enum Form {
    /// Packed: a script reads them soonest.
    Packed,
    /// In digits, where all words have to be text.
    Text,
}

/// How a script reads them in digits.
const TERMS: &str = "local function TERMS(text)
local wait, block, floor = string.match(text, '(%d+) (%d+) (%d+)')
return wait + 0, block + 0, floor + 0
end";

/// The texts of all scripts. They differ between clients by their form, and where a test stops the clock.
#[derive(Debug)]
pub(super) struct Texts([String; ALL.len()]);

impl Texts {
    /// The scripts as every client runs them.
    #[cfg(feature = "redis")]
    pub(super) fn shared() -> &'static Self {
        static TEXTS: LazyLock<Texts> =
            LazyLock::new(|| Texts::with_clock(include_str!("lua/clock.lua"), Form::Packed));
        &TEXTS
    }

    /// The scripts as clients run them whose words are text.
    #[cfg(feature = "host")]
    pub(super) fn of_text() -> &'static Self {
        static TEXTS: LazyLock<Texts> =
            LazyLock::new(|| Texts::with_clock(include_str!("lua/clock.lua"), Form::Text));
        &TEXTS
    }

    /// The scripts with a clock that stands at this many microseconds.
    #[cfg(feature = "sim")]
    pub(super) fn stopped(now: u64, form: Form) -> Self {
        Self::with_clock(&format!("local now = {now}\n"), form)
    }

    fn with_clock(clock: &str, form: Form) -> Self {
        Self(ALL.map(|script| {
            let mut text = String::new();
            let mut parts = parts(script, clock);
            match form {
                Form::Packed => {}
                Form::Text => parts.insert(0, TERMS),
            }
            let lines = parts.iter().flat_map(|part| part.lines());
            for line in lines.filter(|line| !line.trim_start().starts_with("--")) {
                text.push_str(line.trim_start());
                text.push('\n');
            }
            // In their place, not as variables: every function that names a variable costs time at each run.
            constants(script, form)
                .iter()
                .fold(text, |text, (name, value)| text.replace(name, value))
        }))
    }

    /// The text of one script.
    pub(super) fn of(&self, script: Script) -> &str {
        &self.0[script.place()]
    }

    /// What makes the scripts known to the server.
    pub(super) fn load(&self) -> impl ExactSizeIterator<Item = Cmd> {
        self.0.iter().map(|text| {
            let mut command = redis::cmd("SCRIPT");
            command.arg("LOAD").arg(text);
            command
        })
    }
}

/// The hashes of the scripts, as the server told them.
#[derive(Clone, Debug, Default)]
pub(super) struct Hashes([String; ALL.len()]);

impl Hashes {
    /// What the server has answered to [`Texts::load`].
    pub(super) fn told(replies: Vec<Value>) -> Result<Self, RedisError> {
        let mut hashes = Hashes::default();
        for (hash, reply) in hashes.0.iter_mut().zip(replies) {
            *hash = match reply.extract_error()? {
                Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Value::SimpleString(text) => text,
                _ => String::new(),
            };
        }
        Ok(hashes)
    }

    /// The hash of one script.
    pub(super) fn of(&self, script: Script) -> &str {
        &self.0[script.place()]
    }
}

/// The constants of the scripts: numbers of the port, the words of a reply, the forms of what is packed, and what differs
/// between kinds.
fn constants(Script(call, kind): Script, form: Form) -> Vec<(&'static str, String)> {
    let micros = |time: Duration| time.as_micros().to_string();
    let shared = kind != Kind::Mutex;
    let where_shared = |text: &str| if shared { text.to_owned() } else { String::new() };
    let mode = |mode| code::of_mode(mode).to_string();
    let mark = |kind| {
        format!("'fencelock:{}'", if kind == Kind::Semaphore { "semaphore" } else { "read-write" })
    };
    // Only these two are told whom.
    let wakes = matches!(call, Call::Free | Call::Leave);
    let wake = if wakes { include_str!("lua/wake.lua") } else { "" };
    let terms = if form == Form::Packed { "struct.unpack('<Bdd', " } else { "TERMS(" };
    vec![
        ("TERMS(", terms.to_owned()),
        ("WAKE_NEIGHBOURS", wake.to_owned()),
        ("SIGNAL_LIFE", neighbour::SIGNAL_LIFE.as_millis().to_string()),
        ("EXPIRE\n", where_shared("expire(lock)\n")),
        ("FINISH_UPGRADE", where_shared("finish_upgrade(lock)")),
        ("NOTE_HOLDS", where_shared("note(lock)")),
        ("ONE_IS_ENOUGH", if shared { String::new() } else { "do return end".to_owned() }),
        (
            "MODE_AND_LIMIT",
            if shared { "ARGV[6] + 0, ARGV[7] + 0" } else { "MODE_EXCLUSIVE, 1" }.to_owned(),
        ),
        ("THIS_KIND", code::of_kind(kind).to_string()),
        ("THIS_MARK", mark(kind)),
        ("MARK_READ_WRITE", mark(Kind::ReadWrite)),
        ("MARK_SEMAPHORE", mark(Kind::Semaphore)),
        ("KIND_MUTEX", code::of_kind(Kind::Mutex).to_string()),
        ("KIND_READ_WRITE", code::of_kind(Kind::ReadWrite).to_string()),
        ("MODE_EXCLUSIVE", mode(Mode::Exclusive)),
        ("MODE_READ", mode(Mode::Read)),
        ("MODE_WRITE", mode(Mode::Write)),
        ("MODE_UPGRADEABLE", mode(Mode::Upgradeable)),
        ("MODE_UPGRADING", code::UPGRADING.to_string()),
        ("MODE_PERMIT", mode(Mode::Permit)),
        // Owner id, mode, end.
        ("HOLD_SIZE", "41".to_owned()),
        // Refreshed, passed over, ttl, block, since, mode, limit, channel. The info follows.
        ("TICKET_FORM", "'<dBdddBds'".to_owned()),
        // Leases are in milliseconds, the unit of their keys' expiry; moments and other times in microseconds.
        ("GRANT_TTL", limits::GRANT_TTL.as_millis().to_string()),
        ("TICKET_LIFE", micros(limits::TICKET_LIFE)),
        ("UNREACHABLE_AFTER", micros(limits::UNREACHABLE_AFTER)),
        ("OPEN_FOR", micros(limits::OPEN_FOR)),
        ("FLOOR_AHEAD", micros(limits::FLOOR_AHEAD)),
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
    ]
}

/// Kinds and modes as the scripts write them.
pub(super) mod code {
    use crate::port::{Kind, Mode};

    /// An upgradeable reader that waits to become the writer.
    pub(crate) const UPGRADING: i64 = 6;
    const MODES: [Mode; 5] =
        [Mode::Exclusive, Mode::Read, Mode::Write, Mode::Upgradeable, Mode::Permit];
    const KINDS: [Kind; 3] = [Kind::Mutex, Kind::ReadWrite, Kind::Semaphore];

    fn place<T: PartialEq>(all: &[T], one: &T) -> i64 {
        let place = all.iter().position(|known| known == one).expect("all are listed");
        i64::try_from(place + 1).unwrap_or(0)
    }

    fn at<T: Copy>(all: &[T], code: i64) -> Option<T> {
        all.get(usize::try_from(code).ok()?.checked_sub(1)?).copied()
    }

    pub(crate) fn of_mode(mode: Mode) -> i64 {
        place(&MODES, &mode)
    }

    pub(crate) fn mode(code: i64) -> Option<Mode> {
        if code == UPGRADING { Some(Mode::Upgradeable) } else { at(&MODES, code) }
    }

    pub(crate) fn of_kind(kind: Kind) -> i64 {
        place(&KINDS, &kind)
    }

    pub(crate) fn kind(code: i64) -> Option<Kind> {
        at(&KINDS, code)
    }
}
