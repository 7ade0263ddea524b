//! A session on the ensemble: a connection of its own, what it has there, and what tells its end.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, OptionFuture, Shared, select};
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, SessionState, StateWatcher};

use super::address::digest;
use super::fault::{absent, ended, judge, unanswered};
use super::layout::{Names, Node};
use super::places::Places;
use super::relay::Relay;
use crate::driver::addresses::resolve;
use crate::driver::members::Address;
use crate::driver::within::{on_task, within};
use crate::error::{Code, Error, Result};
use crate::options::Options;
use crate::port::left_owners::LeftOwners;
use crate::port::{Failure, QueueNotice, QueueSink, Rank, RuntimeHandle, SessionId, Standing};
use crate::runtime::sync::Mutex;

/// A member is given at least so long to answer: Java stands still now and then.
const SHORTEST: Duration = Duration::from_millis(900);

/// The sessions of a client, and what they share.
pub(super) struct Sessions {
    pub(super) address: Address,
    pub(super) runtime: RuntimeHandle,
    pub(super) places: Places,
    /// The longest that a call takes.
    timeout: Duration,
    connect_timeout: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: BTreeMap<SessionId, Open>,
    /// A connection for those who look before a session is open. It is made once for all of them.
    looker: Option<Looker>,
    closed: bool,
}

type Looker = Shared<BoxFuture<'static, Result<Client>>>;

/// A session. It is over when `_ends` is dropped.
struct Open {
    session: Arc<Session>,
    _ends: oneshot::Sender<()>,
}

/// A session on the ensemble, with its entries and watches.
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) client: Client,
    pub(super) ttl: Duration,
    sink: QueueSink,
    over: Shared<oneshot::Receiver<()>>,
    /// The entries of this session.
    pub(super) own: Mutex<BTreeMap<Rank, Standing>>,
    /// Owners whose join makes no entry.
    pub(super) left: Mutex<LeftOwners>,
    /// The entries that are watched.
    pub(super) watched: Mutex<BTreeSet<Rank>>,
}

impl Sessions {
    pub(super) fn new(address: Address, options: &Options, runtime: RuntimeHandle) -> Arc<Self> {
        let (places, state) = Default::default();
        let Options { timeout, connect_timeout, .. } = *options;
        Arc::new(Self { address, runtime, places, timeout, connect_timeout, state })
    }

