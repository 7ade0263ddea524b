//! The scripts: constant text, known to the server by hash.

use once_cell::race::OnceBox;
use redis::{Cmd, RedisError, Value};

use super::assemble::assemble;
use super::constants::constants;
use super::redisson;
use crate::port::Kind;
use crate::port::Layout::{self, Own, Redisson};

/// The operation of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// Take.
    Take,
    /// A Take on a node of a quorum.
    Vote,
    /// The birth mark.
    DataAge,
    /// Free.
    Free,
    /// A Free and the Take of the same mutex behind it, as one.
    Pass,
    /// Takes of several mutexes as one.
    All,
    /// Leave.
    Leave,
    /// Renew and Refresh, of many locks.
    RenewBatch,
    /// Read, of any kind.
    Look,
    /// A look at a cell.
    LookCell,
    /// A cell's compare-and-set.
    Swap,
}

/// One script: what it does, for one kind of lock in one layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Script(pub(super) Call, pub(super) Kind, pub(super) Layout);

/// Those of cells are of no kind; the first stands for that.
pub(super) const LOOK_CELL: Script = Script(Call::LookCell, Kind::Mutex, Own);
pub(super) const SWAP: Script = Script(Call::Swap, Kind::Mutex, Own);

const ALL: [Script; 35] = [
    Script(Call::Take, Kind::Mutex, Own),
    Script(Call::Free, Kind::Mutex, Own),
    Script(Call::Pass, Kind::Mutex, Own),
    Script(Call::All, Kind::Mutex, Own),
    Script(Call::Leave, Kind::Mutex, Own),
    Script(Call::RenewBatch, Kind::Mutex, Own),
    Script(Call::Look, Kind::Mutex, Own),
    Script(Call::Vote, Kind::Mutex, Own),
    Script(Call::DataAge, Kind::Mutex, Own),
    Script(Call::Vote, Kind::ReadWrite, Own),
    Script(Call::Take, Kind::ReadWrite, Own),
    Script(Call::Free, Kind::ReadWrite, Own),
    Script(Call::Leave, Kind::ReadWrite, Own),
    Script(Call::RenewBatch, Kind::ReadWrite, Own),
    Script(Call::Take, Kind::Semaphore, Own),
    Script(Call::Free, Kind::Semaphore, Own),
    Script(Call::Leave, Kind::Semaphore, Own),
    Script(Call::RenewBatch, Kind::Semaphore, Own),
    LOOK_CELL,
    SWAP,
    Script(Call::Take, Kind::Mutex, Redisson),
    Script(Call::Free, Kind::Mutex, Redisson),
    Script(Call::Pass, Kind::Mutex, Redisson),
    Script(Call::All, Kind::Mutex, Redisson),
    Script(Call::Leave, Kind::Mutex, Redisson),
    Script(Call::RenewBatch, Kind::Mutex, Redisson),
    Script(Call::Look, Kind::Mutex, Redisson),
    Script(Call::Take, Kind::ReadWrite, Redisson),
    Script(Call::Free, Kind::ReadWrite, Redisson),
    Script(Call::Leave, Kind::ReadWrite, Redisson),
    Script(Call::RenewBatch, Kind::ReadWrite, Redisson),
    Script(Call::Take, Kind::Semaphore, Redisson),
    Script(Call::Free, Kind::Semaphore, Redisson),
    Script(Call::Leave, Kind::Semaphore, Redisson),
    Script(Call::RenewBatch, Kind::Semaphore, Redisson),
];

/// How the scripts that read the lock themselves begin and end.
const CALL: &str = "local call = redis.call";
const TAKE: &str = "return take(read(KEYS[1], KEYS[2], UNDER(KEYS[1]), me))";
const VOTE: &str = "
local lock = read(KEYS[1], KEYS[2], UNDER(KEYS[1]), me)
if again and not enter(lock) and not held(lock, me) then return GONE end
return take(lock)";
const FREEING: &str = "local me = ARGV[1]";
/// Reads the value under the lock, for scripts that have not read it yet.
const HOLDER: &str = "local holder = UNDER(KEYS[1])";
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

/// The meanings of the first word of a reply.
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

