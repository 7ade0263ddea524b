//! Where operations complete: one for every way a host is woken.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::Poll;

use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::Value;

use super::client::{Facade, Shared as Client, Yield, unpanicking};
use super::operation::{Answer, Operation};
use crate::error::{Code, Error, Result};
use crate::port::{BoxFuture, RuntimeHandle};
use crate::runtime::sync::Mutex;

/// So many at most are gathered: the store works on them while the host prepares the next.
/// With 64 the store and the host waited for each other by turns.
const TOGETHER: usize = 16;

/// An operation's end.
#[derive(Clone, Debug)]
pub struct Completion {
    /// The number [`Pump::submit`] gave.
    pub operation: u64,
    /// How it ended.
    pub result: Result<Answer>,
}

/// Called when completions wait to be drained and the last drain left none. It must return at once.
#[cfg(not(target_arch = "wasm32"))]
pub type Wake = Arc<dyn Fn() + Send + Sync>;
/// Called when completions wait to be drained and the last drain left none. It must return at once.
#[cfg(target_arch = "wasm32")]
pub type Wake = Arc<dyn Fn()>;

/// Takes operations on any number of clients, and tells in batches how they ended. Dropped, it gives up what it still has.
///
/// Where a host submits many operations in one turn of its loop, a [gathering](Pump::gathering) pump keeps them until the turn
/// ends, and [sets them off](Pump::set_off) together: the runtime is woken once, and their requests leave in one write.
pub struct Pump {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<PumpState>,
    wake: Wake,
}

#[derive(Default)]
struct PumpState {
    numbers: u64,
    running: BTreeMap<u64, AbortHandle>,
    /// The operations that wait to be set off; `None` where that is done at once.
    gathered: Option<Vec<BoxFuture<'static, ()>>>,
    done: Vec<Done>,
}

/// An end nobody has looked at yet.
struct Done {
    operation: u64,
    result: Result<Yield>,
    client: Weak<Client>,
}

impl Pump {
    /// A pump whose host is woken like this.
    pub fn new(wake: Wake) -> Self {
        Self { shared: Arc::new(Shared { state: Mutex::default(), wake }) }
    }

    /// The same for a host that says when what it has submitted is set off, at the latest.
    pub fn gathering(wake: Wake) -> Self {
        let pump = Self::new(wake);
        pump.shared.state.lock().gathered = Some(Vec::new());
        pump
    }

    /// Sets an operation off and returns its number.
    pub fn submit(&self, facade: &Facade, operation: Operation) -> u64 {
        let (place, abort, registration) = facade.begin();
        let work = Abortable::new(facade.begun(operation), registration);
        let client = Arc::downgrade(&facade.shared);
        let place = OperationSlot { number: place, client: client.clone() };
        let work = Box::pin(async move {
            let result = work.await.unwrap_or_else(|_| Err(aborted()));
            drop(place);
            result
        });
        self.begin(&facade.runtime, abort, client, work)
    }

    /// Sets anything else off, such as connecting, and returns its number.
    pub fn run(&self, runtime: &RuntimeHandle, work: BoxFuture<'static, Result<Value>>) -> u64 {
        let (abort, registration) = AbortHandle::new_pair();
        let work = Abortable::new(unpanicking(work), registration);
        let work =
            Box::pin(async move { work.await.unwrap_or_else(|_| Err(aborted())).map(Yield::from) });
        self.begin(runtime, abort, Weak::new(), work)
    }

    fn begin(
        &self,
        runtime: &RuntimeHandle,
        abort: AbortHandle,
        client: Weak<Client>,
        work: BoxFuture<'static, Result<Yield>>,
    ) -> u64 {
        let mut state = self.shared.state.lock();
        state.numbers += 1;
        let operation = state.numbers;
        state.running.insert(operation, abort);
        let shared = Arc::downgrade(&self.shared);
        let task = Box::pin(async move {
            let result = work.await;
            let done = Done { operation, result, client };
            if !shared.upgrade().is_some_and(|shared| shared.complete(done)) {
                return;
            }
            // Whatever else has ended by now is drained with it.
            give_way().await;
            if let Some(shared) = shared.upgrade() {
                (shared.wake)();
            }
        });
        let Some(gathered) = &mut state.gathered else {
            drop(state);
            runtime.spawn(task);
            return operation;
        };
        gathered.push(task);
        let full = gathered.len() >= TOGETHER;
        drop(state);
        if full {
            self.set_off(runtime);
        }
        operation
    }