    /// How nodes of this kind are made.
    pub(super) fn options(&self, mode: CreateMode) -> CreateOptions<'static> {
        // A certificate alone may be no identity to the server, and then a node for its creator alone cannot be made.
        let mine = self.address.user.is_some();
        mode.with_acls(if mine { Acls::creator_all() } else { Acls::anyone_all() })
    }

    /// Opens a session of this length.
    pub(super) async fn open(
        self: &Arc<Self>,
        ttl: Duration,
        sink: QueueSink,
    ) -> Result<SessionId> {
        self.check_open()?;
        let client = self.connect(ttl).await?;
        let given = client.session_timeout();
        // Deadlines are counted with this length, so no other one will do.
        if given != ttl {
            return Err(other_ttl(given));
        }
        let id = SessionId::new(client.session_id().0.cast_unsigned());
        let (ends, over) = oneshot::channel();
        let (own, left, watched) = Default::default();
        let over = over.shared();
        let states = client.state_watcher();
        let session = Session { id, client, ttl, sink, over, own, left, watched };
        let mut state = self.state.lock();
        if state.closed {
            return Err(Error::closed());
        }
        state.open.insert(id, Open { session: Arc::new(session), _ends: ends });
        drop(state.looker.take());
        drop(state);
        self.runtime.spawn(Box::pin(follow(Arc::downgrade(self), states, id)));
        Ok(id)
    }

    async fn connect(self: &Arc<Self>, ttl: Duration) -> Result<Client> {
        check_process(self.runtime.process())?;
        if ttl.is_zero() || !ttl.subsec_nanos().is_multiple_of(1_000_000) {
            let message = "on ZooKeeper the session's `ttl` must be whole milliseconds";
            return Err(Error::invalid("ttl", message));
        }
        let sessions = self.clone();
        let connecting = async move {
            let Sessions { address, runtime, connect_timeout, .. } = &*sessions;
            let members = members(address).await;
            // A member that says nothing for so long is left, also later in the session: within a connect there is time for a second one,
            // and two fifths of a session leave time for another.
            let share = if members.len() > 1 { *connect_timeout / 2 } else { *connect_timeout };
            let silence = (ttl / 5).min(share).max(SHORTEST).min(ttl * 2 / 5);
            let connector = Client::connector().with_session_timeout(ttl).with_fail_eagerly();
            let connector = connector.with_connection_timeout(silence);
            // The library's own TLS would install a crypto provider for the whole process.
            let relay = OptionFuture::from(
                address
                    .tls
                    .clone()
                    .map(|tls| Relay::open(address, Arc::new(tls), silence, runtime)),
            );
            let relay = relay.await.transpose()?;
            let (connector, hosts) = match &relay {
                Some(relay) => (relay.introduce(connector), relay.hosts()),
                None => (connector, members.join(",")),
            };
            let connector = match digest(address) {
                Some(digest) => connector.with_auth("digest", digest.as_bytes()),
                None => connector,
            };
            let connected = connector.connect(&hosts).await;
            let client = connected.map_err(|fault| {
                let known = relay.as_ref().and_then(Relay::failure);
                known.unwrap_or_else(|| absent(address, &fault))
            })?;
            if let Some(relay) = relay {
                let mut states = client.state_watcher();
                // The library goes on connecting until then, even when nobody has the client any more.
                runtime.spawn(Box::pin(async move {
                    while !states.changed().await.is_terminated() {}
                    drop(relay);
                }));
            }
            Ok(client)
        };
        let limit = self.connect_timeout;
        let connected = self.within(limit, connecting).await;
        connected.unwrap_or_else(|| Err(unanswered(&self.address, "it took too long")))
    }

    /// A connection for those who only look.
    pub(super) async fn looker(self: &Arc<Self>, ttl: Duration) -> Result<Client> {
        self.check_open()?;
        let looker = {
            let mut state = self.state.lock();
            let lives = |client: &Client| !client.state().is_terminated();
            let session = state.open.values().next().map(|open| &open.session.client);
            if let Some(client) = session.filter(|client| lives(client)) {
                return Ok(client.clone());
            }
            let serves =
                |looker: &Looker| looker.peek().is_none_or(|made| made.as_ref().is_ok_and(lives));
            let looker = state.looker.as_ref().filter(|looker| serves(looker)).cloned();
            looker.unwrap_or_else(|| {
                let sessions = self.clone();
                let looker = async move { sessions.connect(ttl).await }.boxed().shared();
                state.looker.insert(looker).clone()
            })
        };
        looker.await
    }

    /// Does something for a session on a task of its own: it runs to its end, whoever stays for it; but no longer than the time
    /// limit, nor than the session.
    pub(super) async fn call<T, W>(
        self: &Arc<Self>,
        of: SessionId,
        work: impl FnOnce(Arc<Self>, Arc<Session>) -> W,
    ) -> Result<T, Failure>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        self.check_open().map_err(Failure::refused)?;
        let session = self.get(of).ok_or_else(ended)?;
        let over = session.over.clone();
        let work = work(self.clone(), session);
        let work = async move {
            match select(pin!(work), over).await {
                Either::Left((answer, _)) => answer,
                Either::Right(_) => Err(ended()),
            }
        };
        let answer = self.within(self.timeout, work).await;
        let answer = answer.unwrap_or_else(|| {
            Err(Failure::unknown(unanswered(&self.address, "it took too long")))
        });
        if answer.as_ref().is_err_and(|failure| failure.error.code() == Code::Lost) {
            self.forget(of);
        }
        answer
    }

    /// The result of this work, run on a task of its own. `None`: it takes too long.
    pub(super) async fn within<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let runtime = self.runtime.clone();
        let work = async move { within(&runtime, limit, work).await };
        on_task(&self.runtime, work).await.ok().flatten()
    }

    /// Does something that needs no session of the caller's.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, zookeeper_client::Error>> + Send + 'static,
    ) -> Result<T, Failure> {
        let unknown = |reason| Failure::unknown(unanswered(&self.address, reason));
        let answer = self.within(self.timeout, work).await;
        let answer = answer.ok_or_else(|| unknown("it took too long"))?;
        answer.map_err(|fault| match judge(&self.address, &fault) {
            // It was the session of somebody else, and what was sent in it may have been carried out.
            failure if failure.error.code() == Code::Lost => unknown("a session ended"),
            failure => failure,
        })
    }

    /// A session has made an entry.
    pub(super) fn enter(&self, session: &Session, folder: &str, names: Names, node: &Node) -> Rank {
        let state = self.state.lock();
        let rank = self.places.enter(folder, names, node);
        if state.open.contains_key(&session.id) {
            let stored = Standing { rank: rank.clone(), mode: node.mode };
            session.own.lock().insert(rank.clone(), stored);
        } else {
            self.places.leave(&rank);
        }
        rank
    }

    /// An entry is gone, if it was one of this session's.
    pub(super) fn left(&self, session: &Session, rank: &Rank) {
        if session.own.lock().remove(rank).is_some() {
            self.places.leave(rank);
        }
    }

    pub(super) fn get(&self, of: SessionId) -> Option<Arc<Session>> {
        self.state.lock().open.get(&of).map(|open| open.session.clone())
    }

    pub(super) fn tell(&self, of: SessionId, notice: QueueNotice) {
        if let Some(session) = self.get(of) {
            (session.sink)(notice);
        }
    }

    /// From now on nobody here knows this session.
    fn forget(&self, of: SessionId) -> Option<Arc<Session>> {
        let session = self.state.lock().open.remove(&of)?.session;
        for rank in std::mem::take(&mut *session.own.lock()).keys() {
            self.places.leave(rank);
        }
        Some(session)
    }

    /// The ensemble, or the client library, says that a session has ended.
    fn lose(&self, of: SessionId) {
        if let Some(session) = self.forget(of) {
            (session.sink)(QueueNotice::Ended { session: of });
        }
    }

    /// Ends a session: the library asks the ensemble for it when nobody has the client any more.
    pub(super) async fn end(&self, of: SessionId) {
        let Some(session) = self.forget(of) else { return };
        let mut states = session.client.state_watcher();
        drop(session);
        self.within(self.timeout, async move { while !states.changed().await.is_terminated() {} })
            .await;
    }

    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let (open, looker) = (std::mem::take(&mut state.open), state.looker.take());
        drop(state);
        drop((open, looker));
    }

    fn check_open(&self) -> Result<()> {
        if self.state.lock().closed { Err(Error::closed()) } else { Ok(()) }
    }
}

