//! A client behind numbers: what it holds, and what each operation does.

use std::any::Any;
use std::collections::BTreeMap;
use std::future::ready;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use futures_util::FutureExt;
use futures_util::future::{AbortHandle, AbortRegistration};
use serde::Serialize;
use serde_json::{Map, Value};

use super::held::HeldItem;
use super::operation::{Answer, Granted, Operation};
use super::pump::Pump;
use crate::client::Client;
use crate::error::{Error, Result};
use crate::guard::Claim;
use crate::options::OptionValue;
use crate::port::{BoxFuture, RuntimeHandle};
use crate::released::Released;
use crate::runtime::sync::Mutex;
use crate::scope::Scope;

/// One client, its guards behind numbers.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use fencelock::facade::{Facade, Operation, Pump};
/// use std::sync::Arc;
/// let facade = Facade::new(fencelock::connect("memory:facade").await?);
/// let (wake, mut woken) = tokio::sync::mpsc::unbounded_channel();
/// let pump = Pump::new(Arc::new(move || { let _ = wake.send(()); }));
/// let acquire = Operation::Acquire { name: "orders:42".into(), form: Default::default(), options: Default::default() };
/// let operation = pump.submit(&facade, acquire);
/// woken.recv().await;
/// let done = pump.drain().remove(0);
/// assert_eq!(done.operation, operation);
/// let granted = done.result?.granted().expect("a grant");
/// assert!(facade.is_held(granted.guard));
/// # Ok::<(), fencelock::Error>(()) }).unwrap();
/// ```
pub struct Facade {
    pub(super) client: Client,
    pub(super) runtime: RuntimeHandle,
    pub(super) shared: Arc<Shared>,
}

/// The numbers of operations, guards and locks that a client carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Load {
    /// Operations under way.
    pub running: usize,
    /// Completions that were not drained, of all clients of the pump.
    pub done: usize,
    /// Guards that were not given back.
    pub guards: usize,
    /// Attempts and holds that are looked after.
    pub entries: usize,
    /// Locks that somebody of this client uses or waits for.
    pub locks: usize,
}

/// The state of a facade that its operations under way share.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) state: Mutex<FacadeState>,
}

#[derive(Default)]
pub(super) struct FacadeState {
    /// Numbers cross instead of pointers: a wrong number is an error, a wrong pointer a crash.
    numbers: u64,
    running: BTreeMap<u64, AbortHandle>,
    pub(super) held: BTreeMap<u64, HeldItem>,
    pub(super) scopes: BTreeMap<u64, Scope>,
    /// Connected by the first write.
    #[cfg(feature = "redis")]
    pub(super) gate: Option<Arc<crate::driver::redis::RedisGate>>,
}

impl Facade {
    /// Puts a client behind numbers.
    pub fn new(client: Client) -> Self {
        let runtime = client.engine().runtime.clone();
        Self { client, runtime, shared: Arc::default() }
    }

