//! The model against a store under test: the same random steps to both, outcome by outcome, notice by notice.
//!
//! This ties what the simulator proves of the model to the scripts and statements that real servers run.

pub mod cells;
mod draw;
mod moves;
mod search;
mod sessions;
mod subject;
mod way;
mod world;

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fencelock::Token;
use fencelock::port::{Answer, LeaseStore, LockKey, LockState, Notice, Outcome, Step};

pub use self::draw::draw;
pub use self::moves::{CLIENTS, LOCKS, Move, Scale, found, moves};
pub use self::search::{search, search_among};
pub use self::sessions::ZookeeperSubject;
pub use self::subject::{
    BEGIN, MemorySubject, RedisSubject, RunningRedis, SqliteSubject, Subject, await_arrival,
};
pub use self::way::{Direct, Hosted, Way};
use self::world::World;

/// How a run of moves ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The store did what the model does.
    Alike,
    /// The machine stood still for so long that leases may have ended which the moves took for running.
    TooSlow,
    /// It did something else: what, and where.
    Different(String),
}

/// The differences that two answers may have.
#[derive(Clone, Copy, Debug)]
struct Tolerance {
    /// In times: what really passed, and the store's rounding.
    time: Duration,
    /// In tokens, which are times where clocks run: as many microseconds. Zero where the clock stands.
    token: u64,
}

/// One client of the store under test, and what it was told.
struct Client<S> {
    store: S,
    heard: Arc<Mutex<Vec<Notice>>>,
}

/// Runs the moves on the model and on the subject.
pub async fn run<S: Subject>(subject: &S, scale: &Scale, moves: &[Move]) -> Verdict {
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let store = subject.client().await;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&heard);
        let listening = store.listen(Arc::new(move |notice| sink.lock().unwrap().push(notice)));
        listening.await.expect("a fresh store listens");
        clients.push(Some(Client { store, heard }));
    }
    let world = World::new(subject.now(), subject.tells_who_listens());
    let mut run = Run { subject, scale, clients, world, tokens: Vec::new() };
    let mut started = Instant::now();
    for (number, one) in moves.iter().enumerate() {
        let difference = run.make(one, started).await;
        if subject.runs() && matches!(one, Move::Pass(_)) {
            started = Instant::now();
        }
        if subject.minds_stalls() && started.elapsed() > scale.patience {
            return Verdict::TooSlow;
        }
        if let Err(difference) = difference {
            return Verdict::Different(format!("move {number}, {one:?}: {difference}"));
        }
    }
    for client in run.clients.into_iter().flatten() {
        client.store.close().await;
    }
    Verdict::Alike
}

struct Run<'a, S: Subject> {
    subject: &'a S,
    scale: &'a Scale,
    clients: Vec<Option<Client<S::Store>>>,
    world: World,
    /// Pairs of a token of the model and one of the store, for their order.
    tokens: Vec<(LockKey, Token, Token)>,
}

