//! The store over a connection of our own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use url::Url;

use super::address::{RULES, prefix};
use super::cells::EtcdCells;
use super::guarantees::GUARANTEES;
use super::layout::{Layout, Stored};
use super::link::Link;
use super::steps::Steps;
use super::watches::Watches;
use crate::driver::members::Address;
use crate::error::Result;
use crate::options::Options;
use crate::port::{
    Capabilities, Cells, Entry, EntryView, Failure, Fence, Joined, LockKey, OwnerId, QueueSink,
    QueueStore, Rank, RuntimeHandle, SessionId, Standing,
};

/// One client's view of an etcd cluster. [`Queue`](crate::Queue) makes a store of locks of it.
pub struct EtcdStore(Steps, EtcdCells);

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdStore").field("address", &self.0.link.address).finish_non_exhaustive()
    }
}

impl EtcdStore {
    /// Connects to one of the members of `etcd[s]://[user:password@]host[:port][/prefix]`. `others` are the hosts behind the first,
    /// which a URL cannot hold.
    pub async fn connect(
        url: &Url,
        others: &[String],
        options: &Options,
        runtime: RuntimeHandle,
    ) -> Result<Self> {
        let mut address = Address::parse(url, others, options, RULES)?;
        address.tls = address.tls.map(|tls| tls.speaking(b"h2"));
        let layout = Layout::new(&prefix(&address));
        let link = Link::connect(address, options, runtime).await?;
        let (sessions, joins) = (Arc::default(), Arc::default());
        let watches = Watches::new(link.clone(), Arc::clone(&sessions));
        let cells = EtcdCells::new(link.clone(), layout.clone());
        Ok(Self(Steps { link, layout, sessions, watches, joins }, cells))
    }

    /// Refuses a URL that names no server, without a connection.
    pub(crate) fn check(url: &Url, others: &[String]) -> Result<()> {
        Address::read(url, others, RULES).map(drop)
    }
}

impl QueueStore for EtcdStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("etcd", Fence::Durable)
            .with_sessions()
            // None by name: the own layout is that of `etcdctl lock`, of Go's `concurrency` and of jetcd.
            .with_dialects(&[])
            .with_guarantees(GUARANTEES)
    }

    async fn open(&self, ttl: Duration, sink: QueueSink) -> Result<SessionId> {
        self.0.open(ttl, sink).await
    }

    async fn beat(&self, of: SessionId) -> Result<Duration, Failure> {
        self.0.beat(of).await
    }

    async fn join(
        &self,
        of: SessionId,
        lock: &LockKey,
        entry: &Entry,
    ) -> Result<Option<Joined>, Failure> {
        self.0.join(of, lock, entry).await
    }

    async fn watch(
        &self,
        of: SessionId,
        lock: &LockKey,
        known: &[Standing],
    ) -> Result<Vec<Rank>, Failure> {
        self.0.watch(of, lock, known).await
    }

    async fn leave(
        &self,
        of: SessionId,
        lock: &LockKey,
        owner: OwnerId,
        at: Option<&Rank>,
    ) -> Result<bool, Failure> {
        self.0.leave(of, lock, owner, at).await
    }

    async fn show(&self, lock: &LockKey) -> Result<Vec<EntryView>> {
        let all = self.0.all(lock).await?;
        let leases: BTreeSet<_> = all.iter().map(|stored| stored.lease).collect();
        // A request for each lease is for people who look. Waiters call `list`, which asks for none.
        let left = leases.iter().map(|&lease| self.0.left(lease));
        let left: Vec<_> = try_join_all(left).await?;
        let left: BTreeMap<_, _> = leases.into_iter().zip(left).collect();
        let shown = |stored: Stored| EntryView { left: left[&stored.lease], ..stored.view() };
        Ok(all.into_iter().map(shown).collect())
    }

    async fn list(&self, lock: &LockKey) -> Result<Vec<EntryView>> {
        Ok(self.0.all(lock).await?.into_iter().map(Stored::view).collect())
    }

    async fn end(&self, of: SessionId) -> Result<(), Failure> {
        self.0.end(of).await
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        let Steps { link, layout, .. } = &self.0;
        let found = link.call(layout.names(prefix)).await.map_err(|failure| failure.error)?;
        let names: BTreeSet<_> = found.kvs.iter().filter_map(|kv| layout.lock_of(kv)).collect();
        Ok(names.into_iter().filter(|name| name.as_str().starts_with(prefix)).collect())
    }

    fn cells(&self) -> Option<Cells<'_>> {
        Some(Cells::of(&self.1))
    }

    async fn close(&self) {
        self.0.link.close();
    }
}

impl Drop for EtcdStore {
    fn drop(&mut self) {
        self.0.link.close();
    }
}
