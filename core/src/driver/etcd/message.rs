//! The messages of etcd's protocol that this driver uses, with no field that it does not use. The numbers are those of etcd's v3 API. Written by
//! hand: a user who adds this crate has no `protoc`.

use prost::{Message, Oneof};

/// The header at the beginning of every answer.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Header {
    /// The store's revision when it answered.
    #[prost(int64, tag = "3")]
    pub(super) revision: i64,
}

/// A request that is answered once.
pub(super) trait Call: Message + Clone + 'static {
    type Answer: Message + Default + Send + Sync + 'static;
    /// The name of the method.
    const PATH: &'static str;
}

/// A key as it lies on the store.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(int64, tag = "2")]
    pub(super) create_revision: i64,
    #[prost(int64, tag = "3")]
    pub(super) mod_revision: i64,
    #[prost(bytes = "vec", tag = "5")]
    pub(super) value: Vec<u8>,
    #[prost(int64, tag = "6")]
    pub(super) lease: i64,
}

/// Asks for the keys from `key` up to `end`; without an end for this one.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Range {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) end: Vec<u8>,
    #[prost(bool, tag = "8")]
    pub(super) keys_only: bool,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RangeAnswer {
    #[prost(message, repeated, tag = "2")]
    pub(super) kvs: Vec<KeyValue>,
}

impl Call for Range {
    type Answer = RangeAnswer;
    const PATH: &'static str = "/etcdserverpb.KV/Range";
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Put {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) value: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(super) lease: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct DeleteRange {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
}

/// An answer of which no field is read.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Done {}

/// One operation of a transaction.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RequestOp {
    #[prost(oneof = "Operation", tags = "1, 2, 3, 4")]
    request: Option<Operation>,
}

#[derive(Clone, PartialEq, Eq, Oneof)]
pub(super) enum Operation {
    #[prost(message, tag = "1")]
    Range(Range),
    #[prost(message, tag = "2")]
    Put(Put),
    #[prost(message, tag = "3")]
    Delete(DeleteRange),
    #[prost(message, tag = "4")]
    Txn(Txn),
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ResponseOp {
    #[prost(oneof = "Reply", tags = "1, 2, 3, 4")]
    response: Option<Reply>,
}

/// How an operation was answered.
#[derive(Clone, PartialEq, Eq, Oneof)]
pub(super) enum Reply {
    #[prost(message, tag = "1")]
    Range(RangeAnswer),
    #[prost(message, tag = "2")]
    Put(Done),
    #[prost(message, tag = "3")]
    Delete(Done),
    #[prost(message, tag = "4")]
    Txn(TxnAnswer),
}

/// A condition that a key has to meet.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Compare {
    /// 0: equal, 1: greater.
    #[prost(int32, tag = "1")]
    result: i32,
    /// 1: the revision that made it, 2: the one that wrote it last.
    #[prost(int32, tag = "2")]
    target: i32,
    #[prost(bytes = "vec", tag = "3")]
    key: Vec<u8>,
    #[prost(oneof = "Compared", tags = "5, 6")]
    with: Option<Compared>,
}

#[derive(Clone, Copy, PartialEq, Eq, Oneof)]
enum Compared {
    #[prost(int64, tag = "5")]
    Created(i64),
    #[prost(int64, tag = "6")]
    Modified(i64),
}

impl Compare {
    /// The key is there.
    pub(super) fn exists(key: &str) -> Self {
        Self { result: 1, target: 1, key: key.into(), with: Some(Compared::Created(0)) }
    }

    /// This revision made the key; 0: it is not there.
    pub(super) fn created(key: &str, revision: i64) -> Self {
        Self { result: 0, target: 1, key: key.into(), with: Some(Compared::Created(revision)) }
    }

    /// This revision wrote the key last.
    pub(super) fn modified(key: &str, revision: i64) -> Self {
        Self { result: 0, target: 2, key: key.into(), with: Some(Compared::Modified(revision)) }
    }
}

/// Does the one if all of it is true, else the other, in one step.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Txn {
    #[prost(message, repeated, tag = "1")]
    compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    failure: Vec<RequestOp>,
}

impl Txn {
    pub(super) fn when(compare: Vec<Compare>) -> Self {
        Self { compare, ..Self::default() }
    }

    pub(super) fn then(mut self, operations: Vec<Operation>) -> Self {
        self.success = wrapped(operations);
        self
    }

    pub(super) fn otherwise(mut self, operations: Vec<Operation>) -> Self {
        self.failure = wrapped(operations);
        self
    }
}

fn wrapped(operations: Vec<Operation>) -> Vec<RequestOp> {
    operations.into_iter().map(|request| RequestOp { request: Some(request) }).collect()
}

