//! The parts that a process has once: the runtime, the pump, and the clients by their numbers.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use fencelock::facade::{self, Completion, Facade, Operation, Pump};
use fencelock::options::OptionValue;
use fencelock::port::RuntimeHandle;
use fencelock::runtime::TokioRuntime;
use fencelock::{Client, Event};
use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::wakeup::Wakeup;
use crate::{end, parcel};

static HUB: LazyLock<Hub> = LazyLock::new(Hub::start);

/// The process's.
pub(crate) fn hub() -> &'static Hub {
    &HUB
}

/// See the module.
pub(crate) struct Hub {
    runtime: Runtime,
    handle: RuntimeHandle,
    pump: Pump,
    wakeup: Arc<Wakeup>,
    clients: Mutex<Clients>,
    events: Mutex<Vec<Value>>,
    /// News that did not arrive.
    kept: Mutex<Vec<u8>>,
    /// Whether the JVM has begun to end.
    leaving: AtomicBool,
}

#[derive(Default)]
struct Clients {
    numbers: u64,
    open: BTreeMap<u64, Arc<Facade>>,
}

/// The parameters that a client is made from.
#[derive(Deserialize)]
pub(crate) struct Connection {
    url: String,
    options: BTreeMap<String, OptionValue>,
    app: String,
    language: String,
    /// Whether events that are no warnings are wanted too.
    events: bool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    fn start() -> Self {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.thread_name("fencelock").enable_all().build();
        let runtime = runtime.expect("the system lets a process start threads");
        let handle = Arc::new(TokioRuntime::of(runtime.handle().clone()));
        let wakeup = Arc::new(Wakeup::default());
        let waking = wakeup.clone();
        let pump = Pump::new(Arc::new(move || waking.wake()));
        let (clients, events, kept) = (Mutex::default(), Mutex::default(), Mutex::default());
        end::await_end();
        let leaving = AtomicBool::new(false);
        Self { runtime, handle, pump, wakeup, clients, events, kept, leaving }
    }

    /// Completes with the client's number.
    pub(crate) fn connect(&'static self, connection: Connection) -> u64 {
        let Connection { url, options, app, language, events } = connection;
        let number = {
            let mut clients = locked(&self.clients);
            clients.numbers += 1;
            clients.numbers
        };
        let builder = Client::builder().runtime(self.handle.clone()).app(app).language(language);
        let builder =
            options.into_iter().fold(builder, |made, (name, value)| made.option(&name, value));
        let builder = builder.on_event(move |event| {
            if events || event.kind.is_warning() {
                self.tell(number, event);
            }
        });
        let connecting = async move {
            let facade = Facade::new(builder.connect(&url).await?);
            locked(&self.clients).open.insert(number, Arc::new(facade));
            Ok(json!(number))
        };
        self.pump.run(&self.handle, Box::pin(connecting))
    }

    fn tell(&self, client: u64, event: &Event) {
        locked(&self.events).push(json!({ "client": client, "event": facade::for_host(event) }));
        self.wakeup.wake();
    }

    /// The client with this number; the Java side drops none that it still uses.
    pub(crate) fn client(&self, number: u64) -> Arc<Facade> {
        let client = locked(&self.clients).open.get(&number).cloned();
        client.unwrap_or_else(|| panic!("there is no client {number}"))
    }

    /// The client with this number, unless it was dropped: for collectors, who come in any order.
    pub(crate) fn any_client(&self, number: u64) -> Option<Arc<Facade>> {
        locked(&self.clients).open.get(&number).cloned()
    }

    /// Sets an operation off.
    pub(crate) fn submit(&self, client: u64, operation: &Value) -> u64 {
        let facade = self.client(client);
        match Operation::of(operation) {
            Ok(operation) => self.pump.submit(&facade, operation),
            Err(error) => self.pump.run(&self.handle, Box::pin(ready(Err(error)))),
        }
    }

    pub(crate) fn abort(&self, operation: u64) {
        self.pump.abort(operation);
    }

    /// Waits for news, and answers them: how operations ended, each behind its number, and events behind the number 0.
    pub(crate) fn drain(&self) -> Vec<u8> {
        self.wakeup.wait();
        // Events that came before an end are told before it.
        let (done, events) = (self.pump.drain(), std::mem::take(&mut *locked(&self.events)));
        let mut news = std::mem::take(&mut *locked(&self.kept));
        for event in events {
            news.extend(0_u64.to_be_bytes());
            news.push(1);
            parcel::write(&mut news, &event);
        }
        for Completion { operation, result } in done {
            news.extend(operation.to_be_bytes());
            news.push(u8::from(result.is_ok()));
            parcel::write(
                &mut news,
                &result.map_or_else(|error| json!(error), |answer| json!(answer)),
            );
        }
        news
    }

    /// Has news told again.
    pub(crate) fn keep(&self, news: Vec<u8>) {
        *locked(&self.kept) = news;
        self.wakeup.wake();
    }

    /// The numbers of operations, guards and locks that a client carries, and the completions in the pump of all clients.
    pub(crate) fn load(&self, client: u64) -> Value {
        json!(self.client(client).load(Some(&self.pump)))
    }

    /// Forgets a client, with all it has.
    pub(crate) fn drop(&self, client: u64) {
        let client = locked(&self.clients).open.remove(&client);
        drop(client);
    }

    /// The JVM has begun to end: its hooks run, and others work on meanwhile. Nobody waits long in [`Hub::drain`] from now on:
    /// a JVM that exits gives threads in natives 300 ms to come out.
    pub(crate) fn leave(&self) {
        self.leaving.store(true, Ordering::SeqCst);
        self.wakeup.hurry();
    }

    /// Gives everything back before the process ends, as far as the time reaches; nothing if the JVM was halted before it had
    /// begun to end.
    pub(crate) fn part(&self, patience: Duration) {
        if !self.leaving.load(Ordering::SeqCst) {
            return;
        }
        let clients: Vec<Client> =
            locked(&self.clients).open.values().map(|facade| facade.client().clone()).collect();
        let (closed, all) = mpsc::channel();
        self.runtime.spawn(async move {
            join_all(clients.iter().map(Client::close)).await;
            // Nobody listens any more if it took too long.
            let _ = closed.send(());
        });
        // What was not confirmed in time is left to its lease.
        let _ = all.recv_timeout(patience);
    }
}
