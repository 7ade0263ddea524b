//! The calls of the entry queue, each for a session. Requests of one session are carried out in the order they were sent, so what
//! is looked for behind a request without an answer is there, or never will be.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{OptionFuture, join, join_all};
use zookeeper_client::{Client, CreateMode, Error as Fault, MultiWriteError};

use super::fault::{foreign, judge, not_kazoos};
use super::layout::{Child, Names, Node, digits};
use super::layout::{LEASES, Layout};
use super::places::{folder, named, names, owner, path};
use super::session::{Session, Sessions};
use crate::driver::entry_text::EntryText;
use crate::error::{Code, Error};
use crate::port::{Entry, EntryView, Failure, Joined, LockKey, OwnerId, Rank, Standing};

/// Fencing tokens are made of numbers below this.
const MOST: u64 = 1 << 48;
/// Any version of a node.
const ANY: i32 = -1;
/// A tick of the server, as it comes.
const TICK: Duration = Duration::from_secs(2);

/// The calls of one session.
pub(super) struct Steps {
    pub(super) sessions: Arc<Sessions>,
    pub(super) session: Arc<Session>,
    pub(super) layout: Layout,
}

impl Steps {
    pub(super) fn failed(&self, fault: &Fault) -> Failure {
        judge(&self.sessions.address, fault)
    }

    /// Removes an entry that was made and is of no use, for this reason.
    async fn taken_back(&self, path: &str, why: Error) -> Failure {
        match self.session.client.delete(path, None).await {
            Ok(()) | Err(Fault::NoNode) => Failure::refused(why),
            Err(_) => Failure::unknown(why),
        }
    }

    /// A request that most members confirm. A follower tells the leader of us with its next ping only, and may die before: a session has
    /// at most half as many ticks as are in its length.
    pub(super) async fn beat(&self) -> Result<Duration, Failure> {
        let Session { client, ttl, .. } = &*self.session;
        confirm(client).await.map_err(|fault| self.failed(&fault))?;
        Ok(ttl.saturating_sub(TICK.min(*ttl / 4)))
    }

    pub(super) async fn join(
        &self,
        lock: &LockKey,
        entry: &Entry,
    ) -> Result<Option<Joined>, Failure> {
        let Session { client, left, .. } = &*self.session;
        let Entry { owner, mode, .. } = *entry;
        let names = Names::of(lock.layout());
        if !names.has(mode) {
            return Err(Failure::refused(not_kazoos()));
        }
        let (main, own) = (self.layout.folder(lock), self.layout.folder_of(lock, mode));
        let path = format!("{own}/{}{}", names.stem(owner), names.marker(mode));
        let value = EntryText::of(entry).written();
        let options = self.sessions.options(CreateMode::EphemeralSequential);
        let (stat, sequence, listed) = loop {
            // Sent in one piece: behind a look for this owner id nothing of it is sent any more.
            let (making, listing, listing_main) = {
                let left = left.lock();
                if left.contains(owner) {
                    return Ok(None);
                }
                let making = client.create(&path, &value, &options);
                let listing = client.list_children(&own);
                (making, listing, (own != main).then(|| client.list_children(&main)))
            };
            match making.await {
                Ok((stat, sequence)) => {
                    let listed = join(listing, OptionFuture::from(listing_main)).await;
                    break (stat, sequence, listed);
                }
                Err(Fault::NoNode) => self.make(&own, names).await?,
                Err(fault) => return Err(self.failed(&fault)),
            }
        };
        let name = format!("{path}{}", digits(sequence.into_i64() as i32));
        let fence = stat.czxid.unsigned_abs();
        if fence >= MOST {
            let message = "the store's transaction number is too large to make fencing tokens of it; restore the nodes into a new ensemble";
            return Err(Failure::unknown(Error::new(Code::Unsupported, message)));
        }
        let listed = listed.0.and_then(|own| Ok((own, listed.1.transpose()?)));
        let (children, others) = match listed {
            Ok(listed) => listed,
            Err(fault) => return Err(self.taken_back(&name, self.failed(&fault).error).await),
        };
        let all = children.iter().chain(others.iter().flatten());
        if let Some(who) = all.map(|name| Child::read(name, names)).find_map(Child::foreign) {
            return Err(self.taken_back(&name, foreign(who, names, &own)).await);
        }
        let permits = self.layout.leases(lock);
        let beside = match others {
            Some(children) => self.sessions.places.stored(&main, names, &children),
            None if names == Names::Curator && children.iter().any(|name| name == LEASES) => {
                match self::children(client, &permits).await {
                    Ok(children) => self.sessions.places.stored(&permits, names, &children),
                    Err(fault) => {
                        return Err(self.taken_back(&name, self.failed(&fault).error).await);
                    }
                }
            }
            None => Vec::new(),
        };
        let last = name.rsplit('/').next().unwrap_or_default();
        let Some(node) = Child::read(last, names).entry() else {
            let error =
                Error::internal("the server has named an entry in a way fencelock does not know");
            return Err(Failure::unknown(error.with("name", last)));
        };
        // The name alone does not tell a mutex of kazoo's from a writer.
        let node = Node { mode, ..node };
        let rank = self.sessions.enter(&self.session, &own, names, &node);
        let mut before = self.sessions.places.stored(&own, names, &children);
        before.retain(|stored| stored.rank < rank);
        before.extend(beside);
        before.sort_by(|one, other| one.rank.cmp(&other.rank));
        Ok(Some(Joined { rank, fence, before }))
    }

