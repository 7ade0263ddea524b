//! One client of a store, connected at its first use.

use std::sync::Arc;
use std::time::Duration;

use fencelock::facade::{Burden, Facade, Operation};
use fencelock::runtime::TokioRuntime;
use fencelock::{Client, ClientBuilder, Code, Error, Result};
use futures_util::future::join_all;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::feed::{Feed, Teller};
use crate::process::{self, Own, block};
use crate::pump::Pump;
use crate::{Ended, ended};

/// A client and where it connects to. It belongs to the process that made it; in the child of a fork it is inert.
#[pyclass(frozen, module = "fencelock._native")]
pub(crate) struct Connection(Own<Arc<Link>>);

/// What operations under way share.
struct Link {
    url: String,
    options: Map<String, Value>,
    /// What people who inspect see as the application.
    app: String,
    facade: OnceCell<Facade>,
    /// Who tells of its events, if somebody listens.
    teller: Option<Arc<Teller>>,
}

impl Link {
    /// The client, connected now if it was not. Whoever fails leaves it to the next.
    async fn facade(&self, runtime: Handle) -> Result<&Facade> {
        let connect = || async {
            let runtime = Arc::new(TokioRuntime::of(runtime));
            let builder = builder(self.options.clone()).runtime(runtime).app(&*self.app);
            let builder = match self.teller.clone() {
                Some(teller) => builder.on_event(move |event| teller.tell(event)),
                None => builder,
            };
            Ok(Facade::new(builder.connect(&self.url).await?))
        };
        self.facade.get_or_try_init(connect).await
    }
}

fn builder(options: Map<String, Value>) -> ClientBuilder {
    let builder = Client::builder().language("python");
    options.into_iter().fold(builder, |made, (name, value)| made.option(&name, value))
}

/// Whether a URL and options are acceptable; nothing is connected.
#[pyfunction]
pub(crate) fn check(url: &str, options: &str) -> Ended {
    let options = serde_json::from_str(options).unwrap_or_default();
    ended(builder(options).check(url).map(|()| Value::Null))
}

/// Closes all clients there are at once, and waits so many seconds at most.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "a list crosses by value")]
pub(crate) fn close_all(
    py: Python<'_>,
    connections: Vec<PyRef<'_, Connection>>,
    seconds: f64,
) -> PyResult<Vec<Ended>> {
    let Ok(runtime) = process::runtime() else { return Ok(Vec::new()) };
    let most = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let facades = connections.iter().filter_map(|connection| connection.facade().ok());
    let closes = facades.map(|facade| async move {
        timeout(most, facade.perform(Operation::Close)).await.unwrap_or(Ok(Value::Null))
    });
    let closed = block(py, &runtime, join_all(closes.collect::<Vec<_>>()))?;
    Ok(closed.into_iter().map(ended).collect())
}

impl Connection {
    /// Does something at once, if there is a client here.
    fn now<T: Default>(&self, act: impl FnOnce(&Facade) -> T) -> T {
        let facade = self.0.get().ok().and_then(|link| link.facade.get());
        facade.map(act).unwrap_or_default()
    }

    /// The client, which was connected before.
    fn facade(&self) -> Result<&Facade> {
        self.0
            .get()?
            .facade
            .get()
            .ok_or_else(|| Error::new(Code::Closed, "this client is not connected; open it first"))
    }

    /// Waits for an operation.
    fn wait(&self, py: Python<'_>, operation: Result<Operation>) -> PyResult<Ended> {
        let begin = || Ok((process::runtime()?, self.facade()?.perform(operation?)));
        match begin() {
            Ok((runtime, work)) => Ok(ended(block(py, &runtime, work)?)),
            Err(error) => Ok(ended(Err(error))),
        }
    }
}

#[pymethods]
impl Connection {
    #[new]
    fn new(url: String, options: &str, app: String, observed: bool) -> Self {
        let options = serde_json::from_str(options).unwrap_or_default();
        let teller = observed.then(Arc::default);
        Self(Own::new(Arc::new(Link { url, options, app, facade: OnceCell::new(), teller })))
    }

