//! The one connection of a client: made, watched, made again.

mod acks;
mod handshake;
pub(super) mod wire;

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use event_listener::Event;
use futures_util::future::{Either, select};
use redis::RedisError;
use redis::aio::MultiplexedConnection;

use self::acks::AckConnection;
use self::wire::AbortOnDrop;
use super::address::{Address, Topology};
use super::fault;
use super::replies::notice;
use super::scripts::Sent;
use crate::driver::within::{on_task, within};
use crate::error::{Error, Result};
use crate::options::Options;
use crate::port::backoff::Backoff;
use crate::port::{Action, Instant, Notice, NoticeSink, RuntimeHandle, Step};
use crate::runtime::sync::Mutex;

/// A connection on which nothing came for so long is asked whether it is still there before a Take: what stands between may have dropped it
/// without a word, and a Take without an answer has an unknown outcome.
const FRESH: Duration = Duration::from_secs(5);
/// It has so long to answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// The longest pause between two attempts to connect where another server takes over.
const FAILOVER_PAUSE: Duration = Duration::from_millis(200);

/// A connection that is kept up for as long as the store is open.
pub(super) struct Link {
    pub(super) address: Address,
    pub(super) channel: String,
    /// How many replicas have to acknowledge a grant before it counts.
    pub(super) acks: u32,
    pub(super) timeout: Duration,
    connect_timeout: Duration,
    pub(super) runtime: RuntimeHandle,
    sink: OnceLock<NoticeSink>,
    state: Mutex<LinkState>,
    /// When the server answered last.
    last_answer: Mutex<Instant>,
    /// An attempt to connect has ended, or the store was closed.
    changed: Event,
    /// A step wants the connection now.
    wanted: Event,
    /// Whether a server has said that it is not the master: from then on none is believed that is not.
    demoted: AtomicBool,
    /// The warning that the server's settings break a guarantee, if they do.
    pub(super) warning: Mutex<Option<&'static str>>,
}

enum LinkState {
    Up(Arc<Live>),
    /// How many attempts have failed since it broke, and why the last one did. A task is at it.
    Down(u64, Error),
    Closed,
}

/// A connection that worked when last seen.
#[derive(Clone)]
pub(super) struct Live {
    pub(super) connection: MultiplexedConnection,
    /// Scripts that the server knows by a call over it.
    pub(super) sent: Arc<Sent>,
    /// Where replicas have to acknowledge: the way of what they have to.
    pub(super) ack_connection: Option<Arc<AckConnection>>,
    broken: Arc<AtomicBool>,
    subscribed: Arc<AtomicBool>,
    /// The tasks that serve the connection and end with it.
    tasks: Arc<Mutex<Vec<AbortOnDrop>>>,
}

impl Live {
    /// Ends what serves it, and with that what is under way on it: nobody waits for a server that was left.
    fn let_go(&self) {
        let tasks = std::mem::take(&mut *self.tasks.lock());
        drop(tasks);
    }
}

impl Link {
    /// Connects, or says why not.
    pub(super) async fn connect(
        address: Address,
        options: &Options,
        channel: String,
        runtime: RuntimeHandle,
    ) -> Result<Arc<Self>> {
        let link = Self::down(address, options, channel, runtime, None);
        // On a task of its own, because the crate spawns its driver where it is called.
        let task = Arc::clone(&link);
        let live = on_task(&link.runtime, async move { task.attempt().await }).await??;
        *link.state.lock() = LinkState::Up(live);
        Ok(link)
    }

    /// Connects as soon as that can be, and delivers notices to `sink`.
    pub(super) fn begin(
        address: Address,
        options: &Options,
        channel: String,
        runtime: RuntimeHandle,
        sink: Option<NoticeSink>,
    ) -> Arc<Self> {
        let link = Self::down(address, options, channel, runtime, sink);
        let task = Arc::clone(&link);
        link.runtime.spawn(Box::pin(async move { task.reconnect().await }));
        link
    }

    fn down(
        address: Address,
        options: &Options,
        channel: String,
        runtime: RuntimeHandle,
        sink: Option<NoticeSink>,
    ) -> Arc<Self> {
        // What is said if the first connection is made and breaks before anybody has used it.
        let unmet = fault::absent(&address, "not yet connected");
        Arc::new(Self {
            address,
            channel,
            acks: options.acks,
            timeout: options.timeout,
            connect_timeout: options.connect_timeout,
            runtime,
            sink: sink.map_or_else(OnceLock::new, OnceLock::from),
            state: Mutex::new(LinkState::Down(0, unmet)),
            last_answer: Mutex::default(),
            changed: Event::new(),
            wanted: Event::new(),
            demoted: AtomicBool::new(false),
            warning: Mutex::default(),
        })
    }

    /// Whether it worked when last seen.
    pub(super) fn is_up(&self) -> bool {
        matches!(&*self.state.lock(), LinkState::Up(_))
    }

    /// Delivers notices from now on.
    pub(super) async fn listen(self: &Arc<Self>, sink: NoticeSink) -> Result<()> {
        self.sink.set(sink).map_err(|_| Error::internal("a store is listened to once"))?;
        if !self.is_up() {
            // A new connection subscribes by itself, but an attempt that began before the sink was set does not.
            let link = Arc::clone(self);
            self.runtime.spawn(Box::pin(async move {
                if let Ok(live) = link.live().await {
                    let _ = link.subscribe(&live).await;
                }
            }));
            return Ok(());
        }
        let live = self.live().await?;
        let late = || Err(fault::unanswered(&self.address, "the subscription timed out"));
        within(&self.runtime, self.timeout, self.subscribe(&live)).await.unwrap_or_else(late)
    }

