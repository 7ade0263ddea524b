//! The store on a Redis server (6 or newer, or what speaks its protocol), in the layout `plain`.
//!
//! The lock `K` is a string: the owner id as 32 hexadecimal digits, with an expiry. That is what redis-py,
//! node-redlock, redsync and many others write, so they exclude us and we them. Beside it, in the same hash slot, lies
//! one hash, the record `fencelock:{tag}:lock:K`, with everything else and an expiry of its own:
//!
//! | field | content |
//! |---|---|
//! | `h` | the holder of a mutex, packed: owner id, first token, since when, what it says of itself. Valid while `K` is that owner id |
//! | `c` | packed: the counter (the newest token drawn, or the highest floor seen), and until when the record is kept at least; that is negative while somebody waits or is buried or shares the lock, which sends every step the long way |
//! | `q` | the queue: owner ids in order, a comma after each |
//! | `w<owner>` | a ticket, packed: refreshed, passed over, ttl, block, since, mode, limit, channel, info |
//! | `m` | since when the lock is open (`fair: false`) |
//! | `x<owner>`, `b` | tombstones and their ends; when the first of them may be swept |
//!
//! A read-write lock or a semaphore has the mark `fencelock:read-write` or `fencelock:semaphore` under `K` while somebody
//! holds it, and of its record beside the above:
//!
//! | field | content |
//! |---|---|
//! | `k` | the kind it is in use as |
//! | `H` | packed: the soonest end, then owner id, mode and end of every hold |
//! | `h<owner>` | packed: its token, since when, the number of its newest change of mode, what it says of itself |
//! | `g` | where the client of an upgrade under way listens |
//!
//! A string under `K` that is neither is a foreign holder. No string under `K` is a free lock, whatever took it away.
//!
//! What a script costs, in commands as the server counts them (`INFO commandstats`), the call itself included:
//!
//! | script | commands |
//! |---|---|
//! | Take, nobody waits | 5: EVALSHA TIME HMGET SET HSET; once in ten ttls GET HMGET PEXPIRE more |
//! | Free, nobody waits | 4: EVALSHA GET HGET DEL |
//! | Take that queues | 8: EVALSHA TIME HMGET SET (fails) GET HMGET PTTL HSET; the second to wait HGET for SET |
//! | Free that hands over | 10: EVALSHA GET HGET TIME HMGET HGET HDEL PUBLISH HSET SET |
//! | Free with a Take of the same lock behind it, nobody waits | 6: EVALSHA TIME HMGET GET HSET SET |
//! | the same, handing over and queueing | 11: EVALSHA TIME HMGET GET HMGET HGET HDEL PUBLISH HSET SET; HGET more if others wait |
//! | Renew | 4 for each lock: GET HMGET PTTL PEXPIRE; EVALSHA TIME for each 500 locks |
//! | Free in a dialect with a prefix | 3 more where python-redis-lock waits (DEL LPUSH PEXPIRE), 1 where Spring may (PUBLISH) |
//! | Refresh | 6 for each lock: GET HMGET HGET HGET PTTL HSET; EVALSHA TIME for each 500 locks |
//!
//! An answer that is an error has changed nothing: scripts read, and so find what is no lock, before they write; their
//! first write is one that a server which takes none refuses. While memory is short, locks are released, handed over
//! and renewed, but neither taken nor queued for.

mod address;
mod cell;
mod fault;
mod gate;
mod guarantees;
mod link;
mod neighbour;
mod notice;
mod place;
mod request;
mod script;

use std::fmt;
use std::sync::Arc;

use redis::{Cmd, Pipeline, Value};
use url::Url;

use self::address::Address;
pub use self::gate::RedisGate;
use self::link::{Link, Live};
use self::request::{Request, is_unknown_script};
use self::script::{Script, Texts};
use crate::error::{Code, Error, Result};
use crate::options::Options;
use crate::port::{
    Action, Answer, Capabilities, Cells, Failure, Fence, Kind, LeaseStore, LockKey, NoticeSink,
    OwnerId, RuntimeHandle, Step,
};

/// One client's view of a Redis server, over one connection.
pub struct RedisStore {
    link: Arc<Link>,
    #[cfg(feature = "sim")]
    stopped: crate::runtime::sync::Mutex<Option<Arc<Texts>>>,
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("address", &self.link.address).finish_non_exhaustive()
    }
}

/// How many keys one `SCAN` looks at.
const SCAN_COUNT: u32 = 1000;

impl RedisStore {
    /// Connects to `redis://[user[:password]@]host[:port][/database]` or `redis+unix:///path/of/socket`.
    pub async fn connect(url: &Url, options: &Options, runtime: RuntimeHandle) -> Result<Self> {
        let address = Address::parse(url)?;
        // Where this client listens: as unguessable as an owner id, and as short-lived.
        let channel = format!("fencelock:c:{}", OwnerId::draw(&*runtime));
        Ok(Self {
            link: Link::connect(address, options, channel, runtime).await?,
            #[cfg(feature = "sim")]
            stopped: crate::runtime::sync::Mutex::default(),
        })
    }

    /// The key of the record that lies beside a lock, for people who look with their own tools.
    pub fn record_key(lock: &LockKey) -> String {
        place::record_key(lock.as_str())
    }

    /// Stops the clock of this client's scripts at this many microseconds since 1970, for tests of what takes seconds.
    #[cfg(feature = "sim")]
    pub async fn stop_clock(&self, now: u64) -> Result<()> {
        let texts = Arc::new(Texts::stopped(now));
        *self.stopped.lock() = Some(Arc::clone(&texts));
        self.link.load(&texts).await
    }