/// The members as the client library takes them. Of a name with several addresses it would try one after the other, without leaving a
/// silent one, so each address stands there as a member, and the name behind them: its addresses may change while the session lives. Over
/// TLS the relay tries them.
async fn members(address: &Address) -> Vec<String> {
    let mut members = Vec::new();
    for host in &address.hosts {
        if let Ok(addresses) = resolve(&host.name, host.port).await
            && addresses.len() > 1
            && address.tls.is_none()
        {
            members.extend(addresses.iter().map(ToString::to_string));
        }
        members.push(host.to_string());
    }
    members
}

/// Hears what becomes of a session, until it is over.
async fn follow(sessions: Weak<Sessions>, mut states: StateWatcher, id: SessionId) {
    let mut now = states.peek_state();
    let mut first = true;
    loop {
        let Some(sessions) = sessions.upgrade() else { return };
        if now.is_terminated() {
            sessions.lose(id);
            return;
        }
        if now == SessionState::SyncConnected && !first {
            sessions.tell(id, QueueNotice::Gap);
        }
        drop(sessions);
        (now, first) = (states.changed().await, false);
    }
}

fn other_ttl(given: Duration) -> Error {
    let message = format!(
        "this ensemble gives no session of the `ttl` asked for, but one of {given:?}: ask for that, or change its `minSessionTimeout` or `maxSessionTimeout`"
    );
    Error::invalid("ttl", message)
}

/// The process that used the client library first, also in its children: all its sockets are waited for by one thread, which no child of a
/// fork has.
static FIRST: AtomicU32 = AtomicU32::new(0);

/// Refuses in the child of a process that has used the library.
fn check_process(process: u32) -> Result<()> {
    match FIRST.compare_exchange(0, process, Ordering::Relaxed, Ordering::Relaxed) {
        Err(first) if first != process => Err(inherited()),
        _ => Ok(()),
    }
}

fn inherited() -> Error {
    let message = "this process was forked by one that had connected to ZooKeeper, so it cannot reach ZooKeeper; start it anew (`spawn`), or connect only after the fork";
    Error::new(Code::Unsupported, message)
}
