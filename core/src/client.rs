//! A client: one store, its locks, and the tasks that keep them alive.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::Engine;
use crate::error::{Code, Error, Result};
use crate::event::{Event, Events, Observer};
use crate::fence::Token;
use crate::guard::{Guard, Pending};
use crate::identity::Identity;
use crate::lock::{Lock, layout_of};
use crate::options::{Dialect, OptionScope, OptionValue, Options, check_key, check_name};
use crate::port::{
    Capabilities, HolderView, LeaseHandle, LeaseStore, LockKey, Mode, RuntimeHandle,
};
#[cfg(any(feature = "tokio", feature = "host"))]
use crate::url::StoreUrl;

/// Connects to the store a URL names, on the tokio runtime this is called in.
///
/// `memory:` (this process), `sqlite:locks.db` (this machine), `redis://host:6379`. Options stand in the query:
/// `redis://host?ttl=10s&fair=false`.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use std::time::Duration;
/// let client = fencelock::connect("memory:").await?;
/// let guard = client.lock("orders:42").ttl(Duration::from_secs(30)).acquire_within(Duration::from_secs(5)).await?;
/// println!("charging with fencing token {}", guard.token());
/// guard.release().await.check()?;
/// # Ok::<(), fencelock::Error>(()) }).unwrap();
/// ```
#[cfg(feature = "tokio")]
pub async fn connect(url: &str) -> Result<Client> {
    Client::builder().connect(url).await
}

/// Connects a gate for resources on a Redis server, on the tokio runtime this is called in; see
/// [`RedisGate`](crate::driver::redis::RedisGate). Of the URL's options `timeout` and `connect_timeout` count, and those of TLS.
#[cfg(feature = "redis")]
pub async fn connect_gate(url: &str) -> Result<crate::driver::redis::RedisGate> {
    let url = StoreUrl::parse(url)?;
    let mut options = Options::default();
    options.set_all(url.options(), OptionScope::Client)?;
    url.open_gate(&options, current_runtime()?).await
}

#[cfg(feature = "tokio")]
fn current_runtime() -> Result<RuntimeHandle> {
    let runtime = crate::runtime::TokioRuntime::current();
    runtime.map(|runtime| Arc::new(runtime) as RuntimeHandle).ok_or_else(|| {
        Error::invalid(
            "runtime",
            "there is no tokio runtime here; use fencelock::blocking, or give the builder one",
        )
    })
}

#[cfg(not(feature = "tokio"))]
fn current_runtime() -> Result<RuntimeHandle> {
    Err(Error::invalid("runtime", "give the builder a runtime"))
}

/// How long [`Client::close`] waits for the store to confirm what was given up.
/// A hold that is not confirmed as freed by then ends with its lease.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// The pause before a store that could not be reached is tried again.
#[cfg(any(feature = "tokio", feature = "host"))]
const CONNECT_AGAIN: Duration = Duration::from_millis(500);

/// A connection to one store. Cheap to clone; all clones share connection, waiters and renewals.
///
/// When the last clone and the last guard are gone, whatever was given up is still freed in the background;
/// [`Client::close`] waits for that.
#[derive(Clone)]
pub struct Client {
    engine: Arc<Engine>,
    options: Arc<Options>,
    identity: Arc<Identity>,
    /// Where it was connected to, if by a URL.
    #[cfg(feature = "redis")]
    url: Option<Arc<StoreUrl>>,
}

impl Client {
    /// A client with more than a URL to say.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// A lock by name: 1 to 512 bytes of UTF-8 without control characters, not beginning with `fencelock:`. The same name is the
    /// same lock in every language.
    pub fn lock(&self, name: &str) -> Lock {
        Lock::new(self.clone(), name)
    }

    /// The reading side of a read-write lock: any number of readers, and no writer beside them. A writer that waits is
    /// not passed by new readers.
    pub fn read_lock(&self, name: &str) -> Lock {
        self.lock(name).mode(Mode::Read)
    }

    /// The writing side of a read-write lock: nobody beside it.
    pub fn write_lock(&self, name: &str) -> Lock {
        self.lock(name).mode(Mode::Write)
    }

    /// A semaphore: at most `limit` holders at once. Every acquire takes one permit, or as many as [`Lock::permits`] says. Those of
    /// a holder that died come back when its lease has ended. Clients may ask with different limits, each is served by its own.
    pub fn semaphore(&self, name: &str, limit: u32) -> Lock {
        self.lock(name).of_permits(limit)
    }