impl Call for Txn {
    type Answer = TxnAnswer;
    const PATH: &'static str = "/etcdserverpb.KV/Txn";
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct TxnAnswer {
    #[prost(message, optional, tag = "1")]
    header: Option<Header>,
    #[prost(bool, tag = "2")]
    pub(super) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    responses: Vec<ResponseOp>,
}

impl TxnAnswer {
    /// The revision of what it did.
    pub(super) fn revision(&self) -> i64 {
        self.header.map_or(0, |header| header.revision)
    }

    /// How the operations were answered, in their order.
    pub(super) fn replies(self) -> impl Iterator<Item = Reply> {
        self.responses.into_iter().filter_map(|response| response.response)
    }

    /// The keys that each Range among the operations has found.
    pub(super) fn found(self) -> impl Iterator<Item = Vec<KeyValue>> {
        self.replies().filter_map(|reply| match reply {
            Reply::Range(found) => Some(found.kvs),
            _ => None,
        })
    }
}

/// This key.
pub(super) fn one(key: &str) -> Operation {
    Operation::Range(Range { key: key.into(), ..Range::default() })
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct LeaseGrant {
    /// In seconds.
    #[prost(int64, tag = "1")]
    pub(super) ttl: i64,
}

/// How a grant or a heartbeat was answered.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Leased {
    #[prost(int64, tag = "2")]
    pub(super) id: i64,
    /// In seconds; nothing is left of a lease that has ended.
    #[prost(int64, tag = "3")]
    pub(super) ttl: i64,
}

impl Call for LeaseGrant {
    type Answer = Leased;
    const PATH: &'static str = "/etcdserverpb.Lease/LeaseGrant";
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct LeaseRevoke {
    #[prost(int64, tag = "1")]
    pub(super) id: i64,
}

impl Call for LeaseRevoke {
    type Answer = Done;
    const PATH: &'static str = "/etcdserverpb.Lease/LeaseRevoke";
}

/// A heartbeat. The method is a stream, which one request and one answer are too.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct KeepAlive {
    #[prost(int64, tag = "1")]
    pub(super) id: i64,
}

impl Call for KeepAlive {
    type Answer = Leased;
    const PATH: &'static str = "/etcdserverpb.Lease/LeaseKeepAlive";
}

/// Asks what is left of a lease, anyone's.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct TimeToLive {
    #[prost(int64, tag = "1")]
    pub(super) id: i64,
}

impl Call for TimeToLive {
    type Answer = Leased;
    const PATH: &'static str = "/etcdserverpb.Lease/LeaseTimeToLive";
}

#[derive(Clone, PartialEq, Eq, Message)]
#[prost(skip_debug)]
pub(super) struct Authenticate {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) password: String,
}

/// Shows no password.
impl std::fmt::Debug for Authenticate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authenticate")
    }
}

#[derive(Clone, PartialEq, Eq, Message)]
#[prost(skip_debug)]
pub(super) struct Authenticated {
    #[prost(string, tag = "2")]
    pub(super) token: String,
}

/// Shows no token.
impl std::fmt::Debug for Authenticated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authenticated")
    }
}

impl Call for Authenticate {
    type Answer = Authenticated;
    const PATH: &'static str = "/etcdserverpb.Auth/Authenticate";
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Status {}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct StatusAnswer {
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

impl Call for Status {
    type Answer = StatusAnswer;
    const PATH: &'static str = "/etcdserverpb.Maintenance/Status";
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct WatchRequest {
    #[prost(oneof = "Request", tags = "1, 2")]
    request: Option<Request>,
}

#[derive(Clone, PartialEq, Eq, Oneof)]
enum Request {
    #[prost(message, tag = "1")]
    Create(CreateWatch),
    #[prost(message, tag = "2")]
    Cancel(CancelWatch),
}

/// Tells what becomes of a key from now on.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct CreateWatch {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) key: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct CancelWatch {
    #[prost(int64, tag = "1")]
    pub(super) id: i64,
}

impl WatchRequest {
    pub(super) const PATH: &'static str = "/etcdserverpb.Watch/Watch";
}

impl From<CreateWatch> for WatchRequest {
    fn from(create: CreateWatch) -> Self {
        Self { request: Some(Request::Create(create)) }
    }
}

impl From<CancelWatch> for WatchRequest {
    fn from(cancel: CancelWatch) -> Self {
        Self { request: Some(Request::Cancel(cancel)) }
    }
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct WatchAnswer {
    /// Which watch; -1: one that was refused.
    #[prost(int64, tag = "2")]
    pub(super) id: i64,
    #[prost(bool, tag = "3")]
    pub(super) created: bool,
    #[prost(bool, tag = "4")]
    pub(super) canceled: bool,
    #[prost(message, repeated, tag = "11")]
    pub(super) events: Vec<Event>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Event {
    /// 0: the key was written, 1: it was removed.
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) kv: Option<KeyValue>,
}

impl Event {
    pub(super) fn is_removal(&self) -> bool {
        self.kind == 1
    }
}
