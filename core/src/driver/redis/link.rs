//! The one connection of a client: made, watched, made again.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use event_listener::Event;
use futures_util::future::{Either, select};
use redis::aio::{MultiplexedConnection, SendError};
use redis::{AsyncConnectionConfig, PushInfo, PushKind, RedisError, Value};

use super::address::Address;
use super::fault;
use super::notice;
use super::script::{Hashes, Texts};
use crate::error::{Error, Result};
use crate::options::Options;
use crate::port::{Notice, NoticeSink, RuntimeHandle};
use crate::runtime::sync::Mutex;

/// The first pause between two attempts to connect; it doubles up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LAST_PAUSE: Duration = Duration::from_secs(1);
/// Requests on their way to the socket before the next one has to wait for its turn.
const OUTBOX: usize = 512;

/// A connection that is kept up for as long as the store is open.
pub(super) struct Link {
    pub(super) address: Address,
    pub(super) channel: String,
    timeout: Duration,
    connect_timeout: Duration,
    runtime: RuntimeHandle,
    sink: OnceLock<NoticeSink>,
    state: Mutex<State>,
    /// An attempt to connect has ended, or the store was closed.
    changed: Event,
    /// A step wants the connection now.
    wanted: Event,
}

enum State {
    Up(Arc<Live>),
    /// How many attempts have failed since it broke, and why the last one did. A task is at it.
    Down(u64, Error),
    Closed,
}

/// A connection that worked when last seen.
pub(super) struct Live {
    pub(super) connection: MultiplexedConnection,
    pub(super) hashes: Hashes,
    broken: Arc<AtomicBool>,
}

impl Link {
    /// Connects, or says why not.
    pub(super) async fn connect(
        address: Address,
        options: &Options,
        channel: String,
        runtime: RuntimeHandle,
    ) -> Result<Arc<Self>> {
        let link = Arc::new(Self {
            address,
            channel,
            timeout: options.timeout,
            connect_timeout: options.connect_timeout,
            runtime,
            sink: OnceLock::new(),
            state: Mutex::new(State::Down(0, Error::internal("not yet connected"))),
            changed: Event::new(),
            wanted: Event::new(),
        });
        // On a task of its own, because the crate spawns its driver where it is called.
        let (sender, receiver) = futures_channel::oneshot::channel();
        let task = Arc::clone(&link);
        link.runtime.spawn(Box::pin(async move {
            // Nobody left to hear it is fine: the connection is then dropped.
            let _ = sender.send(task.attempt().await);
        }));
        let live = receiver.await.map_err(|_| Error::internal("the runtime dropped a task"))??;
        *link.state.lock() = State::Up(live);
        Ok(link)
    }

    /// Delivers notices from now on.
    pub(super) async fn listen(&self, sink: NoticeSink) -> Result<()> {
        let live = self.live().await?;
        self.sink.set(sink).map_err(|_| Error::internal("a store is listened to once"))?;
        let mut connection = live.connection.clone();
        match self.within(self.timeout, connection.subscribe(&self.channel)).await {
            Some(subscribed) => {
                subscribed.map_err(|error| fault::unreachable(&self.address, &error))
            }
            None => Err(fault::unanswered(&self.address, "the subscription timed out")),
        }
    }

    /// The connection. If it is broken, waits for the next attempt to make it again.
    pub(super) async fn live(&self) -> Result<Arc<Live>> {
        let mut seen = None;
        loop {
            let changed = match &*self.state.lock() {
                State::Up(live) => return Ok(Arc::clone(live)),
                State::Closed => return Err(Error::closed()),
                State::Down(attempts, error) => {
                    if seen.is_some_and(|seen| seen != *attempts) {
                        return Err(error.clone());
                    }
                    seen = Some(*attempts);
                    self.changed.listen()
                }
            };
            self.wanted.notify(1);
            changed.await;
        }
    }

    /// Waits for an answer no longer than the client's timeout. An answer that stays out breaks the connection: what
    /// hangs for one step hangs for all.
    pub(super) async fn answer<T>(
        self: &Arc<Self>,
        live: &Arc<Live>,
        request: impl Future<Output = Result<T, RedisError>>,
    ) -> Result<T> {
        let error = match self.within(self.timeout, request).await {
            Some(Ok(answer)) => return Ok(answer),
            Some(Err(error)) => fault::unanswered(&self.address, &error.to_string()),
            None => {
                let limit = humantime::format_duration(self.timeout);
                fault::unanswered(&self.address, &format!("no answer within {limit}"))
            }
        };
        self.broke(&live.broken);
        Err(error)
    }