    /// The client behind it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Does an operation where it is awaited, without a pump: for threads that wait. Dropping it is giving it up:
    /// whatever it won is released.
    pub fn perform(&self, operation: Operation) -> BoxFuture<'static, Result<Answer>> {
        let (work, shared) = (self.begun(operation), Arc::downgrade(&self.shared));
        Box::pin(async move { work.await?.collect(&shared) })
    }

    /// An operation that ends when the facade does, at the latest.
    pub(super) fn begin(&self) -> (u64, AbortHandle, AbortRegistration) {
        let (abort, registration) = AbortHandle::new_pair();
        let mut state = self.shared.state.lock();
        state.numbers += 1;
        let number = state.numbers;
        state.running.insert(number, abort.clone());
        (number, abort, registration)
    }

    /// Whether the guard may be relied on at this very moment; false for one that was given back.
    pub fn is_held(&self, guard: u64) -> bool {
        self.shared.state.lock().held.get(&guard).is_some_and(|held| held.guard().is_held())
    }

    /// How long the guard may still be relied on, in milliseconds; 0 for one that was given back.
    pub fn remaining(&self, guard: u64) -> f64 {
        let remaining =
            self.shared.state.lock().held.get(&guard).map(|held| held.guard().remaining());
        remaining.unwrap_or_default().as_secs_f64() * 1000.0
    }

    /// `Ok` while the guard may be relied on; afterwards the error to raise: `lost`, or `not_held` for one that was given
    /// back.
    pub fn check(&self, guard: u64) -> Result<()> {
        let state = self.shared.state.lock();
        state.held.get(&guard).ok_or_else(Error::not_held)?.guard().check()
    }

    /// Takes a grant back that was drained and then reached nobody, as if it had not been asked for: a guard is given back,
    /// a run is left to others.
    pub fn decline(&self, guard: u64) {
        let held = self.shared.state.lock().held.remove(&guard);
        held.map(HeldItem::take_back).unwrap_or_default();
    }

    /// Gives a guard back without waiting: for collectors of forgotten handles.
    pub fn forget(&self, guard: u64) {
        let guard = self.shared.state.lock().held.remove(&guard);
        drop(guard);
    }

    /// Operations under way and guards not given back: both 0 at rest.
    pub fn unfinished(&self) -> (usize, usize) {
        let state = self.shared.state.lock();
        (state.running.len(), state.held.len())
    }

    /// The load of the client, and of the pump that its operations go through; all 0 at rest.
    pub fn load(&self, pump: Option<&Pump>) -> Load {
        let ((running, guards), stats) = (self.unfinished(), self.client.stats());
        let done = pump.map_or(0, |pump| pump.load().1);
        Load { running, done, guards, entries: stats.entries, locks: stats.locks }
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

    pub(super) fn claim(&self, guard: u64) -> Result<Claim> {
        let state = self.shared.state.lock();
        state.held.get(&guard).map(|held| held.guard().claim()).ok_or_else(Error::not_held)
    }

    /// The work of an operation, begun at once: a guard that is given back is not held from here on. No panic gets out of it:
    /// it becomes an error.
    pub(super) fn begun(&self, operation: Operation) -> Work {
        match catch_unwind(AssertUnwindSafe(|| self.work(operation))) {
            Ok(work) => Box::pin(unpanicking(work)),
            Err(panic) => Box::pin(ready(Err(defect(&*panic)))),
        }
    }

    fn work(&self, operation: Operation) -> Work {
        use Operation as Op;
        match operation {
            Op::Acquire { name, form, options } => self.acquire(&name, form, options),
            Op::TryAcquire { name, form, options, wait } => {
                self.try_acquire(&name, form, options, wait)
            }
            Op::AcquireAll { names, options } => self.acquire_all(names, options),
            Op::TryAcquireAll { names, options, wait } => {
                self.try_acquire_all(names, options, wait)
            }
            Op::Transfer { guard } => self.transfer(guard),
            Op::Adopt { text } => self.adopt(&text),
            Op::Release { guard, succeeded } => self.release(guard, succeeded),
            Op::Extend { guard, ttl } => self.extend(guard, ttl),
            Op::Lost { guard } => self.lost(guard),
            Op::Inspect { name, options } => self.inspect(&name, options),
            Op::IsLocked { name, form, options } => self.is_locked(&name, form, options),
            Op::BreakLock { name, reason, token } => self.break_lock(name, reason, token),
            Op::Gate { resource, token, write } => self.gate(resource, token, write),
            Op::Ping => self.ping(),
            Op::Names { prefix } => self.names(prefix),
            Op::ReadVersion { name, options } => self.read_version(&name, options),
            Op::CompareAndSet { name, options, expected, value } => {
                self.compare_and_set(&name, options, expected, value)
            }
            Op::DeleteVersion { name, options, expected } => {
                self.delete_version(&name, options, expected)
            }
            Op::BackOff { name, options, tries } => self.back_off(&name, options, tries),
            Op::StartJob { name, times, at, options } => self.start_job(&name, &times, at, options),
            Op::InspectJob { name } => self.inspect_job(&name),
            Op::Campaign { name, options } => self.campaign(&name, options),
            Op::TryCampaign { name, options, wait } => self.try_campaign(&name, options, wait),
            Op::Leader { name, options } => self.leader(&name, options),
            Op::Observe { name, options, seen } => self.observe(&name, options, seen),
            Op::Close => self.close(),
        }
    }
}

