//! One environment's way to the core.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use fencelock::Client;
use fencelock::facade::{Environment, Facade, Operation};
use fencelock::runtime::TokioRuntime;
use futures_util::future::join_all;
use napi::bindgen_prelude::Function;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Status};
use napi_derive::napi;

use crate::entry::{Inside, entry};

/// Wakes the environment's event loop, from any thread.
type WakeFunction = ThreadsafeFunction<(), (), (), Status, false>;

/// How long an environment that ends waits for its clients.
const LAST: Duration = Duration::from_secs(1);

/// One for each environment: the main thread and each worker. See [`Environment`] for its numbers.
#[napi]
pub struct Door(Inside<Room>);

struct Room {
    environment: Arc<Environment>,
    wake_function: Arc<RwLock<WakeFunction>>,
}

#[napi]
impl Door {
    /// `wake` is called in the environment when there is something to drain. By itself the door keeps no environment alive.
    #[napi(constructor)]
    pub fn new(env: Env, wake: Function<'_, (), ()>) -> napi::Result<Self> {
        entry(|| Room::open(env, &wake))?.map(|room| Self(Inside::new(room)))
    }

    /// Keeps the environment alive from now on, or lets it go.
    #[napi]
    pub fn hold(&self, env: Env, alive: bool) -> napi::Result<()> {
        self.0.enter(|room| room.hold(env, alive))?
    }

    /// Begins to connect. Ends with the client's number.
    #[napi]
    pub fn connect(&self, url: String, options: String, app: String) -> napi::Result<i64> {
        self.count(|environment| {
            let builder = Client::builder().language("node").app(app);
            environment.connect(builder, &options, |builder| {
                Box::pin(async move { builder.connect(&url).await })
            })
        })
    }

    /// Asks for an operation of the facade, told as JSON, and answers its number.
    #[napi]
    pub fn submit(&self, client: i64, text: String) -> napi::Result<i64> {
        self.count(|environment| environment.submit(number(client), &text))
    }

    /// The same for giving a guard back.
    #[napi]
    pub fn release(&self, client: i64, guard: i64) -> napi::Result<i64> {
        let release = Operation::Release { guard: number(guard), succeeded: false };
        self.count(|environment| environment.perform(number(client), release))
    }

    /// The same for hearing of the loss of a guard.
    #[napi]
    pub fn lost(&self, client: i64, guard: i64) -> napi::Result<i64> {
        let lost = Operation::Lost { guard: number(guard) };
        self.count(|environment| environment.perform(number(client), lost))
    }

    /// Sets off what was asked for since the last time.
    #[napi]
    pub fn set_off(&self) -> napi::Result<()> {
        self.ask(Environment::set_off)
    }

    /// Begins to wait for events of the client. Ends with a list of them; with an empty one when nobody listens any more.
    #[napi]
    pub fn news(&self, client: i64) -> napi::Result<i64> {
        self.count(|environment| environment.news(number(client)))
    }

    /// Which events of the client are kept for [`Door::news`]: all, or warnings only; with `null` no more.
    #[napi]
    pub fn listen(&self, client: i64, all: Option<bool>) -> napi::Result<()> {
        self.ask(|environment| environment.listen(number(client), all))
    }

    /// Gives an operation up: whatever it won is given back, and it is drained no more.
    #[napi]
    pub fn forget(&self, operation: i64) -> napi::Result<()> {
        self.ask(|environment| environment.forget(number(operation)))
    }

    /// All that has ended, as JSON: `[[number, value], [number, null, error]]`.
    #[napi]
    pub fn drain(&self) -> napi::Result<String> {
        self.ask(Environment::drain)
    }

    /// Whether a guard may be relied on at this very moment.
    #[napi]
    pub fn is_held(&self, client: i64, guard: i64) -> napi::Result<bool> {
        self.look(client, |facade| facade.is_held(number(guard)))
    }

    /// For how many milliseconds a guard may still be relied on.
    #[napi]
    pub fn remaining(&self, client: i64, guard: i64) -> napi::Result<f64> {
        self.look(client, |facade| facade.remaining(number(guard)))
    }

    /// Why a guard may not be relied on, as an error in JSON; null if it may.
    #[napi]
    pub fn check(&self, client: i64, guard: i64) -> napi::Result<Option<String>> {
        self.ask(|environment| environment.check(number(client), number(guard)))
    }