    /// Lets go of the connection for good.
    pub(super) fn close(&self) {
        *self.state.lock() = State::Closed;
        self.changed.notify(usize::MAX);
        self.wanted.notify(usize::MAX);
    }

    async fn within<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        let end = self.runtime.sleep_until(self.runtime.now() + limit);
        match select(pin!(work), end).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(_) => None,
        }
    }

    /// Connects once: greets, loads the scripts, subscribes.
    async fn attempt(self: &Arc<Self>) -> Result<Arc<Live>> {
        let broken = Arc::new(AtomicBool::new(false));
        let (link, flag) = (Arc::downgrade(self), Arc::clone(&broken));
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None)
            .set_pipeline_buffer_size(OUTBOX)
            .set_push_sender(move |push| {
                receive(&link, &flag, &push);
                Ok::<_, SendError>(())
            });
        let work = async {
            let client = redis::Client::open(self.address.info())?;
            let mut connection =
                client.get_multiplexed_async_connection_with_config(&config).await?;
            let hashes = Texts::shared().load(&mut connection).await?;
            if self.sink.get().is_some() {
                connection.subscribe(&self.channel).await?;
            }
            Ok::<_, RedisError>(Arc::new(Live { connection, hashes, broken }))
        };
        let late = || Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into());
        let live = self.within(self.connect_timeout, work).await.unwrap_or_else(late);
        live.map_err(|error| fault::unreachable(&self.address, &error))
    }

    /// Takes note that this connection is broken, once, and sees to the next one.
    fn broke(self: &Arc<Self>, broken: &Arc<AtomicBool>) {
        broken.store(true, Ordering::Release);
        let mut state = self.state.lock();
        if let State::Up(live) = &*state
            && Arc::ptr_eq(&live.broken, broken)
        {
            *state = State::Down(0, fault::unanswered(&self.address, "the connection broke"));
            let link = Arc::clone(self);
            self.runtime.spawn(Box::pin(async move { link.reconnect().await }));
        }
    }

    /// Tries until it is connected or the store is closed.
    async fn reconnect(self: Arc<Self>) {
        let mut pause = FIRST_PAUSE;
        loop {
            let earliest = self.runtime.now() + FIRST_PAUSE;
            let attempt = self.attempt().await;
            let wanted = self.wanted.listen();
            match self.settle(attempt) {
                None => {}
                Some(()) => return,
            }
            let end = self.runtime.sleep_until(self.runtime.now() + pause);
            // A step that wants the connection shortens the pause, but never to a busy loop.
            if let Either::Right(_) = select(end, wanted).await {
                self.runtime.sleep_until(earliest).await;
            }
            pause = LAST_PAUSE.min(pause * 2);
        }
    }

    /// Takes note of an attempt's end; `None` if another one is due.
    fn settle(&self, attempt: Result<Arc<Live>>) -> Option<()> {
        let mut state = self.state.lock();
        let up = match (&mut *state, attempt) {
            (State::Down(..), Ok(live)) if !live.broken.load(Ordering::Acquire) => {
                *state = State::Up(live);
                true
            }
            (State::Down(attempts, error), attempt) => {
                *attempts += 1;
                if let Err(reason) = attempt {
                    *error = reason;
                }
                false
            }
            (State::Up(_) | State::Closed, _) => return Some(()),
        };
        drop(state);
        self.changed.notify(usize::MAX);
        if let Some(sink) = self.sink.get().filter(|_| up) {
            sink(Notice::Gap);
        }
        up.then_some(())
    }
}

/// Scripts whose clock stands still, for tests of what takes seconds.
#[cfg(feature = "sim")]
impl Link {
    pub(super) async fn load(self: &Arc<Self>, texts: &Texts) -> Result<()> {
        let live = self.live().await?;
        let mut connection = live.connection.clone();
        let hashes = self.answer(&live, texts.load(&mut connection)).await?;
        let (connection, broken) = (live.connection.clone(), Arc::clone(&live.broken));
        *self.state.lock() = State::Up(Arc::new(Live { connection, hashes, broken }));
        Ok(())
    }
}

/// What the server tells without being asked, on the connection's own task.
fn receive(link: &Weak<Link>, broken: &Arc<AtomicBool>, push: &PushInfo) {
    let Some(link) = link.upgrade() else { return };
    match push.kind {
        PushKind::Disconnection => link.broke(broken),
        PushKind::Message => {
            if let [_, Value::BulkString(message)] = &push.data[..]
                && let (Some(notice), Some(sink)) = (notice::parse(message), link.sink.get())
            {
                sink(notice);
            }
        }
        _ => {}
    }
}
