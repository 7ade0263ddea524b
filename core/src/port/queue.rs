//! The store interface of entry queues: the entries of a lock in the order they were made. An entry lives as long as its session.
//!
//! A driver of a store with sessions implements [`QueueStore`]. The adapter [`Queue`](crate::Queue) makes a
//! [`LeaseStore`](super::LeaseStore) of it. An entry that need not wait for any entry before it holds the lock.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::capabilities::Capabilities;
use super::cell::Cells;
use super::failure::Failure;
use super::key::{LockKey, OwnerId};
use super::lease::Mode;
use super::marker::{MaybeSend, MaybeSync};
use crate::error::Result;

/// Names a session of one [`QueueStore`] value. The driver chooses the number and uses it for no other session of that value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(u64);

impl SessionId {
    /// The session of this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// The place of an entry among the entries of its lock. An entry that is made later has a greater rank.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank {
    place: u64,
    name: Arc<str>,
}

impl Rank {
    /// The rank at this place. `name` is how the store names the entry, where the place alone does not find it again; only the
    /// driver reads it. It may be empty.
    pub fn new(place: u64, name: impl Into<Arc<str>>) -> Self {
        Self { place, name: name.into() }
    }

    /// The place: a greater one was made later.
    pub fn place(&self) -> u64 {
        self.place
    }

    /// How the store names the entry.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Shows the place only: the name may contain an owner id, and whoever has that can release the lock.
impl fmt::Debug for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.place)
    }
}

/// An entry as it is written into the queue of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The attempt. The store finds the entry by it when its rank is not known.
    pub owner: OwnerId,
    /// How it wants to hold the lock.
    pub mode: Mode,
    /// For `Permit`: of how many permits.
    pub limit: u32,
    /// The information about the client that asks, as JSON, for people who inspect.
    pub info: Arc<str>,
}

/// An entry as other clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its place.
    pub rank: Rank,
    /// How it wants to hold the lock. An entry of another library has the mode that excludes the same others.
    pub mode: Mode,
}

/// An entry as people see it who inspect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryView {
    /// Its place and mode.
    pub standing: Standing,
    /// Its owner id; `None` for an entry of another library.
    pub owner: Option<OwnerId>,
    /// Its fence; `None` if the store does not tell it here.
    pub fence: Option<u64>,
    /// Of how many permits it wants one.
    pub limit: u32,
    /// How long it has been there; zero if the store does not know.
    pub age: Duration,
    /// The time left of its session; `None` if the store does not say.
    pub left: Option<Duration>,
    /// The information it gave about itself, as JSON; empty for an entry of another library.
    pub info: Arc<str>,
}

/// The answer to a [`QueueStore::join`] that made an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The place of the entry.
    pub rank: Rank,
    /// A positive number that rises with every entry of this lock name, also when the queue was empty in between. It is less
    /// than 2^48: fencing tokens are made of it.
    pub fence: u64,
    /// The entries with a smaller rank, in order. They are read when the entry is made, or later.
    pub before: Vec<Standing>,
}

/// Something that a [`QueueStore`] tells without being asked. It may be late, and it may come twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueNotice {
    /// An entry that this session watches is gone.
    Gone {
        /// The lock.
        lock: LockKey,
        /// The entry.
        rank: Rank,
    },
    /// Watches may have been lost up to now: watch again.
    Gap,
    /// The store says that the session has ended, and its entries with it.
    Ended {
        /// The session.
        session: SessionId,
    },
}

/// Where a store delivers its notices. It is called on the store's own task and must return at once.
#[cfg(not(target_arch = "wasm32"))]
pub type QueueSink = Arc<dyn Fn(QueueNotice) + Send + Sync>;
/// Where a store delivers its notices. It is called on the store's own task and must return at once.
#[cfg(target_arch = "wasm32")]
pub type QueueSink = Arc<dyn Fn(QueueNotice)>;

/// A store that keeps entries in the order they were made. One value serves one client.
///
/// The model, `QueueModel` of the crate `fencelock-sim`, defines the meaning of each call. A call for a session that has ended
/// fails with the code `lost` and changes nothing. Every other failure says whether the call may have changed the store.
/// No call is sent twice by the driver, unless it certainly was not carried out. Each call ends within a time limit of the
/// driver's own.
pub trait QueueStore: MaybeSend + MaybeSync + 'static {
    /// The abilities of this store.
    fn capabilities(&self) -> Capabilities;

    /// Opens a session that ends `ttl` after its last sign of life. Its notices go to `sink`. If the answer is lost, a session
    /// that was opened all the same ends by itself.
    fn open(
        &self,
        ttl: Duration,
        sink: QueueSink,
    ) -> impl Future<Output = Result<SessionId>> + MaybeSend;

    /// Keeps a session alive. Answers for how long the store promises that, from when the request arrived. The caller counts
    /// from when it called.
    fn beat(&self, of: SessionId) -> impl Future<Output = Result<Duration, Failure>> + MaybeSend;

    /// Makes an entry behind all others. Once polled it runs to its end on the store, also if the future is dropped. `None`:
    /// [`QueueStore::leave`] without a rank came first, there is no entry and there never will be.
    fn join(
        &self,
        of: SessionId,
        lock: &LockKey,
        entry: &Entry,
    ) -> impl Future<Output = Result<Option<Joined>, Failure>> + MaybeSend;

    /// Watches entries of a lock. Answers those that are gone by now. The sink is told once of each of the others, as soon as it
    /// goes. To watch an entry again changes nothing.
    fn watch(
        &self,
        of: SessionId,
        lock: &LockKey,
        known: &[Standing],
    ) -> impl Future<Output = Result<Vec<Rank>, Failure>> + MaybeSend;

    /// Removes an entry. Answers whether it was there. Without a rank, after an unknown outcome, the store finds the entry by
    /// its owner id; if there is none, a later join of this owner id by this session makes none.
    fn leave(
        &self,
        of: SessionId,
        lock: &LockKey,
        owner: OwnerId,
        at: Option<&Rank>,
    ) -> impl Future<Output = Result<bool, Failure>> + MaybeSend;

    /// The same as [`QueueStore::list`] for people who look, with what is left of each entry's session if the store can tell that,
    /// also where it takes more requests.
    fn show(&self, lock: &LockKey) -> impl Future<Output = Result<Vec<EntryView>>> + MaybeSend {
        self.list(lock)
    }

    /// All entries of a lock, in order.
    fn list(&self, lock: &LockKey) -> impl Future<Output = Result<Vec<EntryView>>> + MaybeSend;

    /// The places and modes of all entries of a lock, in order: what whoever waits needs of the list.
    fn standings(&self, lock: &LockKey) -> impl Future<Output = Result<Vec<Standing>>> + MaybeSend {
        async move { Ok(self.list(lock).await?.into_iter().map(|view| view.standing).collect()) }
    }

    /// Ends a session, and removes its entries. From this call on the driver sends nothing that keeps the session alive,
    /// whether the store can be reached or not. What is not confirmed is asked for again; a session that has ended is confirmed.
    fn end(&self, of: SessionId) -> impl Future<Output = Result<(), Failure>> + MaybeSend;

    /// The locks that have entries and whose key begins with `prefix`, in order.
    fn names(&self, prefix: &str) -> impl Future<Output = Result<Vec<LockKey>>> + MaybeSend;

    /// The same store's cells, if it keeps any.
    fn cells(&self) -> Option<Cells<'_>> {
        None
    }

    /// Lets go of connections and files. Calls after it fail with the code `closed`.
    fn close(&self) -> impl Future<Output = ()> + MaybeSend;
}
