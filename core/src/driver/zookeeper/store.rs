//! The store: each call for the session it names.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{OptionFuture, join, join_all};
use url::Url;
use zookeeper_client::{Client, Error as Fault};

use super::address::{RULES, root};
use super::cells::ZookeeperCells;
use super::guarantees::GUARANTEES;
use super::layout::{CELLS, LEASES, Layout};
use super::layout::{Child, Names};
use super::session::Sessions;
use super::steps::{Steps, children, view};
use crate::driver::members::Address;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::port;
use crate::port::{
    Capabilities, Cells, Entry, EntryView, Failure, Fence, Joined, LockKey, Mode, OwnerId,
    QueueSink, QueueStore, Rank, RuntimeHandle, SessionId, Standing,
};

/// How many nodes are listed at once.
const AT_ONCE: usize = 64;

/// One client's view of a ZooKeeper ensemble. [`Queue`](crate::Queue) makes a store of locks of it.
pub struct ZookeeperStore {
    sessions: Arc<Sessions>,
    layout: Layout,
    cells: ZookeeperCells,
    /// The session of those who look before one is open.
    ttl: Duration,
}

impl fmt::Debug for ZookeeperStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = &self.sessions.address;
        f.debug_struct("ZookeeperStore").field("address", address).finish_non_exhaustive()
    }
}

impl ZookeeperStore {
    /// The ensemble of `zookeeper[s]://[user:password@]host[:port][/chroot]`. `others` are the hosts behind the first, which a URL cannot
    /// hold. Each session has a connection of its own, which is made when the session is opened.
    pub fn new(
        url: &Url,
        others: &[String],
        options: &Options,
        runtime: RuntimeHandle,
    ) -> Result<Self> {
        let address = Address::parse(url, others, options, RULES)?;
        let layout = Layout::new(&root(&address));
        let sessions = Sessions::new(address, options, runtime);
        let cells = ZookeeperCells::new(sessions.clone(), layout.clone(), options.ttl);
        Ok(Self { sessions, layout, cells, ttl: options.ttl })
    }

    /// Refuses a URL that names no server, without a connection.
    pub(crate) fn check(url: &Url, others: &[String]) -> Result<()> {
        Address::read(url, others, RULES).map(drop)
    }

    async fn call<T, W>(
        &self,
        of: SessionId,
        work: impl FnOnce(Arc<Steps>) -> W,
    ) -> Result<T, Failure>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let layout = self.layout.clone();
        let work = |sessions, session| work(Arc::new(Steps { sessions, session, layout }));
        self.sessions.call(of, work).await
    }

    /// Does work that only looks and needs no session of its own.
    async fn look<T, W>(&self, work: impl FnOnce(Client) -> W) -> Result<T>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        let client = self.sessions.looker(self.ttl).await?;
        self.sessions.ask(work(client)).await.map_err(|failure| failure.error)
    }

    /// The entries of a lock; the newest, or what the member knows that is asked.
    async fn stored(&self, lock: &LockKey, newest: bool) -> Result<Vec<Standing>> {
        let (main, leases) = (self.layout.folder(lock), self.layout.leases(lock));
        let names = Names::of(lock.layout());
        let sessions = self.sessions.clone();
        self.look(|client| async move {
            let of = |folder: String| {
                let (client, sessions) = (client.clone(), sessions.clone());
                async move {
                    let children = children(&client, &folder).await?;
                    let more =
                        names == Names::Curator && children.iter().any(|name| name == LEASES);
                    Ok::<_, Fault>((sessions.places.stored(&folder, names, &children), more))
                }
            };
            // A member that is behind would show a lock that was freed. This read grants nothing, so a `sync` is enough.
            let syncing = OptionFuture::from(newest.then(|| client.sync("/")));
            let (synced, listed) = join(syncing, of(main)).await;
            synced.transpose()?;
            let (mut all, more) = listed?;
            if more {
                all.extend(of(leases).await?.0);
            }
            Ok(all)
        })
        .await
    }
}

