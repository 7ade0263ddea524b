//! One client of a store, connected at its first use.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fencelock::facade::{Answer, Facade, Load, Operation};
use fencelock::options::OptionValue;
use fencelock::runtime::TokioRuntime;
use fencelock::{Client, ClientBuilder, Code, Error, Result};
use futures_util::future::join_all;
use pyo3::prelude::*;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::feed::{Feed, Teller};
use crate::process::{self, Own};
use crate::pump::Pump;
use crate::{Outcome, caught, tried};

/// How much longer than itself a wait lasts behind somebody who connects.
const MARGIN: Duration = Duration::from_millis(20);

/// A client and where it connects to. It belongs to the process that made it; in the child of a fork it is inert.
#[pyclass(frozen, weakref, module = "fencelock._native")]
pub(crate) struct Connection(Own<Arc<Link>>);

/// The data that operations under way and grants share.
pub(crate) struct Link {
    url: String,
    options: BTreeMap<String, OptionValue>,
    /// The application that people who inspect a lock see.
    app: String,
    /// Connected at its first use: a module may make a client at import, before a server forks its workers.
    facade: OnceCell<Facade>,
    /// The way of its events.
    teller: Arc<Teller>,
}

impl Link {
    /// The client, connected now if it was not. A store that cannot be reached is tried again until `wait` has passed; zero is one try.
    /// Whoever fails leaves it to the next.
    async fn facade(&self, runtime: Handle, wait: Duration) -> Result<&Facade> {
        let is_mine = AtomicBool::new(false);
        let connect = || async {
            is_mine.store(true, Ordering::Relaxed);
            let runtime = Arc::new(TokioRuntime::of(runtime));
            let builder = builder(self.options.clone()).runtime(runtime).app(&*self.app);
            let teller = self.teller.clone();
            let builder = builder.on_event(move |event| teller.tell(event));
            Ok(Facade::new(builder.connect_within(&self.url, wait).await?))
        };
        let limit = match wait {
            Duration::ZERO => builder(self.options.clone()).checked(&self.url)?.connect_timeout,
            _ => wait,
        };
        let mut connected = pin!(self.facade.get_or_try_init(connect));
        // Somebody who waits longer may be connecting, or many one behind another; one's own connect says more about its end.
        if let Ok(connected) = timeout(limit + MARGIN, &mut connected).await {
            return connected;
        }
        if wait.is_zero() && is_mine.load(Ordering::Relaxed) {
            return connected.await;
        }
        let message =
            "the client is not connected yet; is the store running, and is the address right?";
        Err(Error::new(Code::Unavailable, message))
    }

    /// The client, which was connected before.
    pub(crate) fn connected(&self) -> Result<&Facade> {
        self.facade
            .get()
            .ok_or_else(|| Error::new(Code::Closed, "this client is not connected; open it first"))
    }
}

fn builder(options: BTreeMap<String, OptionValue>) -> ClientBuilder {
    let builder = Client::builder().language("python");
    options.into_iter().fold(builder, |made, (name, value)| made.option(&name, value))
}

/// Refuses a URL and options that are not acceptable; nothing is connected. Answers how many milliseconds locks are waited for by default.
#[pyfunction]
pub(crate) fn check(url: &str, options: &str) -> PyResult<Option<u64>> {
    let options = serde_json::from_str(options).unwrap_or_default();
    let wait = tried(|| builder(options).checked(url))?.wait;
    Ok(wait.map(|wait| wait.as_millis().try_into().unwrap_or(u64::MAX)))
}

/// Closes all clients there are at once, and waits so many seconds at most. Raises what the first met that could not be closed.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "a list crosses by value")]
pub(crate) fn close_all(
    py: Python<'_>,
    connections: Vec<PyRef<'_, Connection>>,
    seconds: f64,
) -> PyResult<()> {
    let most = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let facades = connections.iter().filter_map(|connection| connection.facade().ok());
    let closes: Vec<_> = facades.map(|facade| facade.perform(Operation::Close)).collect();
    let closed = async move {
        let soon = closes.into_iter().map(|close| timeout(most, close));
        let mut ended = join_all(soon).await.into_iter().flatten();
        ended.try_for_each(|ended| ended.map(drop)).map(|()| Value::Null)
    };
    caught(|| process::run(py, Box::pin(closed))).flatten().map(drop)
}

/// Something to ask for, read once.
#[pyclass(frozen, module = "fencelock._native")]
pub(crate) struct Request(Operation);

#[pymethods]
impl Request {
    /// From JSON text.
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        tried(|| Operation::read(text).map(Self))
    }
}