    async fn send(&self, live: &Arc<Live>, mut commands: Vec<Cmd>) -> Result<Vec<Value>> {
        let mut connection = live.connection.clone();
        if commands.len() == 1
            && let Some(command) = commands.pop()
        {
            let reply = self.link.answer(live, connection.send_packed_command(&command)).await?;
            return Ok(vec![reply]);
        }
        let mut pipeline = Pipeline::with_capacity(commands.len());
        let count = commands.len();
        for command in commands {
            pipeline.add_command(command);
        }
        self.link.answer(live, connection.send_packed_commands(&pipeline, 0, count)).await
    }

    /// Sends the scripts that the server has forgotten once more, with their text.
    async fn repeat(&self, live: &Arc<Live>, plan: &[Request<'_>]) -> Result<Vec<Value>> {
        let channel = &self.link.channel;
        let whole = |request: &Request<'_>| {
            self.with_text(request.script, |text| request.command("EVAL", text, channel))
        };
        self.send(live, plan.iter().map(whole).collect()).await
    }

    /// Does something with the text of a script.
    #[cfg_attr(
        not(feature = "sim"),
        expect(clippy::unused_self, reason = "only tests stop the clock")
    )]
    fn with_text<T>(&self, script: Script, act: impl FnOnce(&str) -> T) -> T {
        #[cfg(feature = "sim")]
        if let Some(stopped) = &*self.stopped.lock() {
            return act(stopped.of(script));
        }
        act(Texts::shared().of(script))
    }

    /// Sends what a batch was cut into; answers every step.
    async fn carry_out(&self, batch: &[Step], plan: &[Request<'_>]) -> Vec<Answer> {
        let live = match self.link.live().await {
            Ok(live) => live,
            Err(error) => return fail(batch, &Failure::refused(error)),
        };
        let command = |request: &Request<'_>| {
            request.command("EVALSHA", live.hashes.of(request.script), &self.link.channel)
        };
        let replies = match self.send(&live, plan.iter().map(command).collect()).await {
            Ok(replies) => replies,
            Err(error) => return fail(batch, &Failure::unknown(error)),
        };
        let unknown = |(_, reply): &(&Request<'_>, &Value)| is_unknown_script(reply);
        let forgotten: Vec<_> =
            plan.iter().zip(&replies).filter(unknown).map(|(request, _)| *request).collect();
        let mut repeated = match forgotten.len() {
            0 => Ok(Vec::new()),
            _ => self.repeat(&live, &forgotten).await,
        }
        .map(Vec::into_iter);
        let mut answers = Vec::with_capacity(batch.len());
        for (request, reply) in plan.iter().zip(replies) {
            let reply = if is_unknown_script(&reply) {
                match &mut repeated {
                    Ok(replies) => replies.next().unwrap_or(reply),
                    Err(error) => {
                        answers.extend(fail(request.steps, &Failure::unknown(error.clone())));
                        continue;
                    }
                }
            } else {
                reply
            };
            request.answers(reply, &self.link.address, &mut answers);
        }
        answers
    }
}

impl LeaseStore for RedisStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("redis", Fence::ClockBounded)
            .with_guarantees(guarantees::GUARANTEES)
            .with_dialects(&["plain"])
    }

    async fn step(&self, batch: &[Step]) -> Vec<Answer> {
        self.carry_out(batch, &Request::plan(batch)).await
    }

    async fn step_all(&self, batch: &[Step]) -> Vec<Answer> {
        let mutex =
            |step: &Step| step.kind == Kind::Mutex && matches!(step.action, Action::Take(_));
        if !batch.iter().all(mutex) {
            let message = "only mutexes are taken as one; others one after another";
            return fail(batch, &Failure::refused(Error::new(Code::Unsupported, message)));
        }
        self.carry_out(batch, &[Request::all(batch)]).await
    }

    async fn listen(&self, sink: NoticeSink) -> Result<()> {
        self.link.listen(sink).await
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        let pattern = place::pattern(prefix);
        let mut cursor = String::from("0");
        let mut names = std::collections::BTreeSet::new();
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(&cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(SCAN_COUNT);
            let live = self.link.live().await?;
            let reply = self.send(&live, vec![scan]).await?.pop().unwrap_or_default();
            let reply = reply
                .extract_error()
                .map_err(|error| fault::unreachable(&self.link.address, &error))?;
            let (next, keys): (String, Vec<Vec<u8>>) = redis::from_redis_value(reply)
                .map_err(|error| fault::unanswered(&self.link.address, &error.to_string()))?;
            let records = keys.iter().filter_map(|key| std::str::from_utf8(key).ok());
            let locks = records.filter_map(place::lock_of_record);
            names.extend(locks.filter(|lock| lock.starts_with(prefix)).map(LockKey::new));
            if next == "0" {
                return Ok(names.into_iter().collect());
            }
            cursor = next;
        }
    }

    fn cells(&self) -> Option<Cells<'_>> {
        Some(Cells::of(self))
    }

    async fn close(&self) {
        self.link.close();
    }
}

impl Drop for RedisStore {
    fn drop(&mut self) {
        self.link.close();
    }
}

fn fail(steps: &[Step], failure: &Failure) -> Vec<Answer> {
    steps.iter().map(|_| Err(failure.clone())).collect()
}