/// The parts that a script is put together from. Scripts that everybody waits for decide the plain case before most else is even
/// defined.
fn parts(Script(call, kind, layout): Script, clock: &str) -> Vec<&str> {
    let (record, holds) = (include_str!("lua/record.lua"), include_str!("lua/holds.lua"));
    let (mutex, shared) = (include_str!("lua/mutex.lua"), include_str!("lua/shared.lua"));
    let own = match (layout, kind) {
        // Another layout, not other scripts: queue, tokens and tombstones are the same lines.
        (Redisson, kind) => redisson::parts(call, kind),
        // That of another store is refused before.
        (_, Kind::Mutex) => vec![],
        (_, Kind::ReadWrite | Kind::Semaphore) => vec![include_str!("lua/marked.lua")],
    };
    let of_kind: &[&str] =
        if kind == Kind::Mutex { &[mutex] } else { &[include_str!("lua/bucket.lua"), shared] };
    let (enter, settle) = (include_str!("lua/enter.lua"), include_str!("lua/settle.lua"));
    let lock = [&[record, holds], &own[..], of_kind, &[enter, settle]].concat();
    let (counter, plain) = (include_str!("lua/counter.lua"), include_str!("lua/plain.lua"));
    let (freeing, taking) = (include_str!("lua/freeing.lua"), include_str!("lua/taking.lua"));
    let free = include_str!("lua/free.lua");
    let vote = include_str!("lua/vote.lua");
    // Only the own layout has plain cases.
    let plain_too = kind == Kind::Mutex && layout == Own;
    let (first, last): (&[&str], &[&str]) = match call {
        Call::Take if plain_too => {
            (&[clock, counter, plain, include_str!("lua/take.lua")], &[taking, TAKE])
        }
        Call::Take => (&[clock, counter], &[taking, TAKE]),
        Call::Vote if plain_too => {
            let take = include_str!("lua/take.lua");
            (&[clock, vote, counter, plain, take], &[taking, VOTE])
        }
        Call::Vote => (&[clock, vote, counter], &[taking, VOTE]),
        Call::DataAge => return vec![CALL, clock, include_str!("lua/birth.lua")],
        Call::Free if plain_too => (&[free, clock], &[freeing, FREE]),
        Call::Free => (&[FREEING, clock], &[freeing, HOLDER, FREE]),
        Call::Pass if plain_too => {
            let pass = include_str!("lua/pass.lua");
            (&[clock, counter, plain, pass], &[freeing, taking, PASS])
        }
        Call::Pass => (&[clock, counter], &[freeing, taking, HOLDER, PASS]),
        Call::All => {
            (&[clock, include_str!("lua/several.lua")], &[taking, include_str!("lua/all.lua")])
        }
        Call::Leave if plain_too => {
            (&[include_str!("lua/leaving.lua"), clock], &[include_str!("lua/leave.lua")])
        }
        Call::Leave => (&[clock], &[include_str!("lua/leave.lua")]),
        Call::RenewBatch => (&[clock], &[include_str!("lua/tend.lua")]),
        Call::LookCell => return vec![CALL, clock, include_str!("lua/look_cell.lua")],
        Call::Swap => return vec![CALL, clock, include_str!("lua/swap.lua")],
        Call::Look => {
            let look = include_str!("lua/look.lua");
            return [&[CALL, clock, record, holds], &own[..], &[look]].concat();
        }
    };
    [&[CALL], first, &lock[..], last].concat()
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

/// How a script reads the server's clock.
const CLOCK: &str = include_str!("lua/clock.lua");

/// The key that has the time, in microseconds since 1970, where a test stops the clock. In the text it would make new scripts at
/// each move, which cost the server more than all else that the tests do.
#[cfg(feature = "test-hooks")]
const STOPPED_CLOCK: &str = "fencelock:clock";

/// The command that sets the clock of scripts, where a test has stopped that clock.
#[cfg(feature = "test-hooks")]
pub(super) fn set_clock(now: u64) -> Cmd {
    let mut command = redis::cmd("SET");
    command.arg(STOPPED_CLOCK).arg(now);
    command
}

/// The texts of all scripts. They differ between clients by their form, and where a test stops the clock.
#[derive(Debug)]
pub(super) struct Texts([String; ALL.len()]);

impl Texts {
    /// The scripts as every client runs them.
    #[cfg(feature = "redis")]
    pub(super) fn shared() -> &'static Self {
        Self::running(Form::Packed)
    }

    /// The scripts as clients run them whose words are text.
    #[cfg(feature = "host")]
    pub(super) fn of_text() -> &'static Self {
        Self::running(Form::Text)
    }

    /// The scripts with a clock that a test moves, and room for two holds in a bucket: few have several.
    #[cfg(feature = "test-hooks")]
    pub(super) fn stopped(form: Form) -> &'static Self {
        static MADE: Made = Made::new();
        MADE.of(form, || {
            let clock = format!("local now = call('GET', '{STOPPED_CLOCK}') + 0");
            let few = |text: String| text.replace(super::constants::CAPACITY, "2 * lock.buckets");
            Self(Self::with_clock(&clock, form).0.map(few))
        })
    }

    fn running(form: Form) -> &'static Self {
        static MADE: Made = Made::new();
        MADE.of(form, || Self::with_clock(CLOCK, form))
    }

    fn with_clock(clock: &str, form: Form) -> Self {
        Self(ALL.map(|script| {
            let mut parts = parts(script, clock);
            match form {
                Form::Packed => {}
                Form::Text => parts.insert(0, TERMS),
            }
            // In their place, not as variables: every function that names a variable costs time at each run.
            assemble(&parts, &constants(script, form))
        }))
    }

    /// The text of one script.
    pub(super) fn of(&self, script: Script) -> &str {
        &self.0[script.place()]
    }

    /// The commands that make the scripts known to the server.
    pub(super) fn load(&self) -> impl ExactSizeIterator<Item = Cmd> {
        self.0.iter().map(|text| {
            let mut command = redis::cmd("SCRIPT");
            command.arg("LOAD").arg(text);
            command
        })
    }
}

/// The texts of each form, made when they are first asked for. Nobody waits for another one to make them: after a fork, that one might
/// not exist.
struct Made([OnceBox<Texts>; 2]);

impl Made {
    const fn new() -> Self {
        Self([OnceBox::new(), OnceBox::new()])
    }

    fn of(&self, form: Form, make: impl FnOnce() -> Texts) -> &Texts {
        self.0[form as usize].get_or_init(|| Box::new(make()))
    }
}

/// The hashes of the scripts, as the server told them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hashes([String; ALL.len()]);

impl Default for Hashes {
    fn default() -> Self {
        Self([const { String::new() }; ALL.len()])
    }
}

impl Hashes {
    /// Reads the server's replies to [`Texts::load`].
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
