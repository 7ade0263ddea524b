//! The store over a client of the host's, for where the core has no sockets of its own, as in WebAssembly.
//!
//! All words are text, one server (or what acts as one) stands behind it, and the host sees to its connection.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use redis::{Arg, Cmd, Value};

use super::cell::CellCall;
use super::fault::{self, Named};
use super::guarantees;
use super::keys::{self, DIALECTS};
use super::replies::{self, Replies, notice};
use super::scripts::{self, CELL, Script, Sent};
use super::steps::{Request, fail};
use crate::driver::within::within;
use crate::error::{Code, Error, Result};
use crate::options::Options;
use crate::port::{
    Answer, BoxFuture, Capabilities, CellKey, CellStore, Cells, Change, Failure, Fence, LeaseStore,
    LockKey, Look, MaybeSend, MaybeSync, Notice, NoticeSink, Outcome, OwnerId, RuntimeHandle, Step,
    Swap, limits,
};
use crate::runtime::sync::Mutex;

/// How often those who wait look for themselves, where the host gets no messages.
const LOOK: Duration = Duration::from_millis(250);

/// An event of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Published {
    /// A message on the channel.
    Message(String),
    /// Messages may have been missed: the connection was made anew.
    Gap,
}

/// Receives the events of a subscription. It returns at once.
#[cfg(not(target_arch = "wasm32"))]
pub type Subscriber = Arc<dyn Fn(Published) + Send + Sync>;
/// Receives the events of a subscription. It returns at once.
#[cfg(target_arch = "wasm32")]
pub type Subscriber = Arc<dyn Fn(Published)>;

/// The answer of a server to one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing is there.
    Nil,
    /// A whole number.
    Int(i64),
    /// A text, whatever Redis calls it.
    Text(String),
    /// Several.
    List(Vec<Reply>),
    /// The server's own words for what it did not do, its code first: `WRONGTYPE Operation against a key`.
    Error(String),
}

/// A client of the host's that speaks to one Redis server, or to what acts as one.
pub trait Transport: MaybeSend + MaybeSync + 'static {
    /// The server as errors name it, without credentials.
    fn name(&self) -> String;

    /// Sends commands, which the server carries out in this order, each by itself; one reply for each. What comes instead of
    /// replies is why nothing is known of what the server did. Nothing is ever sent twice.
    fn send(&self, commands: Vec<Vec<String>>) -> BoxFuture<'static, Result<Vec<Reply>, String>>;

    /// Listens to a channel from now on, until it is closed; `false` if it cannot.
    fn subscribe(
        &self,
        channel: &str,
        subscriber: Subscriber,
    ) -> BoxFuture<'static, Result<bool, String>>;

    /// Ends the subscription. The client is its owner's to close.
    fn close(&self);
}

/// One client's view of a Redis server, through the host program's own Redis client.
pub struct HostStore(Arc<Shared>);

struct Shared {
    server: Server,
    transport: Box<dyn Transport>,
    warning: Option<&'static str>,
    channel: String,
    timeout: Duration,
    connect_timeout: Duration,
    runtime: RuntimeHandle,
    sink: OnceLock<NoticeSink>,
    looks: Mutex<Looks>,
    sent: Sent,
}

/// Waiters without notices.
#[derive(Default)]
struct Looks {
    unnotified: bool,
    under_way: bool,
    /// Somebody was seen waiting since the last look.
    wanted: u32,
    closed: bool,
}

struct Server(String);

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Named for Server {
    fn scrub(&self, text: &str) -> String {
        // The credentials are the host's, and never came here.
        text.to_owned()
    }
}

impl fmt::Debug for HostStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostStore").field("server", &self.0.server.0).finish_non_exhaustive()
    }
}

