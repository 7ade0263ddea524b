//! The Rust actor: one client behind the facade, driven by the requests of `tests/README.md`.
//!
//! The same code runs in process, in virtual time, and as the program `actor`.

mod cells;
mod kinds;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use fencelock::facade::{Completion, Facade, Operation, Pump};
use fencelock::port::{LockState, RuntimeHandle};
use fencelock::{Client, Code, Error, Result, WithError};
use futures_util::future::{AbortHandle, Abortable, Either, select};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use self::kinds::Scopes;
use crate::protocol::{Answer, Call, End, Event, Grant, Message, Options, Request};
use crate::queues;

/// The parts of its surroundings that an actor needs.
pub struct Host {
    /// Its platform.
    pub runtime: RuntimeHandle,
    /// Where its lines go.
    pub send: Arc<dyn Fn(Message) + Send + Sync>,
    /// Ends it at once, with nothing cleaned up.
    pub crash: Box<dyn Fn() + Send + Sync>,
}

/// Serves requests until there are no more; then gives everything back and disconnects.
pub async fn serve(host: Host, mut requests: UnboundedReceiver<Request>) {
    let (signal, mut signals) = unbounded_channel();
    let woken = signal.clone();
    let mut actor = Actor {
        host,
        facade: None,
        pump: Pump::new(Arc::new(move || drop(woken.send(Signal::Woken)))),
        signal,
        asked: BTreeMap::new(),
        bodies: BTreeMap::new(),
        tokens: BTreeMap::new(),
        scopes: Scopes::default(),
    };
    loop {
        // Requests first, so that what was sent while the actor was busy meets grants nobody has looked at yet.
        let next = {
            let (request, signal) = (pin!(requests.recv()), pin!(signals.recv()));
            match select(request, signal).await {
                Either::Left((request, _)) => Either::Left(request),
                Either::Right((signal, _)) => Either::Right(signal),
            }
        };
        match next {
            Either::Left(Some(request)) => actor.request(request).await,
            Either::Left(None) => break,
            Either::Right(Some(Signal::Woken)) => actor.drain(),
            Either::Right(Some(Signal::Finished(request, end))) => {
                actor.bodies.remove(&request);
                actor.answer(request, end);
            }
            Either::Right(None) => unreachable!("the actor keeps a sender"),
        }
    }
    actor.leave().await;
}

/// The signals that wake the actor besides requests.
enum Signal {
    /// Completions wait to be drained.
    Woken,
    /// The body of a `with` has ended.
    Finished(u64, End),
}

/// The purpose of a completion.
enum Asked {
    /// The answer to a request.
    Answer(u64),
    /// The answer to a request for the state of a lock.
    State(u64),
    /// The loss of a guard.
    Lost(u64),
}

struct Actor {
    host: Host,
    facade: Option<Facade>,
    pump: Pump,
    signal: UnboundedSender<Signal>,
    /// By the facade's operation.
    asked: BTreeMap<u64, Asked>,
    /// By the request.
    bodies: BTreeMap<u64, AbortHandle>,
    /// Of the guards that were not given back.
    tokens: BTreeMap<u64, u64>,
    scopes: Scopes,
}

impl Actor {
    fn answer(&self, id: u64, end: impl Into<End>) {
        (self.host.send)(Message::Answer(Answer { id, end: end.into() }));
    }

    async fn request(&mut self, Request { id, call }: Request) {
        match call {
            Call::Connect { url, options } => {
                let connected = self.connect(&url, options).await;
                self.answer(id, connected.map(|()| Value::Null));
            }
            Call::Busy { time } => {
                let runtime = &self.host.runtime;
                runtime.sleep_until(runtime.now() + millis(time)).await;
                self.answer(id, Ok(Value::Null));
            }
            Call::Crash => (self.host.crash)(),
            call => {
                if let Err(error) = self.call(id, call) {
                    self.answer(id, Err(error));
                }
            }
        }
    }

    async fn connect(&mut self, url: &str, options: Options) -> Result<()> {
        let runtime = &self.host.runtime;
        let queue = queues::client_of(url, &options, runtime);
        let builder = Client::builder().runtime(runtime.clone());
        let builder = options
            .into_iter()
            .fold(builder, |made, (name, value)| made.option(&name, cells::option(value)));
        let client = match queue {
            Some(queue) => builder.store(queue).await?,
            None => builder.connect(url).await?,
        };
        self.give_all_back();
        self.facade = Some(Facade::new(client));
        Ok(())
    }