    /// What is told to whoever observes the client: for the first who asks, once.
    fn feed(&self) -> Option<Feed> {
        self.0.get().ok().and_then(|link| link.teller.as_ref()).and_then(|teller| teller.feed())
    }

    /// Whether this process made it.
    fn is_here(&self) -> bool {
        self.0.is_here()
    }

    /// Whether there is a client.
    fn is_open(&self) -> bool {
        self.now(|_| true)
    }

    /// Connects, and waits for that.
    fn open(&self, py: Python<'_>) -> PyResult<Ended> {
        match self.link_and_runtime() {
            Ok((link, runtime)) => {
                let connecting = runtime.clone();
                let work = async move { link.facade(connecting).await.map(|_| Value::Null) };
                Ok(ended(block(py, &runtime, work)?))
            }
            Err(error) => Ok(ended(Err(error))),
        }
    }

    /// Does an operation and waits for its end.
    fn perform(&self, py: Python<'_>, text: &str) -> PyResult<Ended> {
        self.wait(py, Operation::read(text))
    }

    /// Gives a guard back and waits for the answer.
    fn release(&self, py: Python<'_>, guard: u64) -> PyResult<Ended> {
        self.wait(py, Ok(Operation::Release { guard }))
    }

    /// Sets an operation off in an event loop's pump, and answers its number; the error if it cannot be.
    fn submit(&self, pump: &Pump, text: &str) -> (Option<u64>, String) {
        numbered(Operation::read(text).and_then(|operation| self.set_off(pump, operation)))
    }

    /// The same for giving a guard back.
    fn submit_release(&self, pump: &Pump, guard: u64) -> (Option<u64>, String) {
        numbered(self.set_off(pump, Operation::Release { guard }))
    }

    /// The same for connecting.
    fn submit_open(&self, pump: &Pump) -> (Option<u64>, String) {
        let submit = || {
            let (link, runtime) = self.link_and_runtime()?;
            let platform = Arc::new(TokioRuntime::of(runtime.clone()));
            let work = async move { link.facade(runtime).await.map(|_| Value::Null) };
            Ok(pump.pump()?.run(&(platform as _), Box::pin(work)))
        };
        numbered(submit())
    }

    /// Whether the guard may be relied on at this very moment.
    fn is_held(&self, guard: u64) -> bool {
        self.now(|facade| facade.is_held(guard))
    }

    /// For how many seconds the guard may still be relied on.
    fn remaining(&self, guard: u64) -> f64 {
        self.now(|facade| facade.remaining(guard)) / 1000.0
    }

    /// Gives a guard back without waiting.
    fn forget(&self, guard: u64) {
        self.now(|facade| facade.forget(guard));
    }

    /// Takes a grant back that reached nobody, as if it had not been asked for.
    fn decline(&self, guard: u64) {
        self.now(|facade| facade.decline(guard));
    }

    /// Opens a scope and answers its number; the client has to be open.
    fn open_scope(&self) -> u64 {
        self.now(Facade::open_scope)
    }

    /// Closes a scope.
    fn close_scope(&self, scope: u64) {
        self.now(|facade| facade.close_scope(scope));
    }

    /// What the store is able to do, as JSON; the client has to be open.
    fn guarantees(&self) -> String {
        self.now(|facade| json!(facade.client().guarantees()).to_string())
    }

    /// Operations under way and guards; the client's attempts and locks. All 0 at rest.
    fn load(&self) -> [usize; 4] {
        self.now(|facade| {
            let Burden { running, guards, entries, locks, .. } = facade.burden(None);
            [running, guards, entries, locks]
        })
    }
}

impl Connection {
    fn set_off(&self, pump: &Pump, operation: Operation) -> Result<u64> {
        Ok(pump.pump()?.submit(self.facade()?, operation))
    }

    fn link_and_runtime(&self) -> Result<(Arc<Link>, Handle)> {
        Ok((self.0.get()?.clone(), process::runtime()?))
    }
}

/// The number of an operation, or its error as JSON.
fn numbered(submitted: Result<u64>) -> (Option<u64>, String) {
    match submitted {
        Ok(number) => (Some(number), String::new()),
        Err(error) => (None, json!(error).to_string()),
    }
}