    /// Gives a guard back without waiting.
    #[napi]
    pub fn drop_guard(&self, client: i64, guard: i64) -> napi::Result<()> {
        self.look(client, |facade| facade.forget(number(guard)))
    }

    /// Gives a client up without waiting, with all it holds and does.
    #[napi]
    pub fn drop_client(&self, client: i64) -> napi::Result<()> {
        self.ask(|environment| environment.remove(number(client)))
    }

    /// Opens a scope of a client and answers its number.
    #[napi]
    pub fn open_scope(&self, client: i64) -> napi::Result<i64> {
        self.look(client, |facade| counted(facade.open_scope()))
    }

    /// Nobody enters by this scope any more.
    #[napi]
    pub fn close_scope(&self, client: i64, scope: i64) -> napi::Result<()> {
        self.look(client, |facade| facade.close_scope(number(scope)))
    }

    /// The guarantees, options and load of a client as JSON, known without asking the store.
    #[napi]
    pub fn about(&self, client: i64) -> napi::Result<String> {
        self.ask(|environment| environment.about(number(client)))
    }

    /// The environment ends: gives everything up, and waits for its clients to close, for a second at most.
    #[napi]
    pub fn leave(&self) -> napi::Result<()> {
        self.ask(end)
    }
}

impl Door {
    fn ask<T>(&self, act: impl FnOnce(&Environment) -> T) -> napi::Result<T> {
        self.0.enter(|room| act(&room.environment))
    }

    /// Asks for what ends later; answers its number.
    fn count(&self, act: impl FnOnce(&Environment) -> u64) -> napi::Result<i64> {
        self.ask(|environment| counted(act(environment)))
    }

    /// Asks a client for what it answers at once. One that is gone answers nothing.
    fn look<T: Default>(&self, client: i64, act: impl FnOnce(&Facade) -> T) -> napi::Result<T> {
        self.ask(|environment| environment.with(number(client), act).unwrap_or_default())
    }
}

impl Room {
    fn open(env: Env, wake: &Function<'_, (), ()>) -> napi::Result<Self> {
        let mut wake_function: WakeFunction = wake.build_threadsafe_function().build()?;
        unhold(&mut wake_function, env)?;
        let wake_function = Arc::new(RwLock::new(wake_function));
        let shared = wake_function.clone();
        let ring = move || {
            let wake_function = shared.read().unwrap_or_else(PoisonError::into_inner);
            wake_function.call((), ThreadsafeFunctionCallMode::NonBlocking);
        };
        let runtime = crate::runtime::handle()
            .map_err(|error| napi::Error::new(Status::GenericFailure, error.to_string()))?;
        let runtime = Arc::new(TokioRuntime::of(runtime));
        let environment = Arc::new(Environment::new(Arc::new(ring), runtime));
        // Nobody is left to hear of an exception.
        env.add_env_cleanup_hook(environment.clone(), |left| drop(entry(move || end(&left))))?;
        Ok(Self { environment, wake_function })
    }

    fn hold(&self, env: Env, alive: bool) -> napi::Result<()> {
        let mut wake_function = self.wake_function.write().unwrap_or_else(PoisonError::into_inner);
        if alive { hold(&mut wake_function, env) } else { unhold(&mut wake_function, env) }
    }
}

/// Closes what the environment had; what is not confirmed in time is left to its lease.
fn end(environment: &Environment) {
    let clients = environment.end();
    if let (false, Ok(runtime)) = (clients.is_empty(), crate::runtime::handle()) {
        let closing = join_all(clients.iter().map(Client::close));
        let _ = runtime.block_on(async { tokio::time::timeout(LAST, closing).await });
    }
}

/// Numbers are whole and start at 1, so JavaScript's suffice. Another one is nobody's.
fn number(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn counted(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(0)
}

#[expect(deprecated, reason = "a clone keeps no event loop alive, which is what this is for")]
fn hold(wake_function: &mut WakeFunction, env: Env) -> napi::Result<()> {
    wake_function.refer(&env)
}

#[expect(deprecated, reason = "a clone keeps no event loop alive, which is what this is for")]
fn unhold(wake_function: &mut WakeFunction, env: Env) -> napi::Result<()> {
    wake_function.unref(&env)
}
