//! Plays one case on one backend with one kind of actor.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fencelock::port::{BoxFuture, Mode, RuntimeHandle};
use futures_util::future::{Either, join_all, select};
use serde_json::Value;

use super::case::Case;
use super::check;
use super::ground::Ground;
use super::player::{Ended, Player, Reply};
use super::scope::{Entry, Scope};
use super::step::{Connect, Expect, State, Step, Times};
use crate::protocol::{Call, End, Options};

/// Longer than any promise, also where processors are slow: what has not ended by then hangs.
pub(super) const HANG: Duration = Duration::from_secs(60);
/// How long a client waits for its store, in milliseconds.
pub(super) const PATIENCE: u64 = 30_000;
/// The tolerance of a bound: an event at its very end is in time, and this much later all events of that instant have happened.
pub(super) const INSTANT: Duration = Duration::from_nanos(1);
/// Between two looks at something that need not be so at once.
pub(super) const LOOK: Duration = Duration::from_millis(5);

/// The case that is played, and all that goes with it.
pub(super) struct Run<'a> {
    pub case: &'a Case,
    pub ground: Ground,
    /// The time the case lives in.
    pub clock: RuntimeHandle,
    /// The time that a busy machine may add to every bound, in milliseconds: 0 in virtual time.
    pub slack: u64,
    /// Stands before every name of the case.
    pub prefix: String,
    pub players: BTreeMap<String, Player>,
    /// How fencelock's clients lay out their locks, if not as they would by themselves.
    pub dialect: Option<&'a str>,
    /// Whether the actors stay for the next case.
    pub stay: bool,
    pub notes: Notes,
}

/// The notes for the checks at the end of the case.
#[derive(Default)]
pub(super) struct Notes {
    /// Locks that were asked for, with their options.
    pub locks: Mutex<BTreeSet<(String, Option<String>)>>,
    /// Every token that was granted, with its lock.
    pub tokens: Mutex<BTreeSet<(String, Option<String>, u64)>>,
    /// Guards whose loss is to be told.
    pub watched: Mutex<BTreeSet<(String, u64)>>,
    /// Guards that were given back while they held.
    pub released: Mutex<Vec<(String, u64)>>,
    /// The entries that branches left behind.
    pub strays: Mutex<Vec<Entry>>,
    /// Whether somebody died who could not clean up.
    pub killed: AtomicBool,
    tallies: Mutex<BTreeMap<String, u64>>,
    pub turns: AtomicUsize,
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn millis(time: u64) -> Duration {
    Duration::from_millis(time)
}

impl Run<'_> {
    /// Plays the case; what went wrong, and at which step.
    pub(super) async fn play(&self) -> Result<(), String> {
        if self.case.connected {
            for actor in self.players.keys() {
                let connect = Connect {
                    actor: actor.clone(),
                    url: None,
                    options: Options::new(),
                    expect: None,
                };
                self.connect(&connect).await?;
            }
        }
        let mut scope = Scope::default();
        self.steps(&mut scope, &self.case.steps).await?;
        locked(&self.notes.strays).extend(scope.entries.into_values());
        self.rest().await
    }

