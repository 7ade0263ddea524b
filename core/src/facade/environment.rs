//! One environment of a host that speaks text: its clients, guards and operations behind numbers, told as JSON.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::client::{Facade, with_options};
use super::feed::Feed;
use super::operation::{Answer, Operation};
use super::pump::{Completion, Pump, Wake};
use crate::client::{Client, ClientBuilder};
use crate::error::{Code, Error, Result};
use crate::port::{BoxFuture, RuntimeHandle};
use crate::runtime::sync::Mutex;

/// The environment of a host that is woken by one event loop: one for each loop. All numbers are its own.
///
/// An operation begins when it is [set off](Environment::set_off), at the end of the loop's turn, with all others that the
/// turn has asked for.
///
/// An operation's number is 0 when the environment has ended; then nobody is left who could ask.
///
/// ```
/// # let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
/// use fencelock::{Client, facade::Environment, runtime::TokioRuntime};
/// use std::sync::Arc;
/// let (wake, mut woken) = tokio::sync::mpsc::unbounded_channel();
/// let runtime = Arc::new(TokioRuntime::of(tokio.handle().clone()));
/// let environment = Environment::new(Arc::new(move || { let _ = wake.send(()); }), runtime);
/// let connecting = environment.connect(Client::builder(), r#"{"ttl": "10s"}"#, |builder| {
///     Box::pin(async move { builder.connect("memory:").await })
/// });
/// environment.set_off();
/// tokio.block_on(woken.recv());
/// assert_eq!(environment.drain(), format!("[[{connecting},1]]"));
/// ```
pub struct Environment {
    pump: Mutex<Option<Pump>>,
    clients: Arc<Mutex<Clients>>,
    runtime: RuntimeHandle,
}

#[derive(Default)]
struct Clients {
    numbers: u64,
    connected: BTreeMap<u64, Connected>,
    /// The environment has ended: nobody would ever use or close a client.
    ended: bool,
}

/// A client with its guards, and what happens to its locks.
struct Connected {
    facade: Facade,
    feed: Arc<Feed>,
    /// Whether events that are no warnings are wanted too.
    all: Arc<AtomicBool>,
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.feed.listen(false);
    }
}

/// An operation's number and what it came to.
#[derive(Serialize)]
#[serde(untagged)]
enum End {
    Well(u64, Answer),
    Badly(u64, (), Error),
}

impl Environment {
    /// An environment whose host is woken like this when there is something to [drain](Environment::drain).
    pub fn new(wake: Wake, runtime: RuntimeHandle) -> Self {
        Self { pump: Mutex::new(Some(Pump::gathering(wake))), clients: Arc::default(), runtime }
    }

    /// Begins to connect, with options as JSON. Ends with the client's number.
    pub fn connect(
        &self,
        builder: ClientBuilder,
        options: &str,
        open: impl FnOnce(ClientBuilder) -> BoxFuture<'static, Result<Client>>,
    ) -> u64 {
        let options: Map<String, Value> = match serde_json::from_str(options) {
            Ok(options) => options,
            Err(error) => return self.fail(Error::new(Code::Invalid, error.to_string())),
        };
        let (feed, all) = (Arc::new(Feed::default()), Arc::new(AtomicBool::new(false)));
        feed.listen(true);
        let (events, wanted) = (feed.clone(), all.clone());
        let builder = builder.runtime(self.runtime.clone()).on_event(move |event| {
            if event.kind.is_warning() || wanted.load(Ordering::Acquire) {
                events.push(event);
            }
        });
        let builder = with_options(builder, options, ClientBuilder::option);
        let (opening, clients) = (open(builder), self.clients.clone());
        self.run(Box::pin(async move {
            let facade = Facade::new(opening.await?);
            let mut clients = clients.lock();
            if clients.ended {
                return Err(Error::closed());
            }
            clients.numbers += 1;
            let number = clients.numbers;
            clients.connected.insert(number, Connected { facade, feed, all });
            Ok(json!(number))
        }))
    }

    /// Asks for an operation, told as JSON, and answers its number.
    pub fn submit(&self, client: u64, operation: &str) -> u64 {
        match Operation::read(operation) {
            Ok(operation) => self.perform(client, operation),
            Err(error) => self.fail(error),
        }
    }

