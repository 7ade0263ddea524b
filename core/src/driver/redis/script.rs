//! The scripts: constant text, known to the server by hash.

use std::sync::LazyLock;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Pipeline, RedisError, Value};

use super::cell::MARK;
use crate::port::limits;

/// One script for every kind of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    /// Take.
    Take,
    /// Free.
    Free,
    /// A Free and the Take of the same lock behind it, as one.
    Pass,
    /// Leave.
    Leave,
    /// Renew and Refresh, of many locks.
    Tend,
    /// Read.
    Look,
    /// A look at a cell.
    LookCell,
    /// A cell's compare-and-set.
    Swap,
}

const ALL: [Script; 8] = [
    Script::Take,
    Script::Free,
    Script::Pass,
    Script::Leave,
    Script::Tend,
    Script::Look,
    Script::LookCell,
    Script::Swap,
];

/// How the scripts that read the lock themselves end.
const TAKE: &str = "return take(read(KEYS[1], KEYS[2], call('GET', KEYS[1]), me))";
const FREE: &str = "
local lock = read(KEYS[1], KEYS[2], holder, me)
local word = free(lock, me, ARGV[2] == '1')
store(lock)
return word";
const PASS: &str = "
local lock = read(KEYS[1], KEYS[2], holder, me)
local word = free(lock, ARGV[8], ARGV[9] == '1')
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
    /// No word is higher; tokens are.
    pub(crate) const LAST: i64 = GONE;
}

/// The texts of all scripts. They differ between clients only where a test stops the clock.
#[derive(Debug)]
pub(super) struct Texts([String; ALL.len()]);

impl Texts {
    /// The scripts as every client runs them.
    pub(super) fn shared() -> &'static Self {
        static TEXTS: LazyLock<Texts> =
            LazyLock::new(|| Texts::with_clock(include_str!("lua/clock.lua")));
        &TEXTS
    }

    /// The scripts with a clock that stands at this many microseconds.
    #[cfg(feature = "sim")]
    pub(super) fn stopped(now: u64) -> Self {
        Self::with_clock(&format!("local now = {now}\n"))
    }

    fn with_clock(clock: &str) -> Self {
        let lock = include_str!("lua/lock.lua");
        Self(ALL.map(|script| {
            // Those that everybody waits for decide the plain case before most else is even defined.
            let (counter, take) = (include_str!("lua/counter.lua"), include_str!("lua/take.lua"));
            let (free, pass) = (include_str!("lua/free.lua"), include_str!("lua/pass.lua"));
            let freeing = include_str!("lua/freeing.lua");
            let taking = include_str!("lua/taking.lua");
            let parts: &[&str] = match script {
                Script::Take => &[clock, counter, take, lock, taking, TAKE],
                Script::Free => &[free, clock, lock, freeing, FREE],
                Script::Pass => &[clock, counter, pass, lock, freeing, taking, PASS],
                Script::Leave => &[clock, lock, include_str!("lua/leave.lua")],
                Script::Tend => &[clock, lock, include_str!("lua/tend.lua")],
                Script::Look => &[clock, lock, include_str!("lua/look.lua")],
                Script::LookCell => &[clock, include_str!("lua/look_cell.lua")],
                Script::Swap => &[clock, include_str!("lua/swap.lua")],
            };
            let mut text = String::new();
            let lines = parts.iter().flat_map(|part| part.lines());
            for line in lines.filter(|line| !line.trim_start().starts_with("--")) {
                text.push_str(line.trim_start());
                text.push('\n');
            }
            // In their place, not as variables: every function that names a variable costs time at each run.
            constants().iter().fold(text, |text, (name, value)| text.replace(name, value))
        }))
    }

    /// The text of one script.
    pub(super) fn of(&self, script: Script) -> &str {
        &self.0[script as usize]
    }

    /// Makes the scripts known to the server; answers their hashes.
    pub(super) async fn load(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<Hashes, RedisError> {
        let mut pipeline = Pipeline::with_capacity(ALL.len());
        for text in &self.0 {
            pipeline.cmd("SCRIPT").arg("LOAD").arg(text);
        }
        let replies = connection.send_packed_commands(&pipeline, 0, ALL.len()).await?;
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
}

/// The hashes of the scripts, as the server told them.
#[derive(Clone, Debug, Default)]
pub(super) struct Hashes([String; ALL.len()]);

impl Hashes {
    /// The hash of one script.
    pub(super) fn of(&self, script: Script) -> &str {
        &self.0[script as usize]
    }
}

/// The constants of the scripts: numbers of the port, the words of a reply, and the form of a ticket: refreshed, passed
/// over, ttl, block, since, channel. Its info follows.
fn constants() -> [(&'static str, String); 16] {
    let micros = |time: Duration| time.as_micros().to_string();
    [
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
        ("TOMBSTONE_LIFE", limits::TOMBSTONE_LIFE.as_millis().to_string()),
        ("TRAIL_REST", ((limits::TRAIL - 1) * MARK).to_string()),
        ("TICKET_FORM", "'<dBddds'".to_owned()),
    ]
}