    /// Makes a node and those above it, which the server removes when they have been empty for a while.
    /// kazoo knows its node to be there once it has seen it.
    async fn make(&self, folder: &str, names: Names) -> Result<(), Failure> {
        let stays = names == Names::Kazoo;
        let mode = if stays { CreateMode::Persistent } else { CreateMode::Container };
        let options = self.sessions.options(mode);
        match self.session.client.mkdir(folder, &options).await {
            // One above it was removed meanwhile.
            Ok(()) | Err(Fault::NoNode) => Ok(()),
            Err(fault) => Err(self.failed(&fault)),
        }
    }

    /// An entry as it is now.
    pub(super) async fn find(&self, rank: &Rank) -> Result<Option<Standing>, Failure> {
        let Session { client, .. } = &*self.session;
        let (confirmed, listed) = join(confirm(client), children(client, folder(rank))).await;
        let listed = confirmed.and(listed).map_err(|fault| self.failed(&fault))?;
        let found = self.sessions.places.stored(folder(rank), names(rank), &listed);
        Ok(found.into_iter().find(|stored| stored.rank == *rank))
    }

    pub(super) async fn leave(
        &self,
        lock: &LockKey,
        owner: OwnerId,
        at: Option<&Rank>,
    ) -> Result<bool, Failure> {
        if let Some(rank) = at {
            return self.remove(rank).await;
        }
        let Session { client, left, .. } = &*self.session;
        let folders = [self.layout.folder(lock), self.layout.leases(lock)];
        // Confirmed first: the session may have moved to a member that has yet to hear what was made through another one.
        let (confirming, listing) = {
            let mut left = left.lock();
            left.add(owner);
            let confirming = confirm(client);
            (confirming, join_all(folders.iter().map(|folder| children(client, folder))))
        };
        let names = Names::of(lock.layout());
        let stem = names.stem(owner);
        let (confirmed, listed) = join(confirming, listing).await;
        confirmed.map_err(|fault| self.failed(&fault))?;
        for (folder, listed) in folders.iter().zip(listed) {
            let listed = listed.map_err(|fault| self.failed(&fault))?;
            let mut all = self.sessions.places.stored(folder, names, &listed).into_iter();
            let name = named(folder, names, &stem);
            let is_ours = |stored: &Standing| stored.rank.name() == name;
            if let Some(found) = all.find(is_ours) {
                return self.remove(&found.rank).await;
            }
        }
        Ok(false)
    }

    async fn remove(&self, rank: &Rank) -> Result<bool, Failure> {
        let known = self.session.own.lock().get(rank).cloned();
        let stored = match known {
            Some(known) => Some(known),
            None => self.find(rank).await?,
        };
        let deleted = match stored {
            Some(stored) => self.session.client.delete(&path(&stored), None).await,
            None => Err(Fault::NoNode),
        };
        match deleted {
            Ok(()) | Err(Fault::NoNode) => {
                self.sessions.left(&self.session, rank);
                Ok(deleted.is_ok())
            }
            Err(fault) => Err(self.failed(&fault)),
        }
    }
}

/// A transaction that changes nothing: most members confirm it, and the member that is asked knows all that went before. A `sync` would
/// be answered by a leader whom the others have left, up to `syncLimit` and a tick long. It is sent when this is called.
pub(super) fn confirm(client: &Client) -> impl Future<Output = Result<(), Fault>> + Send + '_ {
    let mut writer = client.new_multi_writer();
    let committed = writer.add_check_version("/", ANY).map(|()| writer.commit());
    async move {
        match committed?.await {
            // A client may have no right to read the root: the members have agreed about that too.
            Ok(_) | Err(MultiWriteError::OperationFailed { .. }) => Ok(()),
            Err(MultiWriteError::RequestFailed { source }) => Err(source),
        }
    }
}

/// The children of a node; none if it is not there.
pub(super) async fn children(client: &Client, folder: &str) -> Result<Vec<String>, Fault> {
    match client.list_children(folder).await {
        Err(Fault::NoNode) => Ok(Vec::new()),
        listed => listed,
    }
}

/// An entry as it describes itself; `None`: it is gone.
pub(super) async fn view(client: &Client, standing: Standing) -> Result<Option<EntryView>, Fault> {
    let (value, stat) = match client.get_data(&path(&standing)).await {
        Ok(found) => found,
        Err(Fault::NoNode) => return Ok(None),
        Err(fault) => return Err(fault),
    };
    let own = EntryText::parse(&value);
    let owner = own.as_ref().and_then(|_| owner(&standing.rank));
    let line = own.unwrap_or_else(|| EntryText::foreign(standing.mode));
    let fence = Some(stat.czxid.unsigned_abs());
    let EntryText { limit, info, .. } = line;
    let (age, left) = Default::default();
    Ok(Some(EntryView { standing, owner, fence, limit, age, left, info }))
}