impl HostStore {
    /// Makes the scripts of a mutex known to the server. Of the options for connections `timeout` and `connect_timeout` count, the
    /// others are refused.
    pub async fn connect(
        transport: impl Transport,
        options: &Options,
        runtime: RuntimeHandle,
    ) -> Result<Self> {
        let texts = [&options.cacert, &options.cert, &options.key];
        if options.acks > 0 || texts.iter().any(|text| !text.is_empty()) {
            let message = "`acks`, `cacert`, `cert` and `key` are about connections of fencelock's own; here the host connects";
            return Err(Error::new(Code::Unsupported, message));
        }
        let channel = format!("fencelock:c:{}", OwnerId::draw(&*runtime));
        let mut shared = Shared {
            server: Server(transport.name()),
            transport: Box::new(transport),
            warning: None,
            channel,
            timeout: options.timeout,
            connect_timeout: options.connect_timeout,
            runtime,
            sink: OnceLock::new(),
            looks: Mutex::default(),
            sent: Sent::loaded(),
        };
        let commands = scripts::load().into_iter().chain([guarantees::memory()]).collect();
        let replies = shared.exchange(commands, options.connect_timeout).await;
        let mut replies = replies.map_err(|reason| fault::absent(&shared.server, &reason))?;
        shared.warning = replies.pop().and_then(guarantees::eviction_warning);
        for reply in replies {
            reply.extract_error().map_err(|error| fault::unreachable(&shared.server, &error))?;
        }
        Ok(Self(Arc::new(shared)))
    }
}

impl Shared {
    /// Waits no longer than so long.
    async fn within<T>(
        &self,
        limit: Duration,
        work: BoxFuture<'_, Result<T, String>>,
    ) -> Result<T, String> {
        let late = || Err(format!("no answer within {}", humantime::format_duration(limit)));
        within(&self.runtime, limit, work).await.unwrap_or_else(late)
    }

    async fn exchange(&self, commands: Vec<Cmd>, limit: Duration) -> Result<Vec<Value>, String> {
        let count = commands.len();
        let commands = commands.iter().map(words).collect();
        let replies = self.within(limit, self.transport.send(commands)).await?;
        if replies.len() == count {
            Ok(replies.into_iter().map(value).collect())
        } else {
            Err(format!("{} replies to {count} commands", replies.len()))
        }
    }

    /// Nothing goes out any more once it is closed.
    async fn send(&self, commands: Vec<Cmd>) -> Result<Vec<Value>, Failure> {
        if self.looks.lock().closed {
            return Err(Failure::refused(Error::closed()));
        }
        self.exchange(commands, self.timeout)
            .await
            .map_err(|reason| Failure::unknown(fault::unanswered(&self.server, &reason)))
    }

    async fn call(
        &self,
        scripts: &[Script],
        command: impl Fn(usize, &str, &str) -> Cmd,
    ) -> Result<Replies, Failure> {
        let send = |commands| async { Ok((self.send(commands).await?, None)) };
        replies::call(scripts, &self.sent, command, send).await
    }

    /// One command that changes nothing.
    async fn look(&self, command: Cmd) -> Result<Value> {
        let reply = self.send(vec![command]).await.map_err(|failure| failure.error)?.pop();
        let reply = reply.unwrap_or_default().extract_error();
        reply.map_err(|error| fault::unreachable(&self.server, &error))
    }

