//! One environment's way to the core.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use fencelock::facade::{Facade, Operation, Pump};
use fencelock::port::{BoxFuture, RuntimeHandle};
use fencelock::runtime::TokioRuntime;
use fencelock::{Client, Error, Result};
use napi::bindgen_prelude::Function;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Status};
use napi_derive::napi;
use serde_json::{Map, Value, json};

use crate::clients::{Clients, Connected};
use crate::end::{operation, told};
use crate::feed::Feed;

/// Wakes the environment's event loop, from any thread.
type Bell = ThreadsafeFunction<(), (), (), Status, false>;

/// How long an environment that ends waits for its clients.
const LAST: Duration = Duration::from_secs(1);

/// One for each environment: the main thread and each worker. All numbers are its own.
///
/// An operation's number is 0 when the environment has ended; then nobody is left who could ask.
#[napi]
pub struct Door {
    inside: Arc<Inside>,
    bell: Arc<RwLock<Bell>>,
}

/// What ends with the environment, whether or not JavaScript collects the door.
struct Inside {
    pump: Mutex<Option<Pump>>,
    clients: Arc<Clients>,
}

#[napi]
impl Door {
    /// `wake` is called in the environment when there is something to drain. By itself the door keeps no environment alive.
    #[napi(constructor, catch_unwind)]
    pub fn new(env: Env, wake: Function<'_, (), ()>) -> napi::Result<Self> {
        let mut bell: Bell = wake.build_threadsafe_function().build()?;
        unhold(&mut bell, env)?;
        let bell = Arc::new(RwLock::new(bell));
        let rope = bell.clone();
        let ring = move || {
            let bell = rope.read().unwrap_or_else(PoisonError::into_inner);
            bell.call((), ThreadsafeFunctionCallMode::NonBlocking);
        };
        let pump = Mutex::new(Some(Pump::new(Arc::new(ring))));
        let inside = Arc::new(Inside { pump, clients: Arc::default() });
        env.add_env_cleanup_hook(inside.clone(), |inside| inside.end())?;
        Ok(Self { inside, bell })
    }

    /// Keeps the environment alive from now on, or lets it go.
    #[napi(catch_unwind)]
    pub fn hold(&self, env: Env, alive: bool) -> napi::Result<()> {
        let mut bell = self.bell.write().unwrap_or_else(PoisonError::into_inner);
        if alive { hold(&mut bell, env) } else { unhold(&mut bell, env) }
    }

    /// Begins to connect. Ends with the client's number.
    #[napi(catch_unwind)]
    pub fn connect(&self, url: String, options: String, app: String) -> i64 {
        let clients = self.inside.clients.clone();
        self.run(move |runtime| {
            Box::pin(async move {
                let feed = Arc::new(Feed::default());
                let heard = feed.clone();
                let options: Map<String, Value> = serde_json::from_str(&options)
                    .map_err(|error| Error::new(fencelock::Code::Invalid, error.to_string()))?;
                let builder = Client::builder()
                    .runtime(runtime)
                    .language("node")
                    .app(app)
                    .on_event(move |event| heard.hear(event));
                let builder = options
                    .into_iter()
                    .fold(builder, |made, (name, value)| made.option(&name, value));
                let facade = Facade::new(builder.connect(&url).await?);
                Ok(json!(clients.add(Connected { facade, feed })))
            })
        })
    }

    /// Sets an operation of the facade off, told as JSON, and answers its number.
    #[napi(catch_unwind)]
    pub fn submit(&self, client: i64, text: String) -> i64 {
        match operation(&text) {
            Ok(operation) => self.set_off(client, operation),
            Err(error) => self.fail(error),
        }
    }

    /// The same for giving a guard back.
    #[napi(catch_unwind)]
    pub fn release(&self, client: i64, guard: i64) -> i64 {
        self.set_off(client, Operation::Release { guard: number(guard) })
    }

    /// The same for hearing of the loss of a guard.
    #[napi(catch_unwind)]
    pub fn lost(&self, client: i64, guard: i64) -> i64 {
        self.set_off(client, Operation::Lost { guard: number(guard) })
    }

    /// Begins to wait for events of the client. Ends with a list of them; with an empty one when nobody listens any more.
    #[napi(catch_unwind)]
    pub fn news(&self, client: i64) -> i64 {
        let feed = self.inside.clients.with(number(client), |client| client.feed.clone());
        self.run(move |_| {
            Box::pin(async move {
                match feed {
                    Some(feed) => Ok(feed.news().await),
                    None => Ok(json!([])),
                }
            })
        })
    }

    /// Whether events of the client are kept for [`Door::news`].
    #[napi(catch_unwind)]
    pub fn listen(&self, client: i64, listening: bool) {
        self.inside.clients.with(number(client), |client| client.feed.listen(listening));
    }

    /// Gives an operation up: whatever it won is given back, and it is drained no more.
    #[napi(catch_unwind)]
    pub fn forget(&self, operation: i64) {
        if let Some(pump) = &*self.inside.pump() {
            pump.forget(number(operation));
        }
    }

