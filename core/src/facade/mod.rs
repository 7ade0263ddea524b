//! The same nouns with no lifetimes or generics: what every binding wraps. One pump for all doors.
//!
//! A binding submits an operation, gets a number, can abort it, and drains completions in batches when it is woken. Guards
//! live here behind numbers, so nothing heavy crosses. A grant nobody collects is released.

mod election;
mod held;
mod job;
mod lock;
mod operation;
mod version;

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use futures_util::future::{AbortHandle, Abortable};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::held::Held;
pub use self::operation::{Form, Granted, Operation};
use crate::client::Client;
use crate::error::{Code, Error, Result};
use crate::guard::Claim;
use crate::port::{BoxFuture, RuntimeHandle};
use crate::runtime::sync::Mutex;
use crate::scope::Scope;

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
/// let operation = facade.submit(Operation::Acquire { name: "orders:42".into(), form: Default::default(), options: Default::default() });
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
    held: BTreeMap<u64, Held>,
    scopes: BTreeMap<u64, Scope>,
}

impl State {
    /// Makes a grant nobody will collect a cancellation; its guard is to be dropped when the state is unlocked.
    fn take_grant(&mut self, done: &mut Completion) -> Option<Held> {
        let value = done.result.as_ref().ok()?;
        let granted = Granted::deserialize(value).ok()?;
        done.result = Err(Error::new(Code::Cancelled, "the operation was aborted"));
        self.held.remove(&granted.guard)
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
        if let Some(held) = uncollected {
            held.take_back();
        }
    }

    /// Takes all completions.
    pub fn drain(&self) -> Vec<Completion> {
        std::mem::take(&mut self.shared.state.lock().done)
    }

    /// Whether the guard may be relied on at this very moment; false for one that was given back.
    pub fn is_held(&self, guard: u64) -> bool {
        self.shared.state.lock().held.get(&guard).is_some_and(Held::is_held)
    }

    /// How long the guard may still be relied on, in milliseconds; 0 for one that was given back.
    pub fn remaining(&self, guard: u64) -> f64 {
        let remaining = self.shared.state.lock().held.get(&guard).map(Held::remaining);
        remaining.unwrap_or_default().as_secs_f64() * 1000.0
    }

    /// Gives a guard back without waiting: for collectors of forgotten handles.
    pub fn forget(&self, guard: u64) {
        let guard = self.shared.state.lock().held.remove(&guard);
        drop(guard);
    }

    /// Operations under way, completions not drained, guards not given back: all 0 at rest.
    pub fn load(&self) -> (usize, usize, usize) {
        let state = self.shared.state.lock();
        (state.running.len(), state.done.len(), state.held.len())
    }

    /// Opens a scope in which a mutex may be entered again; its number is for [`Form::scope`].
    pub fn open_scope(&self) -> u64 {
        let mut state = self.shared.state.lock();
        state.numbers += 1;
        let number = state.numbers;
        state.scopes.insert(number, self.client.scope());
        number
    }

    /// Nobody enters by this scope any more; what was entered stays held.
    pub fn close_scope(&self, scope: u64) {
        self.shared.state.lock().scopes.remove(&scope);
    }

    fn claims(&self, guard: u64) -> Result<Vec<Claim>> {
        let state = self.shared.state.lock();
        state.held.get(&guard).map(Held::claims).ok_or_else(Error::not_held)
    }

    /// A look at one guard, which is no one of several.
    fn claim(&self, guard: u64) -> Result<Claim> {
        if let Ok([claim]) = <[Claim; 1]>::try_from(self.claims(guard)?) {
            return Ok(claim);
        }
        let message = "several mutexes as one have no modes; take them one by one";
        Err(Error::new(Code::Unsupported, message))
    }

    /// Takes what is behind a number, if it is of this sort.
    fn take<T>(&self, guard: u64, sort: impl FnOnce(Held) -> Result<T, Held>) -> Result<T> {
        let mut state = self.shared.state.lock();
        let held = state.held.remove(&guard).ok_or_else(Error::not_held)?;
        sort(held).map_err(|held| {
            let wrong = held.wrong_sort();
            state.held.insert(guard, held);
            wrong
        })
    }

    fn work(&self, operation: Operation) -> Work {
        use Operation as Op;
        match operation {
            Op::Acquire { name, form, options } => self.acquire(&name, form, options),
            Op::TryAcquire { name, form, options } => self.try_acquire(&name, form, options),
            Op::AcquireAll { names, options } => self.acquire_all(names, options),
            Op::TryAcquireAll { names, options } => self.try_acquire_all(names, options),
            Op::Upgrade { guard } => self.upgrade(guard),
            Op::Downgrade { guard, mode } => self.downgrade(guard, mode),
            Op::Release { guard } => self.release(guard),
            Op::Extend { guard, ttl } => self.extend(guard, ttl),
            Op::Lost { guard } => self.lost(guard),
            Op::Inspect { name, options } => self.inspect(&name, options),
            Op::Names { prefix } => self.names(prefix),
            Op::ReadVersion { name, options } => self.read_version(&name, options),
            Op::CompareAndSet { name, options, expected, value } => {
                self.compare_and_set(&name, options, expected, value)
            }
            Op::DeleteVersion { name, expected } => self.delete_version(&name, expected),
            Op::BackOff { name, options, tries } => self.back_off(&name, options, tries),
            Op::StartJob { name, period, at, options } => {
                self.start_job(&name, period, at, options)
            }
            Op::EndJob { guard, succeeded } => self.end_job(guard, succeeded),
            Op::InspectJob { name, period } => self.inspect_job(&name, period),
            Op::Campaign { name, options } => self.campaign(&name, options),
            Op::TryCampaign { name, options } => self.try_campaign(&name, options),
            Op::Leader { name } => self.leader(&name),
            Op::Observe { name, options, seen } => self.observe(&name, options, seen),
            Op::Close => self.close(),
        }
    }
}

/// Options by name.
type Named = Map<String, Value>;

/// What an operation does.
type Work = BoxFuture<'static, Result<Value>>;

/// Gives the options of an operation to what it is about.
fn with_options<T>(of: T, options: Named, set: impl Fn(T, &str, Value) -> T) -> T {
    options.into_iter().fold(of, |of, (name, value)| set(of, &name, value))
}

impl Shared {
    /// Gives what is held a number.
    fn keep(shared: &Weak<Self>, held: Held) -> Result<Value> {
        let Some(shared) = shared.upgrade() else {
            held.take_back();
            return Err(Error::closed());
        };
        let mut state = shared.state.lock();
        state.numbers += 1;
        let guard = state.numbers;
        let (token, tokens, instant) = (held.token(), held.tokens(), held.instant());
        let granted = Granted { guard, token, tokens, instant };
        state.held.insert(guard, held);
        Ok(json!(granted))
    }

    /// The same for what may not have been granted: null then.
    fn keep_any(shared: &Weak<Self>, held: Option<Held>) -> Result<Value> {
        held.map_or(Ok(Value::Null), |held| Self::keep(shared, held))
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
        if let Some(held) = uncollected {
            held.take_back();
        }
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
    /// Whatever runs is given up, every guard is released, and what nobody has collected is taken back.
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.running.values().for_each(AbortHandle::abort);
        let mut done = std::mem::take(&mut state.done);
        let uncollected: Vec<_> =
            done.iter_mut().filter_map(|done| state.take_grant(done)).collect();
        let held = std::mem::take(&mut state.held);
        drop(state);
        uncollected.into_iter().for_each(Held::take_back);
        drop(held);
    }
}