    /// The names of the locks the store knows, in order, as [`Client::lock`] takes them. An empty prefix: all.
    pub async fn names(&self, prefix: &str) -> Result<Vec<String>> {
        if !prefix.is_empty() {
            check_name(prefix)?;
        }
        let (dialect, prefix_of_all) = (&self.options.dialect, &self.options.prefix);
        let before = match dialect {
            Dialect::Plain { prefix } => &*format!("{prefix}{prefix_of_all}"),
            _ => &**prefix_of_all,
        };
        let layout = layout_of(dialect);
        self.engine.check_open()?;
        let keys = self.engine.store.names(&format!("{before}{prefix}")).await?;
        let keys = keys.iter().filter(|key| key.layout() == layout);
        // Some are our own, those of jobs.
        let keys = keys.filter(|key| check_key(key.as_str()).is_ok());
        let names = keys.filter_map(|key: &LockKey| key.as_str().strip_prefix(before));
        Ok(names.filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    /// The guard of a hold that another process has let go of by [`Guard::transfer`], with its token and its options.
    ///
    /// Fails with `not_held` if the text was used before, is too old or of another store, with `invalid` if it is no such text.
    pub fn adopt(&self, text: &str) -> Pending<Guard> {
        let (client, text) = (self.clone(), text.to_owned());
        Pending::new(async move {
            let (engine, prefix) = (client.engine(), &*client.options.prefix);
            let local = engine.adopt(&text).await?;
            let name = local.hold.lock.name();
            let name = name.strip_prefix(prefix).unwrap_or(name).into();
            Ok(Guard::new(engine.clone(), name, local))
        })
    }

    /// Ends every hold of a lock, a read-write lock or a semaphore that other clients or this one have; for holders that hang. Answers
    /// the holds that it ended. The next waiter is granted, with a greater token. A holder finds the loss with its next renewal, after
    /// a third of its lease at the latest, so for that long two may believe that they hold: the fence refuses the older one.
    /// `reason` goes into the event and the log of this client.
    ///
    /// Fails with `not_held` if nobody holds it, with `unsupported` if another library or a session of a database server does; the
    /// error then says what to do, and nothing has changed. Runs of jobs and versions are not broken by it.
    pub async fn break_lock(&self, name: &str, reason: &str) -> Result<Vec<HolderView>> {
        self.lock(name).break_holds(None, reason).await
    }

    /// As [`Client::break_lock`], but ends only the holds with this token: one permit of a semaphore, for instance.
    pub async fn break_hold(
        &self,
        name: &str,
        token: Token,
        reason: &str,
    ) -> Result<Vec<HolderView>> {
        self.lock(name).break_holds(Some(token), reason).await
    }

    /// A gate on the Redis server of this client, over a connection of its own: writes of keys that a newer token has written are
    /// refused; see [`RedisGate`](crate::driver::redis::RedisGate). The lock of a token may lie on any store.
    ///
    /// Fails with `unsupported` in a cluster, on a quorum, on other stores, and on a store made by hand.
    #[cfg(feature = "redis")]
    pub async fn gate(&self) -> Result<crate::driver::redis::RedisGate> {
        self.engine.check_open()?;
        let url = self.url.as_ref().ok_or_else(|| {
            let message = "a gate needs the URL of a Redis server, and this client was made without one; use `connect_gate`";
            Error::new(Code::Unsupported, message)
        })?;
        url.open_gate(&self.options, self.engine.runtime.clone()).await
    }

    /// Asks the store for nothing and answers how long that took, for health checks. Fails as any request does, within `timeout`.
    pub async fn ping(&self) -> Result<Duration> {
        let began = self.engine.runtime.now();
        match self.lock("ping").is_locked().await {
            // Where rows of the program's own are locks this may be no key of theirs; the server has answered.
            Err(error) if error.code() != Code::Invalid => Err(error),
            _ => Ok(self.engine.runtime.now().since(began)),
        }
    }

    /// The abilities of this store and the failures that this configuration survives, in words.
    pub fn guarantees(&self) -> Capabilities {
        let store = &self.engine.store;
        Capabilities { warning: store.warning(), ..store.capabilities() }
    }

    /// The defaults of this client's locks.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Refuses new acquires, gives up those under way, frees what is held (guards that still live are lost from now on),
    /// waits (at most two seconds) until the store has confirmed all that, and disconnects.
    pub async fn close(&self) {
        self.engine.close(CLOSE_PATIENCE).await;
    }

    /// Whether [`Client::close`] was called.
    pub fn is_closed(&self) -> bool {
        self.engine.check_open().is_err()
    }

    /// The load of this client: all 0 at rest.
    pub fn stats(&self) -> Stats {
        let (entries, locks) = self.engine.load();
        Stats { entries, locks }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub(crate) fn info(&self, said: &str) -> Arc<str> {
        self.identity.info(said)
    }
}

/// The load of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Attempts, tickets and holds.
    pub entries: usize,
    /// The locks that they are of.
    pub locks: usize,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("store", &self.engine.store.capabilities().store)
            .finish_non_exhaustive()
    }
}

/// Makes a [`Client`].
#[derive(Default)]
pub struct ClientBuilder {
    runtime: Option<RuntimeHandle>,
    options: Options,
    /// The options set by hand, in order.
    given: Vec<(String, OptionValue)>,
    app: Option<String>,
    language: Option<String>,
    /// Host and process, where the core cannot find them out itself.
    place: Option<(String, u32)>,
    observer: Option<Observer>,
    mistake: Option<Error>,
}

impl ClientBuilder {
    /// The platform to run on; the tokio runtime of the caller by default.
    pub fn runtime(mut self, runtime: RuntimeHandle) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Sets an option by its name in the [table](crate::options::TABLE), as a default of this client's locks.
    pub fn option(mut self, name: &str, value: impl Into<OptionValue>) -> Self {
        let value = value.into();
        if let Err(mistake) = self.options.set_all([(name, value.clone())], OptionScope::Client) {
            self.mistake.get_or_insert(mistake);
        }
        self.given.push((name.to_owned(), value));
        self
    }