    fn steps<'b>(
        &'b self,
        scope: &'b mut Scope,
        steps: &'b [Step],
    ) -> BoxFuture<'b, Result<(), String>> {
        Box::pin(async move {
            for (number, step) in steps.iter().enumerate() {
                self.step(scope, step)
                    .await
                    .map_err(|wrong| format!("step {}, {}: {wrong}", number + 1, step.shown()))?;
            }
            Ok(())
        })
    }

    async fn step(&self, scope: &mut Scope, step: &Step) -> Result<(), String> {
        match step {
            Step::Acquire(ask) => self.acquire(scope, ask, false).await?,
            Step::Try(ask) => self.acquire(scope, ask, true).await?,
            Step::Start(ask) => drop(self.start(scope, ask, false)?),
            Step::Await(what) => self.wait(scope, what).await?,
            Step::Pending(names) => {
                for name in names {
                    let reply = scope.entry(name)?.reply.clone();
                    if let Some(ended) = futures_util::FutureExt::now_or_never(reply.end) {
                        return Err(format!("`{name}` has ended: {ended:?}"));
                    }
                }
            }
            Step::Abort(name) => {
                let entry = scope.entry(name)?;
                let (by, target) = (entry.by.clone(), entry.reply.id);
                self.call(&by, Call::Abort { target }, &Expect::Done).await?;
            }
            Step::Release(_)
            | Step::Drop(_)
            | Step::Extend(_)
            | Step::Transfer(_)
            | Step::Held(_)
            | Step::Remaining(_)
            | Step::Lost(_)
            | Step::Break(_)
            | Step::Gate(_)
            | Step::Rising(_) => self.on_guards(scope, step).await?,
            Step::Connect(_)
            | Step::Close(_)
            | Step::Leave(_)
            | Step::Busy(_)
            | Step::Kill(_)
            | Step::Crash(_)
            | Step::Stop(_)
            | Step::Resume(_)
            | Step::Reach(_)
            | Step::Redis(_)
            | Step::Sql(_)
            | Step::TakeAway(_)
            | Step::Server(_) => self.on_world(scope, step).await?,
            Step::State(state) => self.state(scope, state).await?,
            Step::Job(_)
            | Step::Leader(_)
            | Step::Observe(_)
            | Step::Value(_)
            | Step::Write(_)
            | Step::Update(_) => self.on_cells(scope, step).await?,
            Step::Locked(locked) => {
                let lock = scope.lock_name(&self.prefix, &locked.lock);
                let seen = self.ask_now(&locked.by, Call::IsLocked { lock }).await?;
                if seen != serde_json::json!(locked.is) {
                    return Err(format!("whether it is locked: {seen}"));
                }
            }
            Step::PingStore(by) => {
                let took = self.ask_now(by, Call::PingStore).await?;
                if !took.as_f64().is_some_and(|took| (0.0..60_000.0).contains(&took)) {
                    return Err(format!("it took {took}"));
                }
            }
            Step::Names(names) => {
                let prefix = format!("{}{}", self.prefix, names.prefix);
                let seen = self.ask_now(&names.by, Call::Names { prefix }).await?;
                let expected: Vec<_> =
                    names.are.iter().map(|name| format!("{}{name}", self.prefix)).collect();
                if seen != serde_json::json!(expected) {
                    return Err(format!("the names are {seen}"));
                }
            }
            Step::Sleep(time) => self.sleep(millis(*time)).await,
            Step::Parallel(times) => self.parallel(times).await?,
            Step::Repeat(Times { times, steps, .. }) => {
                for _ in 0..*times {
                    self.steps(scope, steps).await?;
                }
            }
            Step::Add(name) => {
                let seen = locked(&self.notes.tallies).get(name).copied().unwrap_or(0);
                // Whoever is in here as well reads the same number meanwhile.
                self.sleep(Duration::from_micros(200)).await;
                locked(&self.notes.tallies).insert(name.clone(), seen + 1);
            }
            Step::Tally(tally) => {
                let seen = locked(&self.notes.tallies).get(&tally.name).copied().unwrap_or(0);
                if seen != tally.is {
                    return Err(format!("the tally is {seen}"));
                }
            }
        }
        Ok(())
    }

    async fn parallel(&self, times: &Times) -> Result<(), String> {
        let branches = (0..times.times).map(|number| async move {
            let mut scope = Scope::branch(number);
            let result = self.steps(&mut scope, &times.steps).await;
            let grants = scope.entries.values().filter(|entry| entry.grant.is_some()).count();
            locked(&self.notes.strays).extend(scope.entries.into_values());
            result.map_err(|wrong| format!("branch {number}: {wrong}")).map(|()| grants)
        });
        let grants = join_all(branches).await.into_iter().sum::<Result<usize, _>>()?;
        match times.granted {
            Some(expected) if grants != expected => Err(format!("{grants} of them were granted")),
            _ => Ok(()),
        }
    }

    pub(super) async fn sleep(&self, time: Duration) {
        self.clock.sleep_until(self.clock.now() + time).await;
    }

    pub(super) fn player(&self, name: &str) -> Result<&Player, String> {
        self.players.get(name).ok_or_else(|| format!("there is no actor `{name}`"))
    }

    /// The end of a request, if it comes in time.
    pub(super) async fn end(&self, reply: &Reply, within: Duration) -> Result<Ended, String> {
        let end = self.clock.now() + within + millis(self.slack) + INSTANT;
        match select(reply.end.clone(), self.clock.sleep_until(end)).await {
            Either::Left((Some(ended), _)) => Ok(ended),
            Either::Left((None, _)) => Err("the actor went before it answered".to_owned()),
            Either::Right(_) => Err(format!("no end within {within:?}")),
        }
    }

    /// Asks and compares.
    pub(super) async fn call(
        &self,
        by: &str,
        call: Call,
        expect: &Expect,
    ) -> Result<Value, String> {
        let reply = self.player(by)?.ask(call);
        let ended = self.end(&reply, HANG).await?;
        check::end(expect, &ended.end)?;
        match ended.end {
            End::Ok(value) => Ok(value),
            End::Error(_) => Ok(Value::Null),
        }
    }

    pub(super) async fn ask_now(&self, by: &str, call: Call) -> Result<Value, String> {
        self.call(by, call, &Expect::Done).await
    }

    async fn state(&self, scope: &mut Scope, expect: &State) -> Result<(), String> {
        let holder = match expect.holder.as_deref() {
            None | Some("nobody" | "somebody" | "foreign") => None,
            Some(guard) => Some(scope.grant(guard)?.1.token),
        };
        let by = match &expect.by {
            Some(by) => by.clone(),
            None => self.witness().ok_or("nobody is left to look")?.to_owned(),
        };
        // What the store does not tell is not expected of it.
        let left = expect.left.filter(|_| self.ground.tells_ends());
        let mut expect = State { left, ..expect.clone() };
        if !self.ground.tells_who() {
            let holder = |who: String| if who == "nobody" { who } else { "foreign".to_owned() };
            expect.holder = expect.holder.map(holder);
            // How many they are is known: they are to be there before the next step.
            expect.waiters = expect.waiters.or(expect.infos.take().map(|infos| infos.len()));
            for mode in expect.modes.iter_mut().flatten() {
                *mode = if *mode == Mode::Write { Mode::Exclusive } else { *mode };
            }
        }
        let expect = &expect;
        let lock = scope.lock_name(&self.prefix, &expect.lock);
        let slack = if expect.within.is_some() { self.slack } else { 0 };
        let end = self.clock.now() + millis(expect.within.unwrap_or(0) + slack);
        loop {
            let call = Call::Inspect { lock: lock.clone(), options: expect.options.clone() };
            let seen = self.ask_now(&by, call).await?;
            match check::state(expect, holder, self.ground.is_voted(), &seen) {
                Ok(()) => return Ok(()),
                Err(wrong) if self.clock.now() >= end => return Err(wrong),
                Err(_) => self.sleep(LOOK).await,
            }
        }
    }

    /// An actor that can be asked.
    pub(super) fn witness(&self) -> Option<&str> {
        let able = |name: &str, player: &Player| {
            let answers = !player.is_gone() && !player.closed.load(Ordering::Acquire);
            answers && !self.case.is_incumbent(name)
        };
        self.players.iter().find(|(name, player)| able(name, player)).map(|(name, _)| name.as_str())
    }
}

/// A number nobody else in this process has.
pub(super) fn number() -> u64 {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}
