//! One attempt to connect: find the server, shake hands, look at what it is, load the scripts, subscribe.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use redis::aio::{MultiplexedConnection, SendError};
use redis::{AsyncConnectionConfig, PushInfo, PushKind, RedisError, Value};

use super::acks::AckConnection;
use super::wire::{self, AbortOnDrop, Trouble};
use super::{Link, Live};
use crate::driver::redis::address::{Address, Host, Topology};
use crate::driver::redis::fault::{self, NO_CLUSTER};
use crate::driver::redis::guarantees;
use crate::driver::redis::scripts::Sent;
use crate::driver::redis::sentinel;

use crate::driver::within::within;
use crate::error::{Code, Error, Result};
use crate::runtime::sync::Mutex;

/// Requests on their way to the socket before the next one has to wait for its turn.
const OUTBOX: usize = 512;

impl Link {
    /// Connects once: finds the server, shakes hands, loads the scripts, subscribes.
    pub(super) async fn attempt(self: &Arc<Self>) -> Result<Arc<Live>> {
        let work = async {
            let place = match &self.address.topology {
                Topology::Single(host) | Topology::Node(host) => host.clone(),
                Topology::Cluster(_) => unreachable!("a cluster is reached by its nodes"),
                Topology::Sentinel { sentinels, master } => {
                    let patience = self.connect_timeout / 2;
                    sentinel::master(&self.address, sentinels, master, patience, &self.runtime)
                        .await?
                }
            };
            self.shake_hands(place).await
        };
        let late = || {
            let error = std::io::Error::from(std::io::ErrorKind::TimedOut).into();
            Err(fault::unreachable(&self.address, &error))
        };
        within(&self.runtime, self.connect_timeout, work).await.unwrap_or_else(late)
    }

    async fn shake_hands(self: &Arc<Self>, place: Host) -> Result<Arc<Live>> {
        let broken = Arc::new(AtomicBool::new(false));
        let (link, flag) = (Arc::downgrade(self), Arc::clone(&broken));
        let pushed = config().set_push_sender(move |push| {
            receive(&link, &flag, &push);
            Ok::<_, SendError>(())
        });
        let connect = |config| {
            let settings = self.address.settings();
            wire::connect(&self.address, &place, settings, config, &self.runtime)
        };
        let trouble = |trouble: Trouble| trouble.into_error(&self.address);
        let (mut connection, task) = connect(pushed).await.map_err(trouble)?;
        let unreachable = |error| fault::unreachable(&self.address, &error);
        // A cluster node or a sentinel behind `redis://` would fail at the second lock.
        let server_info = ServerInfo::of(&mut connection).await.map_err(unreachable)?;
        // A sentinel may be out of date, and the former master may still answer: the server itself says what it is.
        let master = matches!(self.address.topology, Topology::Sentinel { .. })
            || self.demoted.load(Ordering::Acquire);
        server_info.check(&self.address, master)?;
        *self.warning.lock() = server_info.warning;
        wire::load(&mut connection).await.map_err(unreachable)?;
        let mut tasks = vec![task];
        let mut ack_connection = None;
        // `WAIT` holds up everything behind it on its connection, so it has one of its own.
        if self.acks > 0 {
            let (connection, task) = connect(config()).await.map_err(trouble)?;
            ack_connection = Some(Arc::new(AckConnection::new(connection)));
            tasks.push(task);
        }
        if let Topology::Sentinel { sentinels, master } = &self.address.topology {
            tasks.push(self.watch(sentinels.clone(), master.clone(), &place, &broken));
        }
        let tasks = Arc::new(Mutex::new(tasks));
        let sent = Arc::new(Sent::loaded());
        let live = Arc::new(Live {
            connection,
            sent,
            ack_connection,
            broken,
            subscribed: Arc::default(),
            tasks,
        });
        if self.sink.get().is_some() {
            self.subscribe(&live).await?;
        }
        *self.last_answer.lock() = self.runtime.now();
        Ok(live)
    }

    /// Leaves the master as soon as the sentinels have another one, also if it still answers.
    fn watch(
        self: &Arc<Self>,
        sentinels: Vec<Host>,
        master: String,
        place: &Host,
        broken: &Arc<AtomicBool>,
    ) -> AbortOnDrop {
        let (link, broken, place) = (Arc::downgrade(self), Arc::clone(broken), place.clone());
        let (address, runtime) = (self.address.clone(), Arc::clone(&self.runtime));
        AbortOnDrop::tie(&self.runtime, async move {
            sentinel::switched(&address, &sentinels, &master, &place, &runtime).await;
            if let Some(link) = link.upgrade() {
                link.broke(&broken);
            }
        })
    }

    /// Has the server tell this client its notices.
    pub(super) async fn subscribe(&self, live: &Live) -> Result<()> {
        if live.subscribed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let subscribed = live.connection.clone().subscribe(&self.channel).await;
        subscribed.map_err(|error| fault::unreachable(&self.address, &error))
    }
}

/// Our own limits hold, not the crate's.
fn config() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(OUTBOX)
}

/// Handles a message that the server sends without being asked, on the connection's own task.
fn receive(link: &Weak<Link>, broken: &Arc<AtomicBool>, push: &PushInfo) {
    let Some(link) = link.upgrade() else { return };
    match push.kind {
        PushKind::Disconnection => link.broke(broken),
        PushKind::Message => {
            if let [_, Value::BulkString(message)] = &push.data[..] {
                link.tell(message);
            }
        }
        _ => {}
    }
}

/// The information that a server gives about itself. A server that gives none is accepted as it is.
#[derive(Debug, Default)]
struct ServerInfo {
    /// `standalone`, `cluster` or `sentinel`.
    mode: String,
    replica: bool,
    /// The warning that its settings break a guarantee, if they do.
    warning: Option<&'static str>,
}

impl ServerInfo {
    /// Asks, in one round trip: `HELLO` alone changes nothing, and is granted to everybody.
    async fn of(connection: &mut MultiplexedConnection) -> Result<Self, RedisError> {
        let mut questions = redis::pipe();
        questions.cmd("HELLO").add_command(guarantees::memory());
        let mut replies = connection.send_packed_commands(&questions, 0, 2).await?;
        let warning = replies.pop().and_then(guarantees::eviction_warning);
        let hello = replies.pop().unwrap_or(Value::Nil);
        let Ok(words) = redis::from_redis_value::<BTreeMap<String, Value>>(hello) else {
            return Ok(Self { warning, ..Self::default() });
        };
        let word = |name| match words.get(name) {
            Some(Value::BulkString(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            Some(Value::SimpleString(text)) => text.clone(),
            _ => String::new(),
        };
        let replica = matches!(&*word("role"), "replica" | "slave");
        Ok(Self { mode: word("mode"), replica, warning })
    }

    /// Whether this is the kind of server that was looked for. `master`: only that will do.
    fn check(&self, address: &Address, master: bool) -> Result<()> {
        let wrong = |message| {
            Err(Error::new(Code::Unsupported, message).with("server", address.to_string()))
        };
        match (&address.topology, &*self.mode) {
            (Topology::Single(_), "cluster") => wrong(
                "the server is a node of a cluster; write `redis+cluster://`, with this node and others",
            ),
            (Topology::Node(_), "standalone") => wrong(NO_CLUSTER),
            (_, "sentinel") => wrong(
                "the server is a sentinel; write `redis+sentinel://`, the sentinels, and the master's name as the path",
            ),
            _ if master && self.replica => Err(fault::refusal(address, "READONLY", None)),
            _ => Ok(()),
        }
    }
}