    /// Sets the application that people who inspect a lock see; the program's file name by default.
    pub fn app(mut self, app: impl Into<String>) -> Self {
        self.app = Some(app.into());
        self
    }

    /// Sets the language that people who inspect a lock see; `rust` by default. For bindings.
    #[doc(hidden)]
    pub fn language(mut self, language: impl Into<String>) -> Self {
        self.language = Some(language.into());
        self
    }

    /// Sets the host and the process that people who inspect a lock see; by default the system's. For bindings to hosts that
    /// have another way to know.
    #[doc(hidden)]
    pub fn place(mut self, host: impl Into<String>, pid: u32) -> Self {
        self.place = Some((host.into(), pid));
        self
    }

    /// Calls `observer` with every [`Event`], where it happens: it must return at once. One that blocks a thread of the runtime holds
    /// up the task that this thread runs next, which may be an acquire.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn on_event(mut self, observer: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Calls `observer` with every [`Event`], where it happens: it must return at once.
    #[cfg(target_arch = "wasm32")]
    pub fn on_event(mut self, observer: impl Fn(&Event) + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Refuses a URL or an option that [`ClientBuilder::connect`] would refuse whatever the store says.
    ///
    /// ```
    /// let mistake = fencelock::Client::builder().option("tll", 5).check("memory:").unwrap_err();
    /// assert_eq!(mistake.fields()["nearest"], "ttl");
    /// ```
    #[cfg(any(feature = "tokio", feature = "host"))]
    pub fn check(self, url: &str) -> Result<()> {
        self.checked(url).map(drop)
    }

    /// As [`ClientBuilder::check`]; answers the options that the client would have. For bindings that connect at the first use.
    #[cfg(any(feature = "tokio", feature = "host"))]
    #[doc(hidden)]
    pub fn checked(mut self, url: &str) -> Result<Options> {
        let url = StoreUrl::parse(url)?;
        self.read(&url)?;
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        self.options.check()?;
        url.check(&self.options)?;
        Ok(self.options)
    }

    /// Takes the options of a URL in.
    #[cfg(any(feature = "tokio", feature = "host"))]
    fn read(&mut self, url: &StoreUrl) -> Result<()> {
        // What the program says outweighs what the URL says.
        self.options.set_all(url.options(), OptionScope::Client)?;
        let given = self.given.iter().map(|(name, value)| (name.as_str(), value.clone()));
        if self.mistake.is_none() {
            self.options.set_all(given, OptionScope::Client)?;
        }
        Ok(())
    }

    /// Connects to the store a URL names.
    ///
    /// Fails with `unavailable` if the store cannot be reached within `connect_timeout`.
    #[cfg(any(feature = "tokio", feature = "host"))]
    pub async fn connect(self, url: &str) -> Result<Client> {
        self.connect_to(url, Duration::ZERO).await
    }

    /// As [`ClientBuilder::connect`], but a store that cannot be reached is tried again every half second, until `wait` has passed: for
    /// programs that start together with their database. The first try that fails is a `trouble` event. A `wait` of zero is one try.
    #[cfg(any(feature = "tokio", feature = "host"))]
    pub async fn connect_within(self, url: &str, wait: Duration) -> Result<Client> {
        self.connect_to(url, wait).await
    }

    #[cfg(any(feature = "tokio", feature = "host"))]
    async fn connect_to(mut self, url: &str, wait: Duration) -> Result<Client> {
        let url = StoreUrl::parse(url)?;
        self.read(&url)?;
        let (runtime, events) = self.surroundings()?;
        let engine = start_within(&url, &self.options, &runtime, &events, wait).await?;
        // Only now: who tries to connect until it works is warned once.
        if let Some(warning) = url.warning() {
            events.warn(Event::trouble("", &Error::new(Code::Unsupported, warning)));
        }
        let client = self.client_of(engine);
        #[cfg(feature = "redis")]
        let client = Client { url: Some(Arc::new(url)), ..client };
        Ok(client)
    }

    /// Connects to a Redis server through the host program's own Redis client.
    #[cfg(feature = "host")]
    pub async fn host(mut self, transport: impl crate::driver::redis::Transport) -> Result<Client> {
        let (runtime, events) = self.surroundings()?;
        let store =
            crate::driver::redis::HostStore::connect(transport, &self.options, runtime.clone());
        let store = LeaseHandle::new(store.await?);
        let engine = start(store, runtime, events).await?;
        Ok(self.client_of(engine))
    }

    /// Connects to a store made by hand.
    pub async fn store(mut self, store: impl LeaseStore) -> Result<Client> {
        let (runtime, events) = self.surroundings()?;
        let engine = start(LeaseHandle::new(store), runtime, events).await?;
        Ok(self.client_of(engine))
    }

    /// The platform and the way of the events, if nothing that was asked for is a mistake.
    fn surroundings(&mut self) -> Result<(RuntimeHandle, Events)> {
        if let Some(mistake) = self.mistake.take() {
            return Err(mistake);
        }
        self.options.check()?;
        let runtime = self.runtime.take().map_or_else(current_runtime, Ok)?;
        let events = Events::new(self.observer.take(), runtime.clone());
        Ok((runtime, events))
    }

    fn client_of(self, engine: Arc<Engine>) -> Client {
        let identity = Identity::of(self.app, self.language, self.place);
        let (options, identity) = (Arc::new(self.options), Arc::new(identity));
        Client {
            engine,
            options,
            identity,
            #[cfg(feature = "redis")]
            url: None,
        }
    }
}

/// An engine on a store. Once it runs, an event says what the store does not promise as it is configured.
async fn start(store: LeaseHandle, runtime: RuntimeHandle, events: Events) -> Result<Arc<Engine>> {
    let warning = store.warning();
    let engine = Engine::start(store, runtime, events.clone()).await?;
    if let Some(warning) = warning {
        events.warn(Event::trouble("", &Error::new(Code::Unsupported, warning)));
    }
    Ok(engine)
}

/// An engine on the store of a URL. One that cannot be reached is tried again until `wait` has passed.
#[cfg(any(feature = "tokio", feature = "host"))]
async fn start_within(
    url: &StoreUrl,
    options: &Options,
    runtime: &RuntimeHandle,
    events: &Events,
    wait: Duration,
) -> Result<Arc<Engine>> {
    let end = runtime.now() + wait;
    let mut refusal = None;
    loop {
        // Boxed: the futures of all stores are in it, 16 KiB in every caller.
        let starting = Box::pin(async {
            let store = url.open(options, runtime.clone()).await?;
            start(store, runtime.clone(), events.clone()).await
        });
        let started = match wait {
            Duration::ZERO => Some(starting.await),
            _ => runtime.until(end, starting).await,
        };
        let error = match started {
            Some(Err(error)) => error,
            Some(Ok(engine)) => return Ok(engine),
            None => return Err(refusal.unwrap_or_else(silent)),
        };
        let again = runtime.now() + CONNECT_AGAIN;
        if !error.retryable() || again >= end {
            return Err(error);
        }
        if refusal.is_none() {
            let reason = Some(format!("{error}; still trying").into());
            events.warn(Event { reason, ..Event::trouble("", &error) });
        }
        refusal = Some(error);
        runtime.sleep_until(again).await;
    }
}

#[cfg(any(feature = "tokio", feature = "host"))]
fn silent() -> Error {
    let message =
        "the store could not be reached within the wait; is it running, and is the address right?";
    Error::new(Code::Unavailable, message)
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("options", &self.options).finish_non_exhaustive()
    }
}
