//! The lease interface behind a concrete handle, so that algorithms are compiled once for all stores.

use std::sync::Arc;

use super::capabilities::Capabilities;
use super::cell::Cells;
use super::key::LockKey;
use super::lease::{Answer, LeaseStore, NoticeSink, Step};
use super::marker::{BoxFuture, MaybeSend, MaybeSync};
use crate::error::Result;

/// The dyn twin of [`LeaseStore`]. A boxed call costs tens of nanoseconds against a round trip of tens of microseconds; a request of the engine is
/// boxed once.
trait DynLeaseStore: MaybeSend + MaybeSync + 'static {
    fn capabilities(&self) -> Capabilities;
    fn warning(&self) -> Option<&'static str>;
    fn step(self: Arc<Self>, batch: Vec<Step>) -> BoxFuture<'static, Vec<Answer>>;
    fn step_all(self: Arc<Self>, batch: Vec<Step>) -> BoxFuture<'static, Vec<Answer>>;
    fn listen(&self, sink: NoticeSink) -> BoxFuture<'_, Result<()>>;
    fn names<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<LockKey>>>;
    fn cells(&self) -> Option<Cells<'_>>;
    fn close(&self) -> BoxFuture<'_, ()>;
}

impl<S: LeaseStore> DynLeaseStore for S {
    fn capabilities(&self) -> Capabilities {
        LeaseStore::capabilities(self)
    }
    fn warning(&self) -> Option<&'static str> {
        LeaseStore::warning(self)
    }
    fn step(self: Arc<Self>, batch: Vec<Step>) -> BoxFuture<'static, Vec<Answer>> {
        Box::pin(async move { LeaseStore::step(&*self, &batch).await })
    }
    fn step_all(self: Arc<Self>, batch: Vec<Step>) -> BoxFuture<'static, Vec<Answer>> {
        Box::pin(async move { LeaseStore::step_all(&*self, &batch).await })
    }
    fn listen(&self, sink: NoticeSink) -> BoxFuture<'_, Result<()>> {
        Box::pin(LeaseStore::listen(self, sink))
    }
    fn names<'a>(&'a self, prefix: &'a str) -> BoxFuture<'a, Result<Vec<LockKey>>> {
        Box::pin(LeaseStore::names(self, prefix))
    }
    fn cells(&self) -> Option<Cells<'_>> {
        LeaseStore::cells(self)
    }
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(LeaseStore::close(self))
    }
}

/// A shared lease store of any kind. See [`LeaseStore`] for what each call promises.
#[derive(Clone)]
pub struct LeaseHandle(Arc<dyn DynLeaseStore>);

impl LeaseHandle {
    /// Wraps a store.
    pub fn new(store: impl LeaseStore) -> Self {
        Self(Arc::new(store))
    }

    /// [`LeaseStore::capabilities`].
    pub fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    /// [`LeaseStore::warning`].
    pub fn warning(&self) -> Option<&'static str> {
        self.0.warning()
    }

    /// [`LeaseStore::step`], with a batch the future owns.
    pub fn step(&self, batch: Vec<Step>) -> BoxFuture<'static, Vec<Answer>> {
        Arc::clone(&self.0).step(batch)
    }

    /// [`LeaseStore::step_all`], with a batch the future owns.
    pub fn step_all(&self, batch: Vec<Step>) -> BoxFuture<'static, Vec<Answer>> {
        Arc::clone(&self.0).step_all(batch)
    }

    /// [`LeaseStore::listen`].
    pub async fn listen(&self, sink: NoticeSink) -> Result<()> {
        self.0.listen(sink).await
    }

    /// [`LeaseStore::names`].
    pub async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        self.0.names(prefix).await
    }

    /// [`LeaseStore::cells`].
    pub fn cells(&self) -> Option<Cells<'_>> {
        self.0.cells()
    }

    /// [`LeaseStore::close`].
    pub async fn close(&self) {
        self.0.close().await;
    }
}

/// A handle is itself a store, so that a store can be made of others.
impl LeaseStore for LeaseHandle {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }
    fn warning(&self) -> Option<&'static str> {
        self.0.warning()
    }
    async fn step(&self, batch: &[Step]) -> Vec<Answer> {
        LeaseHandle::step(self, batch.to_vec()).await
    }
    async fn step_all(&self, batch: &[Step]) -> Vec<Answer> {
        LeaseHandle::step_all(self, batch.to_vec()).await
    }
    async fn listen(&self, sink: NoticeSink) -> Result<()> {
        self.0.listen(sink).await
    }
    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        self.0.names(prefix).await
    }
    fn cells(&self) -> Option<Cells<'_>> {
        self.0.cells()
    }
    async fn close(&self) {
        self.0.close().await;
    }
}