    /// The facade goes, with all it holds and all it was asked for.
    fn give_all_back(&mut self) -> Option<Client> {
        let client = self.facade.take()?.client().clone();
        for asked in std::mem::take(&mut self.asked).into_values() {
            if let Asked::Answer(id) | Asked::State(id) = asked {
                let gone = Error::new(Code::Closed, "this actor's client was given up");
                self.answer(id, Err(gone));
            }
        }
        self.tokens.clear();
        self.scopes = Scopes::default();
        Some(client)
    }

    /// Does what needs no waiting, and submits the rest.
    fn call(&mut self, id: u64, call: Call) -> Result<()> {
        let facade = self.facade.as_ref().ok_or_else(not_connected)?;
        let held = |guard| self.tokens.get(&guard).copied().ok_or_else(not_held);
        let call = match self.scopes.operation(facade, call) {
            Ok(operation) => {
                self.asked.insert(self.pump.submit(facade, operation), Asked::Answer(id));
                return Ok(());
            }
            Err(call) => call,
        };
        let operation = match call {
            Call::Release { guard } => {
                self.tokens.remove(&guard);
                Operation::Release { guard, succeeded: false }
            }
            Call::Transfer { guard } => {
                self.tokens.remove(&guard);
                Operation::Transfer { guard }
            }
            Call::Adopt { text } => Operation::Adopt { text },
            Call::Extend { guard, ttl } => Operation::Extend { guard, ttl },
            Call::Inspect { lock, options } => {
                let inspect = Operation::Inspect { name: lock, options };
                let operation = self.pump.submit(facade, inspect);
                self.asked.insert(operation, Asked::State(id));
                return Ok(());
            }
            Call::Names { prefix } => Operation::Names { prefix },
            Call::EndJob { guard, succeeded } => {
                self.tokens.remove(&guard);
                Operation::Release { guard, succeeded }
            }
            Call::Update { lock, options, add } => {
                self.update(id, &lock, options, add)?;
                return Ok(());
            }
            call @ (Call::Campaign { .. }
            | Call::TryCampaign { .. }
            | Call::Leader { .. }
            | Call::Observe { .. }
            | Call::StartJob { .. }
            | Call::InspectJob { .. }
            | Call::ReadVersion { .. }
            | Call::CompareAndSet { .. }
            | Call::DeleteVersion { .. }) => cells::operation(call)?,
            Call::Close => Operation::Close,
            Call::Lost { guard } => {
                held(guard)?;
                let operation = self.pump.submit(facade, Operation::Lost { guard });
                self.asked.insert(operation, Asked::Lost(guard));
                self.answer(id, Ok(Value::Null));
                return Ok(());
            }
            Call::With { lock, options, work } => {
                self.with(id, &lock, options, work)?;
                return Ok(());
            }
            Call::Abort { target } => {
                self.abort(target);
                self.answer(id, Ok(Value::Null));
                return Ok(());
            }
            now => {
                let value = match now {
                    Call::Drop { guard } => {
                        held(guard)?;
                        facade.forget(guard);
                        self.tokens.remove(&guard);
                        Value::Null
                    }
                    Call::IsHeld { guard } => json!(facade.is_held(guard)),
                    Call::Remaining { guard } => json!(facade.remaining(guard)),
                    Call::Token { guard } => json!(held(guard)?),
                    Call::Load => {
                        json!(facade.load(Some(&self.pump)))
                    }
                    _ => json!({"actor": "rust", "pid": std::process::id()}),
                };
                self.answer(id, Ok(value));
                return Ok(());
            }
        };
        let operation = self.pump.submit(facade, operation);
        self.asked.insert(operation, Asked::Answer(id));
        Ok(())
    }

