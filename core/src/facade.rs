//! The same nouns with no lifetimes or generics: what every binding wraps. One pump for all doors.
//!
//! A binding submits an operation, gets a number, can abort it, and drains completions in batches when it is woken. Guards
//! live here behind numbers, so nothing heavy crosses. A grant nobody collects is released.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::{AbortHandle, Abortable};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::client::Client;
use crate::error::{Code, Error, Result};
use crate::guard::{Claim, Guard};
use crate::lock::Lock;
use crate::port::{BoxFuture, RuntimeHandle};
use crate::released::Released;
use crate::runtime::sync::Mutex;

/// Something a binding asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Operation {
    /// Wait for a lock. Completes with a [`Granted`].
    Acquire {
        /// The lock.
        name: String,
        /// Options by name; times in milliseconds.
        #[serde(default)]
        options: Map<String, Value>,
    },
    /// Ask once. Completes with a [`Granted`] or null.
    TryAcquire {
        /// The lock.
        name: String,
        /// Options by name; times in milliseconds.
        #[serde(default)]
        options: Map<String, Value>,
    },
    /// Give a guard back. Completes with a [`Released`].
    Release {
        /// The guard's number.
        guard: u64,
    },
    /// Push the end of a guard's lease. Completes with null.
    Extend {
        /// The guard's number.
        guard: u64,
        /// The lease from now on, in milliseconds.
        ttl: f64,
    },
    /// Completes with null when the guard is lost, with the error `not_held` when it was given back before that.
    Lost {
        /// The guard's number.
        guard: u64,
    },
    /// Who holds a lock and who waits. Completes with the state.
    Inspect {
        /// The lock.
        name: String,
        /// Options by name.
        #[serde(default)]
        options: Map<String, Value>,
    },
    /// The names of the locks the store knows. Completes with a list.
    Names {
        /// How they begin.
        prefix: String,
    },
    /// Disconnect. Completes with null.
    Close,
}

/// What an acquire completes with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// The guard's number, for release, extend and lost.
    pub guard: u64,
    /// The fencing token.
    pub token: u64,
}

/// An operation's end.
#[derive(Clone, Debug)]
pub struct Completion {
    /// The number [`Facade::submit`] gave.
    pub operation: u64,
    /// How it ended.
    pub result: Result<Value>,
}

/// Called when completions wait to be drained and the last drain left none. It must return at once.
#[cfg(not(target_arch = "wasm32"))]
pub type Wake = Arc<dyn Fn() + Send + Sync>;
/// Called when completions wait to be drained and the last drain left none. It must return at once.
#[cfg(target_arch = "wasm32")]
pub type Wake = Arc<dyn Fn()>;

/// One client behind numbers.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use fencelock::facade::{Facade, Granted, Operation};
/// use std::sync::Arc;
/// let client = fencelock::connect("memory:facade").await?;
/// let (wake, mut woken) = tokio::sync::mpsc::unbounded_channel();
/// let facade = Facade::new(client, Arc::new(move || { let _ = wake.send(()); }));
/// let operation = facade.submit(Operation::Acquire { name: "orders:42".into(), options: Default::default() });
/// woken.recv().await;
/// let done = facade.drain().remove(0);
/// assert_eq!(done.operation, operation);
/// let granted: Granted = serde_json::from_value(done.result?).unwrap();
/// assert!(facade.is_held(granted.guard));
/// # Ok::<(), fencelock::Error>(()) }).unwrap();
/// ```
pub struct Facade {
    client: Client,
    runtime: RuntimeHandle,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    wake: Wake,
}

#[derive(Default)]
struct State {
    numbers: u64,
    running: BTreeMap<u64, AbortHandle>,
    done: Vec<Completion>,
    guards: BTreeMap<u64, Guard>,
}

impl State {
    /// Makes a grant nobody will collect a cancellation; its guard is to be dropped when the state is unlocked.
    fn take_grant(&mut self, done: &mut Completion) -> Option<Guard> {
        let value = done.result.as_ref().ok()?;
        let granted = Granted::deserialize(value).ok()?;
        done.result = Err(Error::new(Code::Cancelled, "the operation was aborted"));
        self.guards.remove(&granted.guard)
    }
}

impl Facade {
    /// Puts a client behind the pump.
    pub fn new(client: Client, wake: Wake) -> Self {
        let runtime = client.core().runtime.clone();
        Self { client, runtime, shared: Arc::new(Shared { state: Mutex::default(), wake }) }
    }

    /// The client behind it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Sets an operation off and returns its number.
    pub fn submit(&self, operation: Operation) -> u64 {
        let (abort, registration) = AbortHandle::new_pair();
        let number = {
            let mut state = self.shared.state.lock();
            state.numbers += 1;
            let number = state.numbers;
            state.running.insert(number, abort);
            number
        };
        let work = self.work(operation);
        let shared = Arc::downgrade(&self.shared);
        self.runtime.spawn(Box::pin(async move {
            let result = Abortable::new(work, registration).await;
            let cancelled = || Err(Error::new(Code::Cancelled, "the operation was aborted"));
            if let Some(shared) = shared.upgrade() {
                shared.complete(number, result.unwrap_or_else(|_| cancelled()));
            }
        }));
        number
    }