    /// All that has ended, as JSON: `[[number, value], [number, null, error]]`.
    #[napi(catch_unwind)]
    pub fn drain(&self) -> String {
        let done = self.inside.pump().as_ref().map(Pump::drain);
        told(done.unwrap_or_default())
    }

    /// Whether a guard may be relied on at this very moment.
    #[napi(catch_unwind)]
    pub fn is_held(&self, client: i64, guard: i64) -> bool {
        self.with(client, |facade| facade.is_held(number(guard))).unwrap_or_default()
    }

    /// For how many milliseconds a guard may still be relied on.
    #[napi(catch_unwind)]
    pub fn remaining(&self, client: i64, guard: i64) -> f64 {
        self.with(client, |facade| facade.remaining(number(guard))).unwrap_or_default()
    }

    /// Why a guard may not be relied on, as an error in JSON; null if it may.
    #[napi(catch_unwind)]
    pub fn check(&self, client: i64, guard: i64) -> Option<String> {
        let checked = self.with(client, |facade| facade.check(number(guard)));
        checked.and_then(Result::err).map(|error| json!(error).to_string())
    }

    /// Gives a guard back without waiting.
    #[napi(catch_unwind)]
    pub fn drop_guard(&self, client: i64, guard: i64) {
        self.with(client, |facade| facade.forget(number(guard)));
    }

    /// Gives a client up without waiting, with all it holds and does.
    #[napi(catch_unwind)]
    pub fn drop_client(&self, client: i64) {
        self.inside.clients.remove(number(client));
    }

    /// Opens a scope of a client and answers its number.
    #[napi(catch_unwind)]
    pub fn open_scope(&self, client: i64) -> i64 {
        counted(self.with(client, Facade::open_scope).unwrap_or_default())
    }

    /// Nobody enters by this scope any more.
    #[napi(catch_unwind)]
    pub fn close_scope(&self, client: i64, scope: i64) {
        self.with(client, |facade| facade.close_scope(number(scope)));
    }

    /// What is known of a client without asking the store, as JSON: `guarantees`, `options` by name, and what it carries
    /// (`load`).
    #[napi(catch_unwind)]
    pub fn about(&self, client: i64) -> String {
        let done = self.inside.pump().as_ref().map_or(0, |pump| pump.load().1);
        let about = self.with(client, |facade| {
            let ((running, guards), client) = (facade.load(), facade.client());
            let (entries, locks) = client.load();
            let load = json!({ "running": running, "done": done, "guards": guards, "entries": entries, "locks": locks });
            json!({ "guarantees": client.guarantees(), "options": client.options().to_map(), "load": load })
        });
        about.unwrap_or_default().to_string()
    }

    /// The environment ends: gives everything up, and waits for its clients to close, for a second at most.
    #[napi(catch_unwind)]
    pub fn leave(&self) {
        self.inside.end();
    }
}

impl Door {
    fn with<T>(&self, client: i64, act: impl FnOnce(&Facade) -> T) -> Option<T> {
        self.inside.clients.with(number(client), |client| act(&client.facade))
    }

    fn set_off(&self, client: i64, operation: Operation) -> i64 {
        let pump = self.inside.pump();
        let Some(pump) = &*pump else { return 0 };
        let submitted = self.with(client, |facade| pump.submit(facade, operation));
        submitted.map_or_else(|| gone(pump), counted)
    }

    fn run(&self, work: impl FnOnce(RuntimeHandle) -> BoxFuture<'static, Result<Value>>) -> i64 {
        let pump = self.inside.pump();
        let (Some(pump), Ok(runtime)) = (&*pump, crate::runtime::handle()) else { return 0 };
        let runtime: RuntimeHandle = Arc::new(TokioRuntime::of(runtime));
        counted(pump.run(&runtime, work(runtime.clone())))
    }

    fn fail(&self, error: Error) -> i64 {
        self.run(|_| Box::pin(std::future::ready(Err(error))))
    }
}

impl Inside {
    fn pump(&self) -> MutexGuard<'_, Option<Pump>> {
        self.pump.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        let pump = self.pump().take();
        drop(pump);
        self.clients.end(LAST);
    }
}

/// The client is not there: its environment gave it up.
fn gone(pump: &Pump) -> i64 {
    let Ok(runtime) = crate::runtime::handle() else { return 0 };
    let runtime: RuntimeHandle = Arc::new(TokioRuntime::of(runtime));
    let message = "this client was given up; connect again";
    let error = Error::new(fencelock::Code::Closed, message);
    counted(pump.run(&runtime, Box::pin(std::future::ready(Err(error)))))
}

/// Numbers are whole and start at 1, so JavaScript's suffice. Another one is nobody's.
fn number(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn counted(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(0)
}

#[expect(deprecated, reason = "a clone keeps no event loop alive, which is what this is for")]
fn hold(bell: &mut Bell, env: Env) -> napi::Result<()> {
    bell.refer(&env)
}

#[expect(deprecated, reason = "a clone keeps no event loop alive, which is what this is for")]
fn unhold(bell: &mut Bell, env: Env) -> napi::Result<()> {
    bell.unref(&env)
}