    /// Sets off what was gathered, in the order in which it was submitted. It is one task: all have asked before the first
    /// request is written, and those that are answered together go on together.
    pub fn set_off(&self, runtime: &RuntimeHandle) {
        let gathered = self.shared.state.lock().gathered.as_mut().map(std::mem::take);
        let mut turn: FuturesUnordered<_> = gathered.into_iter().flatten().collect();
        if !turn.is_empty() {
            runtime.spawn(Box::pin(async move { while turn.next().await.is_some() {} }));
        }
    }

    /// Gives an operation up: it completes with `cancelled`, and whatever it won is released. One that is complete, drained
    /// or not, is left alone, but for a grant that was not drained: that is released too.
    pub fn abort(&self, operation: u64) {
        let mut state = self.shared.state.lock();
        if let Some(running) = state.running.get(&operation) {
            running.abort();
            return;
        }
        let done = state.done.iter_mut().find(|done| done.operation == operation);
        let uncollected = done.and_then(Done::take_grant);
        drop(state);
        drop(uncollected);
    }

    /// The same for an operation whose end nobody wants to hear of: it is not drained any more.
    pub fn forget(&self, operation: u64) {
        let mut state = self.shared.state.lock();
        let running = state.running.remove(&operation);
        let place = state.done.iter().position(|done| done.operation == operation);
        let done = place.map(|place| state.done.remove(place));
        drop(state);
        if let Some(running) = running {
            running.abort();
        }
        drop(done);
    }

    /// Takes all completions. From here on grants are the caller's to release.
    pub fn drain(&self) -> Vec<Completion> {
        let done = std::mem::take(&mut self.shared.state.lock().done);
        let completion = |Done { operation, result, client }: Done| Completion {
            operation,
            result: result.and_then(|yielded| yielded.collect(&client)),
        };
        done.into_iter().map(completion).collect()
    }

    /// Operations under way and completions not drained: both 0 at rest.
    pub fn load(&self) -> (usize, usize) {
        let state = self.shared.state.lock();
        (state.running.len(), state.done.len())
    }
}

/// Lets go first what is ready to.
async fn give_way() {
    let mut given = false;
    poll_fn(|context| {
        if std::mem::replace(&mut given, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// An operation among those of its client, until it ends or nobody is left to set it off.
struct OperationSlot {
    number: u64,
    client: Weak<Client>,
}

impl Drop for OperationSlot {
    fn drop(&mut self) {
        if let Some(client) = self.client.upgrade() {
            client.end(self.number);
        }
    }
}

fn aborted() -> Error {
    Error::new(Code::Cancelled, "the operation was aborted")
}

impl Done {
    /// Makes a grant a cancellation. What is returned is to be dropped when the state is unlocked.
    fn take_grant(&mut self) -> Option<Result<Yield>> {
        let granted = matches!(self.result, Ok(Yield::Held(_)));
        granted.then(|| std::mem::replace(&mut self.result, Err(aborted())))
    }
}

impl Shared {
    /// Whether the host has to be woken for it.
    fn complete(&self, mut done: Done) -> bool {
        let mut state = self.state.lock();
        let Some(running) = state.running.remove(&done.operation) else {
            // It was forgotten.
            drop(state);
            return false;
        };
        let uncollected = if running.is_aborted() { done.take_grant() } else { None };
        state.done.push(done);
        let first = state.done.len() == 1;
        drop(state);
        drop(uncollected);
        first
    }
}

impl std::fmt::Debug for Pump {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pump").field("load", &self.load()).finish_non_exhaustive()
    }
}

impl Drop for Pump {
    /// Gives up all that runs, and takes back the answers that nobody has collected.
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.running.values().for_each(AbortHandle::abort);
        let left = (std::mem::take(&mut state.done), state.gathered.take());
        drop(state);
        drop(left);
    }
}
