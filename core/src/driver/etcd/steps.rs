//! The calls of the entry queue, each one transaction. Each compares the session's key too, so it does nothing, and says so, when
//! the session has ended, whether or not anybody here knows that.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::fault::ended;
use super::layout::{EntryText, Layout, Stored};
use super::link::Link;
use super::message::{
    Compare, DeleteRange, KeepAlive, KeyValue, LeaseGrant, LeaseRevoke, Operation, Put, Reply,
    TimeToLive, Txn, TxnAnswer, one,
};
use super::watches::{Sessions, Watches};
use crate::error::{Code, Error, Result};
use crate::port::detach_on_drop::DetachOnDrop;
use crate::port::left_owners::LeftOwners;
use crate::port::{
    Applied, Entry, Failure, Joined, LockKey, OwnerId, QueueSink, Rank, SessionId, Standing,
};
use crate::runtime::sync::Mutex;

/// How many keys one transaction reads; servers take 128 operations.
const AT_ONCE: usize = 100;
/// Fencing tokens are made of numbers below this.
const MOST: u64 = 1 << 48;

/// The state that the calls of one client share.
#[derive(Clone)]
pub(super) struct Steps {
    pub(super) link: Arc<Link>,
    pub(super) layout: Layout,
    pub(super) sessions: Arc<Sessions>,
    pub(super) watches: Arc<Watches>,
    pub(super) joins: Arc<Joins>,
}