    /// The connection. If it is broken, waits for the next attempt to make it again.
    pub(super) async fn live(&self) -> Result<Arc<Live>> {
        let mut seen = None;
        loop {
            let changed = match &*self.state.lock() {
                LinkState::Up(live) => return Ok(Arc::clone(live)),
                LinkState::Closed => return Err(Error::closed()),
                LinkState::Down(attempts, error) => {
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

    /// The connection for these steps. One that lay idle is asked first if a lock is to be taken.
    pub(super) async fn live_for<'a>(
        self: &Arc<Self>,
        steps: impl IntoIterator<Item = &'a Step>,
    ) -> Result<Arc<Live>> {
        let takes = steps.into_iter().any(|step| matches!(step.action, Action::Take(_)));
        let live = self.live().await?;
        if !takes || self.runtime.now().since(*self.last_answer.lock()) < FRESH {
            return Ok(live);
        }
        // One of the commands that every user may use.
        let (mut connection, look) = (live.connection.clone(), redis::cmd("TIME"));
        match within(&self.runtime, PATIENCE, connection.send_packed_command(&look)).await {
            Some(Ok(_)) => *self.last_answer.lock() = self.runtime.now(),
            Some(Err(_)) | None => self.broke(&live.broken),
        }
        self.live().await
    }

    /// Waits for an answer no longer than the client's timeout. An answer that stays out breaks the connection: what
    /// hangs for one step hangs for all.
    pub(super) async fn answer<T>(
        self: &Arc<Self>,
        live: &Arc<Live>,
        request: impl Future<Output = Result<T, RedisError>>,
    ) -> Result<T> {
        let error = match within(&self.runtime, self.timeout, request).await {
            Some(Ok(answer)) => {
                *self.last_answer.lock() = self.runtime.now();
                return Ok(answer);
            }
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
        if let LinkState::Up(live) = std::mem::replace(&mut *self.state.lock(), LinkState::Closed) {
            live.let_go();
        }
        self.changed.notify(usize::MAX);
        self.wanted.notify(usize::MAX);
    }

    /// A message has come. Where replicas have to acknowledge, a grant is but an invitation to ask.
    fn tell(&self, message: &[u8]) {
        let (Some(notice), Some(sink)) = (notice(message), self.sink.get()) else { return };
        sink(match notice {
            Notice::Granted { owner, .. } if self.acks > 0 => Notice::Open { owner },
            notice => notice,
        });
    }

    /// The server says that it is not the master: looks for the one that is.
    pub(super) fn demote(self: &Arc<Self>, live: &Live) {
        self.demoted.store(true, Ordering::Release);
        self.broke(&live.broken);
    }

    /// Takes note that this connection is broken, once, and sees to the next one.
    fn broke(self: &Arc<Self>, broken: &Arc<AtomicBool>) {
        broken.store(true, Ordering::Release);
        let mut state = self.state.lock();
        if let LinkState::Up(live) = &*state
            && Arc::ptr_eq(&live.broken, broken)
        {
            live.let_go();
            *state = LinkState::Down(0, fault::unanswered(&self.address, "the connection broke"));
            let link = Arc::clone(self);
            self.runtime.spawn(Box::pin(async move { link.reconnect().await }));
        }
    }

    /// Tries until it is connected or the store is closed.
    async fn reconnect(self: Arc<Self>) {
        let mut backoff = Backoff::new();
        loop {
            let earliest = self.runtime.now() + Backoff::FIRST;
            let attempt = self.attempt().await;
            let wanted = self.wanted.listen();
            match self.settle(attempt) {
                None => {}
                Some(()) => return,
            }
            let pause = self.pause(&mut backoff);
            let end = self
                .runtime
                .sleep_until(self.runtime.now() + Backoff::spread(pause, &self.runtime));
            // A step that wants the connection shortens the pause, but never to a busy loop.
            if let Either::Right(_) = select(end, wanted).await {
                self.runtime.sleep_until(earliest).await;
            }
        }
    }

    /// A failover ends when it ends, and nobody tells: whoever waits for one looks more often.
    fn pause(&self, backoff: &mut Backoff) -> Duration {
        match self.address.topology {
            Topology::Sentinel { .. } => backoff.next_up_to(FAILOVER_PAUSE),
            _ => backoff.next(),
        }
    }

    /// Takes note of an attempt's end; `None` if another one is due.
    fn settle(&self, attempt: Result<Arc<Live>>) -> Option<()> {
        let mut state = self.state.lock();
        let up = match (&mut *state, attempt) {
            (LinkState::Down(..), Ok(live)) if !live.broken.load(Ordering::Acquire) => {
                *state = LinkState::Up(live);
                self.demoted.store(false, Ordering::Release);
                true
            }
            (LinkState::Down(attempts, error), attempt) => {
                *attempts += 1;
                if let Err(reason) = attempt {
                    *error = reason;
                }
                false
            }
            (LinkState::Up(_) | LinkState::Closed, _) => return Some(()),
        };
        drop(state);
        self.changed.notify(usize::MAX);
        if let Some(sink) = self.sink.get().filter(|_| up) {
            // Notices may have been lost while it was down: everybody who waits asks again.
            sink(Notice::Gap);
        }
        up.then_some(())
    }
}