    async fn carry_out(self: &Arc<Self>, batch: &[Step], plan: &[Request<'_>]) -> Vec<Answer> {
        let scripts: Vec<_> = plan.iter().map(|request| request.script).collect();
        let command =
            |at: usize, verb: &str, script: &str| plan[at].command(verb, script, &self.channel);
        let Replies { values, lack } = match self.call(&scripts, command).await {
            Ok(replies) => replies,
            Err(failure) => return fail(batch, &failure),
        };
        let mut answers = Vec::with_capacity(batch.len());
        for (request, value) in plan.iter().zip(values) {
            request.answers(value, &lack, &self.server, &mut answers);
        }
        if answers.iter().any(|answer| matches!(answer, Ok(Outcome::Queued { .. }))) {
            self.look_for_them();
        }
        answers
    }

    async fn cell(&self, cell: &CellCall<'_>) -> Result<Value, Failure> {
        let command = |_, verb: &str, script: &str| cell.command(verb, script);
        cell.accepted(self.call(&[CELL], command).await?.only()?, &self.server)
    }

    /// Somebody waits. Where no message can reach them, they are made to look, for as long as there are any.
    fn look_for_them(self: &Arc<Self>) {
        let mut looks = self.looks.lock();
        looks.wanted =
            u32::try_from(limits::TICKET_LIFE.as_millis() / LOOK.as_millis()).unwrap_or(1);
        if !looks.unnotified || std::mem::replace(&mut looks.under_way, true) {
            return;
        }
        drop(looks);
        let (shared, runtime) = (Arc::downgrade(self), self.runtime.clone());
        let task = async move {
            loop {
                runtime.sleep(LOOK).await;
                let Some(shared) = shared.upgrade() else { return };
                {
                    let mut looks = shared.looks.lock();
                    looks.wanted = looks.wanted.saturating_sub(1);
                    if looks.wanted == 0 || looks.closed {
                        looks.under_way = false;
                        return;
                    }
                }
                if let Some(sink) = shared.sink.get() {
                    sink(Notice::Look);
                }
            }
        };
        self.runtime.spawn(Box::pin(task));
    }

    fn receive(&self, published: &Published) {
        let parsed = match published {
            Published::Message(message) => notice(message.as_bytes()),
            Published::Gap => Some(Notice::Gap),
        };
        if let (Some(sink), Some(parsed)) = (self.sink.get(), parsed) {
            sink(parsed);
        }
    }
}

impl LeaseStore for HostStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("redis", Fence::ClockBounded)
            .with_guarantees(guarantees::guarantees(false, 0))
            .with_dialects(DIALECTS)
    }

    fn warning(&self) -> Option<&'static str> {
        self.0.warning
    }

    async fn step(&self, batch: &[Step]) -> Vec<Answer> {
        self.0.carry_out(batch, &Request::plan(batch)).await
    }

    async fn step_all(&self, batch: &[Step]) -> Vec<Answer> {
        match Request::apart(batch) {
            None => self.0.carry_out(batch, &[Request::all(batch)]).await,
            Some(refused) => refused,
        }
    }

    async fn listen(&self, sink: NoticeSink) -> Result<()> {
        let shared = &self.0;
        shared.sink.set(sink).map_err(|_| Error::internal("a store is listened to once"))?;
        let listener = Arc::downgrade(shared);
        let subscriber: Subscriber = Arc::new(move |published| {
            if let Some(shared) = listener.upgrade() {
                shared.receive(&published);
            }
        });
        let subscribed = shared.transport.subscribe(&shared.channel, subscriber);
        let listens = shared.within(shared.connect_timeout, subscribed).await;
        let listens = listens.map_err(|reason| fault::absent(&shared.server, &reason))?;
        shared.looks.lock().unnotified = !listens;
        Ok(())
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        let names = keys::names(prefix, &self.0.server, |command| self.0.look(command)).await?;
        Ok(names.into_iter().collect())
    }

    fn cells(&self) -> Option<Cells<'_>> {
        Some(Cells::of(self))
    }

    async fn close(&self) {
        self.0.close();
    }
}

impl CellStore for HostStore {
    async fn read(&self, key: &CellKey) -> Result<Look> {
        let call = CellCall::look(key);
        call.seen(self.0.cell(&call).await.map_err(|failure| failure.error)?)
    }

    async fn compare_and_set(&self, change: &Change) -> Result<Swap, Failure> {
        let call = CellCall::swap(change);
        call.swapped(self.0.cell(&call).await?)
    }
}

impl Shared {
    fn close(&self) {
        self.looks.lock().closed = true;
        self.transport.close();
    }
}

impl Drop for HostStore {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A command as the host sends it.
fn words(command: &Cmd) -> Vec<String> {
    let word = |word| match word {
        Arg::Simple(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    };
    command.args_iter().map(word).collect()
}

/// A reply as if it had come over a connection of ours.
fn value(reply: Reply) -> Value {
    match reply {
        Reply::Nil => Value::Nil,
        Reply::Int(number) => Value::Int(number),
        Reply::Text(text) => Value::BulkString(text.into_bytes()),
        Reply::List(replies) => Value::Array(replies.into_iter().map(value).collect()),
        Reply::Error(text) => {
            let line = format!("-{}\r\n", text.replace(['\r', '\n'], " "));
            redis::parse_redis_value(line.as_bytes()).unwrap_or_default()
        }
    }
}