impl Steps {
    pub(super) async fn open(&self, ttl: Duration, sink: QueueSink) -> Result<SessionId> {
        let seconds = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX);
        if ttl.subsec_nanos() != 0 || seconds == 0 {
            let message = "on etcd the session's `ttl` must be whole seconds";
            return Err(Error::invalid("ttl", message));
        }
        let granted = self.link.call(LeaseGrant { ttl: seconds }).await;
        let granted = granted.map_err(|failure| failure.error)?;
        let id = SessionId::new(granted.id.cast_unsigned());
        // Every later transaction compares that this key is there. It ends with the lease.
        let key = Operation::Put(Put {
            key: self.layout.session(id).into(),
            lease: granted.id,
            ..Put::default()
        });
        let made = match granted.ttl {
            given if given != seconds => Err(other_ttl(given)),
            _ => {
                self.link.call(Txn::default().then(vec![key])).await.map_err(|failed| failed.error)
            }
        };
        if let Err(error) = made {
            // If that fails too, the lease ends by itself.
            let _ = self.link.call(LeaseRevoke { id: granted.id }).await;
            return Err(error);
        }
        self.sessions.lock().insert(id, sink);
        let (watches, key) = (self.watches.clone(), self.layout.session(id));
        let following = async move { watches.follow_session(id, key).await };
        self.link.runtime.spawn(Box::pin(following));
        Ok(id)
    }

    pub(super) async fn beat(&self, of: SessionId) -> Result<Duration, Failure> {
        self.is_known(of)?;
        // First, so that what ends behind the answer is told by the watch, also after its stream was lost.
        self.watches.follow_session(of, self.layout.session(of)).await;
        let sessions = self.sessions.clone();
        let wanted = move || sessions.lock().contains_key(&of);
        let beat = KeepAlive { id: lease(of) };
        let left = self.link.beat(beat, wanted).await?.ttl;
        match u64::try_from(left) {
            Ok(left) if left > 0 => Ok(Duration::from_secs(left)),
            _ => Err(self.lose(of)),
        }
    }

    pub(super) async fn join(
        &self,
        of: SessionId,
        lock: &LockKey,
        entry: &Entry,
    ) -> Result<Option<Joined>, Failure> {
        let owner = entry.owner;
        let (key, left) = (self.layout.entry(lock, owner), self.layout.left(owner));
        let value = EntryText::of(entry).written();
        let put = Put { key: key.clone().into(), value, lease: lease(of) };
        let unless = vec![Compare::created(&key, 0), Compare::created(&left, 0)];
        let make = vec![Operation::Put(put), Operation::Range(self.layout.all(lock))];
        self.is_known(of)?;
        if !self.joins.begin(of, owner) {
            return Ok(None);
        }
        let steps = self.clone();
        // To its end, whoever stays for it: its answer says that nothing comes late.
        let work = async move {
            let answer = steps.change(of, unless, make, vec![one(&left)]).await;
            let unknown = matches!(&answer, Err(failure) if failure.applied == Applied::Unknown);
            if !unknown && steps.joins.answered(owner) {
                steps.forget_left(owner).await;
            }
            answer
        };
        let answer = match DetachOnDrop::new(Box::pin(work), &self.link.runtime).await? {
            Ok(answer) => answer,
            Err(found) if found.is_empty() => {
                let message = "an owner id was to join twice";
                return Err(Failure::refused(Error::internal(message)));
            }
            Err(_) => return Ok(None),
        };
        let fence = answer.revision().unsigned_abs();
        if fence >= MOST {
            let message = "the store's revision is too large to make fencing tokens of it; restore the keys into a new cluster";
            return Err(Failure::unknown(Error::new(Code::Unsupported, message)));
        }
        let rank = Rank::new(fence, key);
        let mut before = self.layout.entries(lock, answer.found().next().unwrap_or_default());
        before.retain(|stored| stored.rank.place() < fence);
        if let Some(stays) = before.iter().find(|stored| stored.lease == 0) {
            let error = no_lease(stays.rank.name());
            return Err(match self.leave(of, lock, owner, Some(&rank)).await {
                Ok(_) => Failure::refused(error),
                Err(_) => Failure::unknown(error),
            });
        }
        let before = before.iter().map(Stored::standing).collect();
        Ok(Some(Joined { rank, fence, before }))
    }

    pub(super) async fn watch(
        &self,
        of: SessionId,
        lock: &LockKey,
        known: &[Standing],
    ) -> Result<Vec<Rank>, Failure> {
        self.is_known(of)?;
        self.watches.begin(of, lock, known).await.map_err(Failure::refused)?;
        let mut present = Vec::new();
        for known in known.chunks(AT_ONCE) {
            let keys = known.iter().map(|standing| one(standing.rank.name())).collect();
            let answer = self.change(of, Vec::new(), keys, Vec::new()).await?;
            present.extend(answer.into_iter().flat_map(TxnAnswer::found));
        }
        let mut gone = Vec::new();
        for (Standing { rank, .. }, found) in known.iter().zip(present) {
            let found = self.layout.entries(lock, found).pop();
            if found.is_none_or(|stored| stored.rank.place() != rank.place()) {
                self.watches.forget(of, rank);
                gone.push(rank.clone());
            }
        }
        Ok(gone)
    }

    pub(super) async fn leave(
        &self,
        of: SessionId,
        lock: &LockKey,
        owner: OwnerId,
        at: Option<&Rank>,
    ) -> Result<bool, Failure> {
        let delete = |key: &str| vec![Operation::Delete(DeleteRange { key: key.into() })];
        if let Some(rank) = at {
            let there = vec![created(rank)];
            return Ok(self.change(of, there, delete(rank.name()), Vec::new()).await?.is_ok());
        }
        let key = self.layout.entry(lock, owner);
        let there = vec![Compare::exists(&key)];
        if !self.joins.refuse(owner) {
            return Ok(self.change(of, there, delete(&key), Vec::new()).await?.is_ok());
        }
        // Unary calls have no order: the join may still arrive behind its removal, and is refused by this key.
        let mark = Put { key: self.layout.left(owner).into(), lease: lease(of), ..Put::default() };
        let refuse = Txn::when(vec![Compare::exists(&self.layout.session(of))])
            .then(vec![Operation::Put(mark)]);
        let refuse = vec![Operation::Txn(refuse)];
        let found = self.change(of, there, delete(&key), refuse).await;
        // The join was answered before this was: nobody else removes the key.
        if !self.joins.is_open(owner) && !matches!(&found, Ok(Ok(_))) {
            self.forget_left(owner).await;
        }
        Ok(found?.is_ok())
    }

    /// Removes the key that refuses a join. If that is lost, it goes with the session.
    async fn forget_left(&self, owner: OwnerId) {
        let delete = DeleteRange { key: self.layout.left(owner).into() };
        let _ = self.link.call(Txn::default().then(vec![Operation::Delete(delete)])).await;
    }

    /// The entries of a lock.
    pub(super) async fn all(&self, lock: &LockKey) -> Result<Vec<Stored>> {
        let found = self.link.call(self.layout.all(lock)).await;
        Ok(self.layout.entries(lock, found.map_err(|failure| failure.error)?.kvs))
    }

    /// The time left of a lease of any client; `None` for an entry without a lease, or if the server does not say.
    pub(super) async fn left(&self, lease: i64) -> Result<Option<Duration>> {
        if lease == 0 {
            return Ok(None);
        }
        match self.link.call(TimeToLive { id: lease }).await {
            // Less than nothing is left of one that has ended.
            Ok(answer) => Ok(Some(Duration::from_secs(u64::try_from(answer.ttl).unwrap_or(0)))),
            // Newer servers do not tell whoever must not read all keys of the lease.
            Err(failure) if failure.error.code() == Code::Auth => Ok(None),
            Err(failure) => Err(failure.error),
        }
    }

    pub(super) async fn end(&self, of: SessionId) -> Result<(), Failure> {
        self.forget(of);
        match self.link.call(LeaseRevoke { id: lease(of) }).await {
            Err(failure) if failure.error.code() != Code::Lost => Err(failure),
            _ => Ok(()),
        }
    }

    /// Does `then` in one step if the session lives and all of `when` is true. Else answers what the Range of `otherwise` has found.
    async fn change(
        &self,
        of: SessionId,
        when: Vec<Compare>,
        then: Vec<Operation>,
        otherwise: Vec<Operation>,
    ) -> Result<Result<TxnAnswer, Vec<KeyValue>>, Failure> {
        self.is_known(of)?;
        let session = self.layout.session(of);
        // etcd reports a lost lease to a put only. A delete or a read would look like "the entry is gone".
        let mut all = vec![Compare::exists(&session)];
        all.extend(when);
        let mut operations = vec![one(&session)];
        operations.extend(otherwise);
        let answer = self.link.call(Txn::when(all).then(then).otherwise(operations)).await;
        let answer = answer.map_err(|failure| match failure.error.code() {
            Code::Lost => self.lose(of),
            _ => failure,
        })?;
        if answer.succeeded {
            return Ok(Ok(answer));
        }
        let mut replies = answer.replies();
        match (replies.next(), replies.next()) {
            (Some(Reply::Range(session)), _) if session.kvs.is_empty() => Err(self.lose(of)),
            (_, Some(Reply::Range(found))) => Ok(Err(found.kvs)),
            _ => Ok(Err(Vec::new())),
        }
    }

    /// Whether this session has ended as far as is known here.
    fn is_known(&self, of: SessionId) -> Result<(), Failure> {
        self.link.check_open().map_err(Failure::refused)?;
        let known = self.sessions.lock().contains_key(&of);
        if known { Ok(()) } else { Err(ended()) }
    }

    fn forget(&self, of: SessionId) {
        let sink = self.sessions.lock().remove(&of);
        drop(sink);
        self.joins.forget_all(of);
        self.watches.forget_all(of);
    }

    /// The store says that a session has ended.
    fn lose(&self, of: SessionId) -> Failure {
        self.forget(of);
        ended()
    }
}

