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

/// Wakes the environment's event loop, from any thread.
type Bell = ThreadsafeFunction<(), (), (), Status, false>;

/// How long an environment that ends waits for its clients.
const LAST: Duration = Duration::from_secs(1);

/// One for each environment: the main thread and each worker. See [`Environment`] for its numbers.
#[napi]
pub struct Door {
    inside: Arc<Environment>,
    bell: Arc<RwLock<Bell>>,
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
        let runtime = crate::runtime::handle()
            .map_err(|error| napi::Error::new(Status::GenericFailure, error.to_string()))?;
        let runtime = Arc::new(TokioRuntime::of(runtime));
        let inside = Arc::new(Environment::new(Arc::new(ring), runtime));
        env.add_env_cleanup_hook(inside.clone(), |inside| end(&inside))?;
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
        let builder = Client::builder().language("node").app(app);
        counted(self.inside.connect(builder, &options, |builder| {
            Box::pin(async move { builder.connect(&url).await })
        }))
    }

    /// Asks for an operation of the facade, told as JSON, and answers its number.
    #[napi(catch_unwind)]
    pub fn submit(&self, client: i64, text: String) -> i64 {
        counted(self.inside.submit(number(client), &text))
    }

    /// The same for giving a guard back.
    #[napi(catch_unwind)]
    pub fn release(&self, client: i64, guard: i64) -> i64 {
        let release = Operation::Release { guard: number(guard) };
        counted(self.inside.perform(number(client), release))
    }

    /// The same for hearing of the loss of a guard.
    #[napi(catch_unwind)]
    pub fn lost(&self, client: i64, guard: i64) -> i64 {
        counted(self.inside.perform(number(client), Operation::Lost { guard: number(guard) }))
    }

    /// Sets off what was asked for since the last time.
    #[napi(catch_unwind)]
    pub fn set_off(&self) {
        self.inside.set_off();
    }

    /// Begins to wait for events of the client. Ends with a list of them; with an empty one when nobody listens any more.
    #[napi(catch_unwind)]
    pub fn news(&self, client: i64) -> i64 {
        counted(self.inside.news(number(client)))
    }

    /// Whether events of the client are kept for [`Door::news`].
    #[napi(catch_unwind)]
    pub fn listen(&self, client: i64, listening: bool) {
        self.inside.listen(number(client), listening);
    }

    /// Gives an operation up: whatever it won is given back, and it is drained no more.
    #[napi(catch_unwind)]
    pub fn forget(&self, operation: i64) {
        self.inside.forget(number(operation));
    }

    /// All that has ended, as JSON: `[[number, value], [number, null, error]]`.
    #[napi(catch_unwind)]
    pub fn drain(&self) -> String {
        self.inside.drain()
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
        self.inside.check(number(client), number(guard))
    }

    /// Gives a guard back without waiting.
    #[napi(catch_unwind)]
    pub fn drop_guard(&self, client: i64, guard: i64) {
        self.with(client, |facade| facade.forget(number(guard)));
    }

    /// Gives a client up without waiting, with all it holds and does.
    #[napi(catch_unwind)]
    pub fn drop_client(&self, client: i64) {
        self.inside.remove(number(client));
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

    /// What is known of a client without asking the store, as JSON.
    #[napi(catch_unwind)]
    pub fn about(&self, client: i64) -> String {
        self.inside.about(number(client))
    }

    /// The environment ends: gives everything up, and waits for its clients to close, for a second at most.
    #[napi(catch_unwind)]
    pub fn leave(&self) {
        end(&self.inside);
    }

    /// Panics on purpose, so that tests see what becomes of a defect.
    #[napi(catch_unwind, skip_typescript)]
    pub fn panic() {
        panic!("out of paper")
    }
}

impl Door {
    fn with<T>(&self, client: i64, act: impl FnOnce(&Facade) -> T) -> Option<T> {
        self.inside.with(number(client), act)
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
fn hold(bell: &mut Bell, env: Env) -> napi::Result<()> {
    bell.refer(&env)
}

#[expect(deprecated, reason = "a clone keeps no event loop alive, which is what this is for")]
fn unhold(bell: &mut Bell, env: Env) -> napi::Result<()> {
    bell.unref(&env)
}