/// Options by name.
pub(super) type Named = Map<String, Value>;

/// The work of an operation.
pub(super) type Work = BoxFuture<'static, Result<Yield>>;

/// The result of an operation.
pub(super) enum Yield {
    Answer(Answer),
    /// Not yet anybody's: dropped, it is taken back.
    Held(Uncollected),
}

/// A grant on its way to its caller.
pub(super) struct Uncollected(Option<HeldItem>);

impl Drop for Uncollected {
    fn drop(&mut self) {
        if let Some(held) = self.0.take() {
            held.take_back();
        }
    }
}

impl From<HeldItem> for Yield {
    fn from(held: HeldItem) -> Self {
        Self::Held(Uncollected(Some(held)))
    }
}

impl From<Value> for Yield {
    fn from(value: Value) -> Self {
        Self::Answer(Answer::Value(value))
    }
}

impl From<Released> for Yield {
    fn from(released: Released) -> Self {
        Self::Answer(Answer::Released(released))
    }
}

/// A panic is a defect of ours, and an error to the host: it must not take the host down, nor leave anybody waiting.
pub fn defect(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or_default();
    Error::internal(format!("a defect of fencelock, please report it: {text}"))
}

pub(super) async fn unpanicking<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| Err(defect(&*panic)))
}

/// A hold that may not have been granted: null then.
impl From<Option<HeldItem>> for Yield {
    fn from(held: Option<HeldItem>) -> Self {
        held.map_or_else(|| Value::Null.into(), Self::from)
    }
}

impl Yield {
    /// Gives a grant a number in its facade. It is taken back if that is gone.
    pub(super) fn collect(self, facade: &Weak<Shared>) -> Result<Answer> {
        match self {
            Self::Answer(answer) => Ok(answer),
            Self::Held(mut uncollected) => {
                // Lost before its host looked: no body of a job begins under that.
                if let Some(HeldItem::Run(run)) = &uncollected.0 {
                    run.check()?;
                }
                let facade = facade.upgrade().ok_or_else(Error::closed)?;
                let held = uncollected.0.take();
                Ok(held.map_or(Answer::Value(Value::Null), |held| facade.keep(held)))
            }
        }
    }
}

/// Gives the options of an operation to what it is about.
pub(super) fn with_options<T>(of: T, options: Named, set: impl Fn(T, &str, OptionValue) -> T) -> T {
    options.into_iter().fold(of, |of, (name, value)| set(of, &name, OptionValue(value)))
}

impl Shared {
    /// Gives what is held a number.
    fn keep(&self, held: HeldItem) -> Answer {
        let mut state = self.state.lock();
        state.numbers += 1;
        let guard = state.numbers;
        let (token, tokens, instant) = (held.guard().token().get(), held.tokens(), held.instant());
        let name = held.adopted();
        state.held.insert(guard, held);
        Answer::Granted(Granted { guard, token, name, tokens, instant })
    }

    /// An operation came to its end.
    pub(super) fn end(&self, operation: u64) {
        self.state.lock().running.remove(&operation);
    }
}

impl std::fmt::Debug for Facade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Facade")
            .field("client", &self.client)
            .field("load", &self.unfinished())
            .finish_non_exhaustive()
    }
}

impl Drop for Facade {
    /// Gives up all that runs, and releases every guard.
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.running.values().for_each(AbortHandle::abort);
        let held = std::mem::take(&mut state.held);
        drop(state);
        drop(held);
    }
}