impl<S: Subject> Run<'_, S> {
    async fn make(&mut self, one: &Move, started: Instant) -> Result<(), String> {
        match one {
            Move::Batch { client, steps } | Move::All { client, takes: steps } => {
                let all = matches!(one, Move::All { .. });
                let Some(Some(asks)) = self.clients.get(*client) else { return Ok(()) };
                // Nobody takes several as one from a quorum.
                if all && self.scale.votes {
                    return Ok(());
                }
                self.world.now = self.subject.now();
                let expected = self.world.carry_out(*client, steps, all, self.scale);
                let batch: Vec<Step> = expected.iter().map(|(step, _)| step.clone()).collect();
                let answers = if all {
                    asks.store.step_all(&batch).await
                } else {
                    asks.store.step(&batch).await
                };
                let tolerance = self.tolerance(started);
                for ((step, expected), answer) in expected.into_iter().zip(answers) {
                    self.compare(&step, &expected, answer, tolerance)
                        .map_err(|difference| format!("{step:?}: {difference}"))?;
                }
                self.compare_notices(tolerance).await
            }
            Move::Pass(units) => {
                self.subject
                    .pass(self.clients.iter().flatten().map(|c| &c.store), self.scale.unit * *units)
                    .await;
                Ok(())
            }
            Move::Vanish { lock } => {
                let lock = self.scale.lock(*lock);
                if self.subject.vanish(&lock) {
                    self.world.vanish(&lock);
                }
                Ok(())
            }
            Move::HangUp { client } => {
                if let Some(client) = self.clients[*client].take() {
                    self.subject.hang_up(client.store).await;
                }
                self.world.connected[*client] = false;
                Ok(())
            }
        }
    }

    fn tolerance(&self, started: Instant) -> Tolerance {
        if self.subject.runs() {
            let time = self.scale.patience;
            Tolerance { time, token: time.as_micros() as u64 }
        } else {
            let stalled =
                if self.subject.minds_stalls() { started.elapsed() } else { Duration::ZERO };
            Tolerance { time: stalled + Duration::from_millis(2), token: 0 }
        }
    }

    fn compare(
        &mut self,
        step: &Step,
        expected: &Outcome,
        answer: Answer,
        by: Tolerance,
    ) -> Result<(), String> {
        let found =
            answer.map_err(|failure| format!("{expected:?} expected, {failure:?} found"))?;
        let alike = match (expected, &found) {
            (
                Outcome::Granted { token, left, drawn },
                Outcome::Granted { token: t, left: l, drawn: d },
            ) => {
                self.same_token(step, *token, *t, by)?
                    && near(Some(*left), Some(*l), by.time)
                    // Where the clocks differ, so does how far ahead of them a grant may reach.
                    && (drawn == d || by.token > 0)
            }
            (
                Outcome::Queued { last, left, ahead, foreign },
                Outcome::Queued { last: t, left: l, ahead: a, foreign: f },
            ) => {
                self.same_token(step, *last, *t, by)?
                    && near(*left, *l, by.time)
                    && (ahead, foreign) == (a, f)
            }
            (Outcome::Held { left }, Outcome::Held { left: l }) => near(*left, *l, by.time),
            (Outcome::State(state), Outcome::State(s)) => {
                self.same_token(step, state.last, s.last, by)?
                    && self.same_state(step, state, s, by)?
            }
            _ => *expected == found,
        };
        if alike { Ok(()) } else { Err(format!("{expected:?} expected, {found:?} found")) }
    }

    /// Tokens rise and repeat together. A counter the model has forgotten may live longer on the store. So it may where only the floor of a
    /// Take that waits has raised the forgotten one: that lies far below every clock.
    fn same_token(
        &mut self,
        step: &Step,
        expected: Token,
        found: Token,
        by: Tolerance,
    ) -> Result<bool, String> {
        if expected.get() < BEGIN {
            return Ok(expected <= found && found.get() <= self.world.now + by.token);
        }
        for (lock, e, f) in &self.tokens {
            if *lock == step.lock && e.cmp(&expected) != f.cmp(&found) {
                return Err(format!("tokens out of order: {e} {f}, {expected} {found}"));
            }
        }
        self.tokens.push((step.lock.clone(), expected, found));
        Ok(expected.get().abs_diff(found.get()) <= by.token)
    }

    fn same_state(
        &mut self,
        step: &Step,
        expected: &LockState,
        found: &LockState,
        by: Tolerance,
    ) -> Result<bool, String> {
        let waiters = expected.waiters.len() == found.waiters.len()
            && expected.waiters.iter().zip(&found.waiters).all(|(e, f)| {
                (e.mode, &e.info) == (f.mode, &f.info)
                    && near(Some(e.waiting_for), Some(f.waiting_for), by.time)
            });
        Ok(waiters
            && expected.kind == found.kind
            && expected.holders.len() == found.holders.len()
            && self.same_holders(step, expected, found, by)?)
    }

    fn same_holders(
        &mut self,
        step: &Step,
        expected: &LockState,
        found: &LockState,
        by: Tolerance,
    ) -> Result<bool, String> {
        for (e, f) in expected.holders.iter().zip(&found.holders) {
            let (Some(token), Some(t)) = (e.token, f.token) else { return Ok(false) };
            let alike = self.same_token(step, token, t, by)?
                && near(e.left, f.left, by.time)
                && near(e.held_for, f.held_for, by.time)
                && (e.mode, &e.info) == (f.mode, &f.info);
            if !alike {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn compare_notices(&mut self, by: Tolerance) -> Result<(), String> {
        for number in 0..CLIENTS {
            // Those of one owner come in order; what different ones hear does not depend on each other.
            let owner = |notice: &Notice| match notice {
                Notice::Granted { owner, .. } | Notice::Open { owner } => Some(*owner),
                _ => None,
            };
            let mut expected = std::mem::take(&mut self.world.told[number]);
            expected.sort_by_key(owner);
            if self.subject.merges_notices() {
                expected.dedup();
            }
            let Some(client) = &self.clients[number] else { continue };
            let arrived = || client.heard.lock().unwrap().len() >= expected.len();
            self.subject.await_notices(&client.store, arrived).await;
            let mut heard = std::mem::take(&mut *client.heard.lock().unwrap());
            heard.sort_by_key(owner);
            if self.subject.merges_notices() {
                // A client gets each notice of its own steps.
                heard.dedup();
            }
            let alike = expected.len() == heard.len()
                && expected.iter().zip(&heard).all(|pair| match pair {
                    (
                        Notice::Granted { owner, token, ttl, drawn },
                        Notice::Granted { owner: o, token: t, ttl: l, drawn: d },
                    ) => {
                        (owner, ttl) == (o, l)
                            && (drawn == d || by.token > 0)
                            && token.get().abs_diff(t.get()) <= by.token
                    }
                    (expected, heard) => expected == heard,
                });
            if !alike {
                return Err(format!("client {number} should hear {expected:?}, heard {heard:?}"));
            }
        }
        Ok(())
    }
}

fn near(expected: Option<Duration>, found: Option<Duration>, by: Duration) -> bool {
    match (expected, found) {
        (Some(expected), Some(found)) => expected.abs_diff(found) <= by,
        (expected, found) => expected.is_none() && found.is_none(),
    }
}