/// The number of the lease.
fn lease(of: SessionId) -> i64 {
    of.get().cast_signed()
}

/// The entry is there.
fn created(rank: &Rank) -> Compare {
    Compare::created(rank.name(), i64::try_from(rank.place()).unwrap_or(i64::MAX))
}

/// A key of another program stands where a lock has its entries, and nothing will ever remove it.
fn no_lease(key: &str) -> Error {
    let message = "a key without a lease lies among the entries of this lock, and would be waited for for ever; choose another name or prefix, or remove the key";
    Error::new(Code::Conflict, message).with("key", key)
}

fn other_ttl(given: i64) -> Error {
    let message = format!(
        "this cluster gives no session of the `ttl` asked for, but one of {given} s: ask for that, or change its `--election-timeout`"
    );
    Error::invalid("ttl", message)
}

/// The joins that this client sent or took back: whether one can still arrive, and whether its refusing key has to be deleted.
#[derive(Default)]
pub(super) struct Joins(Mutex<State>);

#[derive(Default)]
struct State {
    /// Those without a certain answer: of which session, and whether the key may be there that refuses one which comes late.
    open: BTreeMap<OwnerId, (SessionId, bool)>,
    /// The newest that were taken back with nothing of them on the way.
    left: LeftOwners,
}

impl Joins {
    /// A join is about to be sent. Whether it may be: it was not taken back before.
    pub(super) fn begin(&self, of: SessionId, owner: OwnerId) -> bool {
        let mut state = self.0.lock();
        let may = !state.left.contains(owner);
        if may {
            state.open.insert(owner, (of, false));
        }
        may
    }

    /// A join has a certain answer: it does not come late. Whether the key that refuses it may be there.
    pub(super) fn answered(&self, owner: OwnerId) -> bool {
        self.0.lock().open.remove(&owner).is_some_and(|(_, refused)| refused)
    }

    /// Whether a join may still come.
    pub(super) fn is_open(&self, owner: OwnerId) -> bool {
        self.0.lock().open.contains_key(&owner)
    }

    /// A join is taken back. True if it was sent and may still arrive: a key on the store has to refuse it. Otherwise it is never sent.
    pub(super) fn refuse(&self, owner: OwnerId) -> bool {
        let State { open, left } = &mut *self.0.lock();
        if let Some((_, refused)) = open.get_mut(&owner) {
            *refused = true;
            return true;
        }
        left.add(owner);
        false
    }

    /// A session is over, and all that was sent for it.
    pub(super) fn forget_all(&self, of: SessionId) {
        self.0.lock().open.retain(|_, (session, _)| *session != of);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_join_is_not_sent_once_it_was_taken_back() {
        let (joins, owner) = (Joins::default(), OwnerId::parse(&"7".repeat(32)).unwrap());
        assert!(!joins.refuse(owner), "nothing of it is on the way");
        assert!(!joins.begin(SessionId::new(1), owner), "it was taken back before");
    }

    #[test]
    fn a_join_that_may_still_come_is_refused_by_a_key() {
        let (joins, owner) = (Joins::default(), OwnerId::parse(&"7".repeat(32)).unwrap());
        assert!(joins.begin(SessionId::new(1), owner));
        assert!(joins.refuse(owner));
        assert!(joins.answered(owner), "the key may be there");
    }
}