    /// The same for one that is at hand.
    pub fn perform(&self, client: u64, operation: Operation) -> u64 {
        let submitted = {
            let pump = self.pump.lock();
            let Some(pump) = &*pump else { return 0 };
            self.with(client, |facade| pump.submit(facade, operation))
        };
        submitted.unwrap_or_else(|| {
            self.fail(Error::new(Code::Closed, "this client was given up; connect again"))
        })
    }

    /// Sets off what was asked for since the last time.
    pub fn set_off(&self) {
        if let Some(pump) = &*self.pump.lock() {
            pump.set_off(&self.runtime);
        }
    }

    /// Begins to wait for events of the client. Ends with a list of them; with an empty one when nobody listens any more.
    pub fn news(&self, client: u64) -> u64 {
        let feed = self.clients.lock().connected.get(&client).map(|client| client.feed.clone());
        self.run(Box::pin(async move {
            match feed {
                Some(feed) => Ok(feed.news().await),
                None => Ok(json!([])),
            }
        }))
    }

    /// Which events of the client are kept for [`Environment::news`]: all, or warnings only, as from its beginning; with `None` no more.
    pub fn listen(&self, client: u64, all: Option<bool>) {
        if let Some(client) = self.clients.lock().connected.get(&client) {
            client.all.store(all == Some(true), Ordering::Release);
            client.feed.listen(all.is_some());
        }
    }

    /// Gives an operation up: whatever it won is given back, and it is drained no more.
    pub fn forget(&self, operation: u64) {
        if let Some(pump) = &*self.pump.lock() {
            pump.forget(operation);
        }
    }

    /// All that has ended, as JSON: `[[number, value], [number, null, error]]`.
    pub fn drain(&self) -> String {
        let done = self.pump.lock().as_ref().map(Pump::drain).unwrap_or_default();
        let end = |Completion { operation, result }| match result {
            Ok(answer) => End::Well(operation, answer),
            Err(error) => End::Badly(operation, (), error),
        };
        let ends: Vec<End> = done.into_iter().map(end).collect();
        serde_json::to_string(&ends).unwrap_or_default()
    }

    /// Does something with a client, if it is there.
    pub fn with<T>(&self, client: u64, act: impl FnOnce(&Facade) -> T) -> Option<T> {
        self.clients.lock().connected.get(&client).map(|client| act(&client.facade))
    }

    /// Why a guard may not be relied on, as an error in JSON; none if it may.
    pub fn check(&self, client: u64, guard: u64) -> Option<String> {
        let checked = self.with(client, |facade| facade.check(guard));
        // Of a client that is gone nothing can be relied on.
        let checked = checked.unwrap_or_else(|| Err(Error::closed()));
        checked.err().map(|error| json!(error).to_string())
    }

    /// The data of a client as JSON, known without asking the store: `guarantees`, `options` by name, and what it carries
    /// (`load`).
    pub fn about(&self, client: u64) -> String {
        let pump = self.pump.lock();
        let about = self.with(client, |facade| {
            let client = facade.client();
            let (guarantees, options) = (client.guarantees(), client.options().to_map());
            let load = facade.load(pump.as_ref());
            json!({ "guarantees": guarantees, "options": options, "load": load })
        });
        about.unwrap_or_default().to_string()
    }

    /// Gives a client up without waiting, with all it holds and does.
    pub fn remove(&self, client: u64) {
        let connected = self.clients.lock().connected.remove(&client);
        drop(connected);
    }

    /// The environment ends: gives all operations up. Its clients are the caller's to close, or to drop.
    pub fn end(&self) -> Vec<Client> {
        let pump = self.pump.lock().take();
        drop(pump);
        let mut clients = self.clients.lock();
        clients.ended = true;
        let connected = std::mem::take(&mut clients.connected);
        drop(clients);
        connected.into_values().map(|client| client.facade.client().clone()).collect()
    }

    fn run(&self, work: BoxFuture<'static, Result<Value>>) -> u64 {
        self.pump.lock().as_ref().map_or(0, |pump| pump.run(&self.runtime, work))
    }

    fn fail(&self, error: Error) -> u64 {
        self.run(Box::pin(ready(Err(error))))
    }
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let clients = self.clients.lock().connected.len();
        f.debug_struct("Environment").field("clients", &clients).finish_non_exhaustive()
    }
}