    fn with(&mut self, id: u64, lock: &str, options: Options, work: f64) -> Result<()> {
        let client = self.facade.as_ref().ok_or_else(not_connected)?.client();
        let lock = options.into_iter().fold(client.lock(lock), |lock, (name, value)| {
            lock.option(&name, cells::option(value))
        });
        let (abort, registration) = AbortHandle::new_pair();
        let (runtime, signal) = (self.host.runtime.clone(), self.signal.clone());
        let spawn = runtime.clone();
        spawn.spawn(Box::pin(async move {
            let body = lock.with(|claim| async move {
                runtime.sleep_until(runtime.now() + millis(work)).await;
                Ok::<_, Infallible>(json!({ "token": claim.token() }))
            });
            let ended = Abortable::new(body, registration).await;
            let end = ended.map_or_else(
                |_| Err(Error::new(Code::Cancelled, "the operation was aborted")),
                |ended| ended.map_err(WithError::<Infallible>::into_error),
            );
            let _ = signal.send(Signal::Finished(id, end.into()));
        }));
        self.bodies.insert(id, abort);
        Ok(())
    }

    /// Adds to a number in the language's own way of changing a value as often as it takes.
    fn update(&mut self, id: u64, name: &str, options: Options, add: i64) -> Result<()> {
        let client = self.facade.as_ref().ok_or_else(not_connected)?.client();
        let version = cells::version(client, name, options);
        let (abort, registration) = AbortHandle::new_pair();
        let signal = self.signal.clone();
        self.host.runtime.spawn(Box::pin(async move {
            let updated = Abortable::new(cells::add(version, add), registration).await;
            let end = updated
                .unwrap_or_else(|_| Err(Error::new(Code::Cancelled, "the operation was aborted")));
            let _ = signal.send(Signal::Finished(id, end.into()));
        }));
        self.bodies.insert(id, abort);
        Ok(())
    }

    fn abort(&self, target: u64) {
        if let Some(body) = self.bodies.get(&target) {
            body.abort();
        }
        let asked = self
            .asked
            .iter()
            .find(|(_, asked)| matches!(asked, Asked::Answer(id) if *id == target));
        if let Some((operation, _)) = asked {
            self.pump.abort(*operation);
        }
    }

    fn drain(&mut self) {
        for Completion { operation, result } in self.pump.drain() {
            let result = result.map(|answer| json!(answer));
            match self.asked.remove(&operation) {
                Some(Asked::Answer(id)) => {
                    let grant = result.as_ref().ok().map(Grant::deserialize);
                    if let Some(Ok(Grant { guard, token })) = grant {
                        self.tokens.insert(guard, token);
                    }
                    self.answer(id, result);
                }
                Some(Asked::State(id)) => self.answer(id, result.and_then(shown)),
                Some(Asked::Lost(guard)) if result.is_ok() => {
                    (self.host.send)(Message::Event(Event::Lost { guard }));
                }
                Some(Asked::Lost(_)) | None => {}
            }
        }
    }

    /// The end of the input: nobody can give anything back any more.
    async fn leave(mut self) {
        if let Some(client) = self.give_all_back() {
            client.close().await;
        }
    }
}

/// A state as the protocol tells it: times in milliseconds, what is said of holders and waiters as objects.
fn shown(state: Value) -> Result<Value> {
    let state = LockState::deserialize(state)
        .map_err(|error| Error::new(Code::Internal, format!("this is no state: {error}")))?;
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    let info = |info: &str| serde_json::from_str(info).unwrap_or(json!({}));
    let holders = state.holders.iter().map(|holder| {
        json!({
            "mode": holder.mode,
            "token": holder.token,
            "left": holder.left.map(millis),
            "held_for": holder.held_for.map(millis),
            "info": info(&holder.info),
        })
    });
    let waiters = state.waiters.iter().map(|waiter| {
        let (info, waiting_for) = (info(&waiter.info), millis(waiter.waiting_for));
        json!({ "mode": waiter.mode, "info": info, "waiting_for": waiting_for })
    });
    let (holders, waiters) = (holders.collect::<Vec<_>>(), waiters.collect::<Vec<_>>());
    Ok(json!({
        "kind": state.kind,
        "holder": holders.first(),
        "holders": holders,
        "last": state.last,
        "waiters": waiters,
    }))
}

fn millis(time: f64) -> Duration {
    Duration::try_from_secs_f64(time / 1000.0).unwrap_or_default()
}

fn not_connected() -> Error {
    Error::new(Code::Closed, "this actor is not connected; send `connect` first")
}

fn not_held() -> Error {
    Error::new(Code::NotHeld, "this actor has no such guard")
}