impl Connection {
    /// Does something at once, if there is a client here.
    fn now<T: Default>(&self, act: impl FnOnce(&Facade) -> T) -> T {
        let facade = self.0.get().ok().and_then(|link| link.facade.get());
        facade.map(act).unwrap_or_default()
    }

    /// The client, which was connected before.
    fn facade(&self) -> Result<&Facade> {
        self.0.get()?.connected()
    }

    fn link_and_runtime(&self) -> Result<(Arc<Link>, Handle)> {
        Ok((self.0.get()?.clone(), process::runtime()?))
    }
}

#[pymethods]
impl Connection {
    #[new]
    fn new(url: String, options: &str, app: String) -> Self {
        let options = serde_json::from_str(options).unwrap_or_default();
        let teller = Arc::default();
        Self(Own::new(Arc::new(Link { url, options, app, facade: OnceCell::new(), teller })))
    }

    /// The client's events, or its warnings only: for the first who asks, once.
    fn feed(&self, all: bool) -> Option<Feed> {
        self.0.get().ok().and_then(|link| link.teller.feed(all))
    }

    /// Whether this process made it.
    fn is_here(&self) -> bool {
        self.0.is_here()
    }

    /// Whether there is a client here.
    fn is_open(&self) -> bool {
        self.now(|_| true)
    }

    /// Connects within so many milliseconds, or `connect_timeout` if that is none, and waits for that.
    fn open(&self, py: Python<'_>, wait: u64) -> PyResult<()> {
        let (link, runtime) = tried(|| self.link_and_runtime())?;
        let wait = Duration::from_millis(wait);
        let work = async move { link.facade(runtime, wait).await.map(|_| Value::Null) };
        caught(|| process::run(py, Box::pin(work))).flatten().map(drop)
    }

    /// Does an operation and waits for its end.
    fn perform(&self, py: Python<'_>, request: &Request) -> PyResult<Outcome> {
        let (link, operation) = (tried(|| self.0.get())?, request.0.clone());
        let link = operation.grants().then_some(link);
        let perform = || process::perform(py, tried(|| self.facade())?, operation);
        Ok(Outcome::of(caught(perform).flatten()?, link))
    }

    /// Sets an operation off in an event loop's pump, and answers its number.
    fn submit(&self, pump: &Pump, request: &Request) -> PyResult<u64> {
        tried(|| pump.submit(self.0.get()?, request.0.clone()))
    }

    /// The same for connecting.
    fn submit_open(&self, pump: &Pump, wait: u64) -> PyResult<u64> {
        tried(|| {
            let (link, runtime) = self.link_and_runtime()?;
            let platform = Arc::new(TokioRuntime::of(runtime.clone()));
            let wait = Duration::from_millis(wait);
            let work = async move { link.facade(runtime, wait).await.map(|_| Value::Null) };
            pump.run(&(platform as _), Box::pin(work))
        })
    }

    /// Closes the client, if there is one, and waits for nothing.
    fn abandon(&self) -> PyResult<()> {
        let close = || {
            if let (Ok(facade), Ok(runtime)) = (self.facade(), process::runtime()) {
                runtime.spawn(facade.perform(Operation::Close));
            }
        };
        caught(close)
    }

    /// Opens a scope; the client has to be open.
    fn open_scope(&self) -> PyResult<Scope> {
        tried(|| {
            let link = self.0.get()?;
            let number = link.connected()?.open_scope();
            Ok(Scope { link: Own::new(link.clone()), number })
        })
    }

    /// The abilities of the store; the client has to be open.
    fn guarantees(&self) -> PyResult<Outcome> {
        let guarantees = caught(|| self.now(|facade| json!(facade.client().guarantees())))?;
        Ok(Outcome::Answer(Answer::Value(guarantees)))
    }

    /// Operations under way and guards; the client's attempts and locks. All 0 at rest.
    fn load(&self) -> PyResult<[usize; 4]> {
        caught(|| {
            self.now(|facade| {
                let Load { running, guards, entries, locks, .. } = facade.load(None);
                [running, guards, entries, locks]
            })
        })
    }
}

/// A scope in which locks are entered again. Nobody enters by it any more when it is dropped; in the child of a fork it is
/// inert.
#[pyclass(frozen, module = "fencelock._native")]
pub(crate) struct Scope {
    link: Own<Arc<Link>>,
    /// The number by which operations name it.
    #[pyo3(get)]
    number: u64,
}

impl Drop for Scope {
    fn drop(&mut self) {
        let facade = self.link.get().and_then(|link| link.connected());
        facade.map(|facade| facade.close_scope(self.number)).unwrap_or_default();
    }
}