impl QueueStore for ZookeeperStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("zookeeper", Fence::Durable)
            .with_sessions()
            .with_dialects(&["kazoo"])
            .with_guarantees(GUARANTEES)
    }

    async fn open(&self, ttl: Duration, sink: QueueSink) -> Result<SessionId> {
        self.sessions.open(ttl, sink).await
    }

    async fn beat(&self, of: SessionId) -> Result<Duration, Failure> {
        self.call(of, |steps| async move { steps.beat().await }).await
    }

    async fn join(
        &self,
        of: SessionId,
        lock: &LockKey,
        entry: &Entry,
    ) -> Result<Option<Joined>, Failure> {
        // A path of Curator's or kazoo's begins with a slash. The lock of a name with one would lie elsewhere, and exclude nobody.
        if lock.as_str().starts_with('/') {
            let message = "on ZooKeeper a name has no slash before it: the lock of the path `/locks/orders` is `locks/orders`";
            return Err(Failure::refused(Error::invalid("name", message)));
        }
        let (lock, entry) = (lock.clone(), entry.clone());
        self.call(of, |steps| async move { steps.join(&lock, &entry).await }).await
    }

    async fn watch(
        &self,
        of: SessionId,
        lock: &LockKey,
        known: &[Standing],
    ) -> Result<Vec<Rank>, Failure> {
        let (lock, known) = (lock.clone(), known.to_vec());
        self.call(of, |steps| async move { steps.watch(&lock, &known).await }).await
    }

    async fn leave(
        &self,
        of: SessionId,
        lock: &LockKey,
        owner: OwnerId,
        at: Option<&Rank>,
    ) -> Result<bool, Failure> {
        let (lock, at) = (lock.clone(), at.cloned());
        self.call(of, |steps| async move { steps.leave(&lock, owner, at.as_ref()).await }).await
    }

    async fn list(&self, lock: &LockKey) -> Result<Vec<EntryView>> {
        let all = self.stored(lock, false).await?;
        let views = self.look(|client| async move {
            let views = join_all(all.into_iter().map(|stored| view(&client, stored))).await;
            views.into_iter().collect::<Result<Vec<_>, _>>()
        });
        Ok(views.await?.into_iter().flatten().collect())
    }

    async fn standings(&self, lock: &LockKey) -> Result<Vec<Standing>> {
        self.stored(lock, true).await
    }

    async fn end(&self, of: SessionId) -> Result<(), Failure> {
        self.sessions.end(of).await;
        // The library asks once; if nobody answers, the session ends by itself.
        Ok(())
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        let (layout, within) = (self.layout.clone(), prefix.to_owned());
        // The parts before the last slash are those of a node, under which all of them lie.
        let top = match prefix.rsplit_once('/') {
            Some((above, _)) => self.layout.folder(&LockKey::new(above)),
            None => self.layout.root().to_owned(),
        };
        let names = self.look(|client| async move {
            let (mut found, mut level) = (Vec::new(), vec![top.clone()]);
            while !level.is_empty() {
                let mut listed = Vec::new();
                for paths in level.chunks(AT_ONCE) {
                    listed.extend(join_all(paths.iter().map(|path| children(&client, path))).await);
                }
                let mut next = Vec::new();
                for (path, listed) in level.iter().zip(listed) {
                    let listed = match listed {
                        // Nodes of others, who keep them to themselves.
                        Err(Fault::NoAuth) if *path != top => continue,
                        listed => listed?,
                    };
                    for name in listed.into_iter().filter(|name| name != CELLS) {
                        let above = path.trim_end_matches('/');
                        let reads = |names| (names, Child::read(&name, names));
                        match [Names::Curator, Names::Kazoo].map(reads) {
                            [(by, Child::Entry(node)), _] | [_, (by, Child::Entry(node))] => {
                                let lock = entry_of(path, node.mode).to_owned();
                                found.push((lock, by));
                            }
                            [(_, Child::Other), _] => next.push(format!("{above}/{name}")),
                            _ => {}
                        }
                    }
                }
                level = next;
            }
            Ok(found)
        });
        let lock = |(path, by): &(String, Names)| {
            let lock = layout.lock_at(path)?;
            let kazoos = || LockKey::laid_out(port::Layout::Kazoo, lock.as_str());
            Some(if *by == Names::Kazoo { kazoos() } else { lock })
        };
        let mut locks: Vec<_> = names.await?.iter().filter_map(lock).collect();
        locks.retain(|lock| lock.as_str().starts_with(&within));
        locks.sort();
        locks.dedup();
        Ok(locks)
    }

    fn cells(&self) -> Option<Cells<'_>> {
        Some(Cells::of(&self.cells))
    }

    async fn close(&self) {
        self.sessions.close();
    }
}

/// The lock that has an entry of this mode in this folder.
fn entry_of(folder: &str, mode: Mode) -> &str {
    match folder.rsplit_once('/') {
        Some((lock, LEASES)) if mode == Mode::Permit => lock,
        _ => folder,
    }
}

impl Drop for ZookeeperStore {
    fn drop(&mut self) {
        self.sessions.close();
    }
}