    /// Gives an operation up: it completes with `cancelled`, and whatever it won is released. One that is complete, drained
    /// or not, is left alone, but for a grant that was not drained: that is released too.
    pub fn abort(&self, operation: u64) {
        let mut state = self.shared.state.lock();
        if let Some(running) = state.running.get(&operation) {
            running.abort();
            return;
        }
        let Some(place) = state.done.iter().position(|done| done.operation == operation) else {
            return;
        };
        let mut done = state.done.remove(place);
        let uncollected = state.take_grant(&mut done);
        state.done.insert(place, done);
        drop(state);
        drop(uncollected);
    }

    /// Takes all completions.
    pub fn drain(&self) -> Vec<Completion> {
        std::mem::take(&mut self.shared.state.lock().done)
    }

    /// Whether the guard may be relied on at this very moment; false for one that was given back.
    pub fn is_held(&self, guard: u64) -> bool {
        self.shared.state.lock().guards.get(&guard).is_some_and(|guard| guard.is_held())
    }

    /// How long the guard may still be relied on, in milliseconds; 0 for one that was given back.
    pub fn remaining(&self, guard: u64) -> f64 {
        let remaining = self.shared.state.lock().guards.get(&guard).map(|guard| guard.remaining());
        remaining.unwrap_or_default().as_secs_f64() * 1000.0
    }

    /// Gives a guard back without waiting: for collectors of forgotten handles.
    pub fn forget(&self, guard: u64) {
        let guard = self.shared.state.lock().guards.remove(&guard);
        drop(guard);
    }

    /// Operations under way, completions not drained, guards not given back: all 0 at rest.
    pub fn load(&self) -> (usize, usize, usize) {
        let state = self.shared.state.lock();
        (state.running.len(), state.done.len(), state.guards.len())
    }

    fn lock(&self, name: &str, options: Map<String, Value>) -> Lock {
        options
            .into_iter()
            .fold(self.client.lock(name), |lock, (name, value)| lock.option(&name, value))
    }

    fn claim(&self, guard: u64) -> Result<Claim> {
        let state = self.shared.state.lock();
        state.guards.get(&guard).map(Guard::claim).ok_or_else(Error::not_held)
    }

    fn work(&self, operation: Operation) -> BoxFuture<'static, Result<Value>> {
        let shared = Arc::downgrade(&self.shared);
        let client = self.client.clone();
        match operation {
            Operation::Acquire { name, options } => {
                let lock = self.lock(&name, options);
                Box::pin(async move { Shared::keep(&shared, lock.acquire().await?) })
            }
            Operation::TryAcquire { name, options } => {
                let lock = self.lock(&name, options);
                Box::pin(async move {
                    let guard = lock.try_acquire().await?;
                    guard.map_or(Ok(Value::Null), |guard| Shared::keep(&shared, guard))
                })
            }
            Operation::Release { guard } => {
                let guard =
                    self.shared.state.lock().guards.remove(&guard).ok_or_else(Error::not_held);
                Box::pin(async move {
                    let released: Released = guard?.release().await;
                    Ok(json!(released))
                })
            }
            Operation::Extend { guard, ttl } => {
                let claim = self.claim(guard);
                Box::pin(async move {
                    let ttl = Duration::try_from_secs_f64(ttl / 1000.0).unwrap_or_default();
                    claim?.extend(ttl).await?;
                    Ok(Value::Null)
                })
            }
            Operation::Lost { guard } => {
                let claim = self.claim(guard);
                Box::pin(async move {
                    if claim?.ended().await { Ok(Value::Null) } else { Err(Error::not_held()) }
                })
            }
            Operation::Inspect { name, options } => {
                let lock = self.lock(&name, options);
                Box::pin(async move { Ok(json!(lock.inspect().await?)) })
            }
            Operation::Names { prefix } => {
                Box::pin(async move { Ok(json!(client.names(&prefix).await?)) })
            }
            Operation::Close => Box::pin(async move {
                client.close().await;
                Ok(Value::Null)
            }),
        }
    }
}

impl Shared {
    fn keep(shared: &Weak<Self>, guard: Guard) -> Result<Value> {
        let shared = shared.upgrade().ok_or_else(Error::closed)?;
        let mut state = shared.state.lock();
        state.numbers += 1;
        let granted = Granted { guard: state.numbers, token: guard.token().get() };
        state.guards.insert(granted.guard, guard);
        Ok(json!(granted))
    }

    fn complete(&self, operation: u64, result: Result<Value>) {
        let mut uncollected = None;
        let first = {
            let mut state = self.state.lock();
            let aborted =
                state.running.remove(&operation).is_some_and(|running| running.is_aborted());
            let mut done = Completion { operation, result };
            if aborted {
                uncollected = state.take_grant(&mut done);
            }
            state.done.push(done);
            state.done.len() == 1
        };
        drop(uncollected);
        if first {
            (self.wake)();
        }
    }
}

impl std::fmt::Debug for Facade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Facade")
            .field("client", &self.client)
            .field("load", &self.load())
            .finish_non_exhaustive()
    }
}

impl Drop for Facade {
    /// Whatever runs is given up, and every guard is released.
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.running.values().for_each(AbortHandle::abort);
        let guards = std::mem::take(&mut state.guards);
        drop(state);
        drop(guards);
    }
}
