//! Keys and their values.

use prost::{Message, Oneof};

use super::{Call, Header};

/// A key as it lies on the store.
#[derive(Clone, PartialEq, Eq, Message)]
pub(in super::super) struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    pub(in super::super) key: Vec<u8>,
    #[prost(int64, tag = "2")]
    pub(in super::super) create_revision: i64,
    #[prost(int64, tag = "3")]
    pub(in super::super) mod_revision: i64,
    #[prost(bytes = "vec", tag = "5")]
    pub(in super::super) value: Vec<u8>,
    #[prost(int64, tag = "6")]
    pub(in super::super) lease: i64,
}

/// Asks for the keys from `key` up to `end`; without an end for this one.
#[derive(Clone, PartialEq, Eq, Message)]
pub(in super::super) struct Range {
    #[prost(bytes = "vec", tag = "1")]
    pub(in super::super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(in super::super) end: Vec<u8>,
    #[prost(bool, tag = "8")]
    pub(in super::super) keys_only: bool,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in super::super) struct RangeAnswer {
    #[prost(message, repeated, tag = "2")]
    pub(in super::super) kvs: Vec<KeyValue>,
}

impl Call for Range {
    type Answer = RangeAnswer;
    const PATH: &'static str = "/etcdserverpb.KV/Range";
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in super::super) struct Put {
    #[prost(bytes = "vec", tag = "1")]
    pub(in super::super) key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(in super::super) value: Vec<u8>,
    #[prost(int64, tag = "3")]
    pub(in super::super) lease: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in super::super) struct DeleteRange {
    #[prost(bytes = "vec", tag = "1")]
    pub(in super::super) key: Vec<u8>,
}

/// An answer of which no field is read.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(in super::super) struct Done {}

/// One operation of a transaction.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RequestOp {
    #[prost(oneof = "Operation", tags = "1, 2, 3, 4")]
    request: Option<Operation>,
}

#[derive(Clone, PartialEq, Eq, Oneof)]
pub(in super::super) enum Operation {
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
pub(in super::super) enum Reply {
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
pub(in super::super) struct Compare {
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
    pub(in super::super) fn exists(key: &str) -> Self {
        Self { result: 1, target: 1, key: key.into(), with: Some(Compared::Created(0)) }
    }

    /// This revision made the key; 0: it is not there.
    pub(in super::super) fn created(key: &str, revision: i64) -> Self {
        Self { result: 0, target: 1, key: key.into(), with: Some(Compared::Created(revision)) }
    }

    /// This revision wrote the key last.
    pub(in super::super) fn modified(key: &str, revision: i64) -> Self {
        Self { result: 0, target: 2, key: key.into(), with: Some(Compared::Modified(revision)) }
    }
}

/// Does the one if all of it is true, else the other, in one step.
#[derive(Clone, PartialEq, Eq, Message)]
pub(in super::super) struct Txn {
    #[prost(message, repeated, tag = "1")]
    compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    failure: Vec<RequestOp>,
}

impl Txn {
    pub(in super::super) fn when(compare: Vec<Compare>) -> Self {
        Self { compare, ..Self::default() }
    }

    pub(in super::super) fn then(mut self, operations: Vec<Operation>) -> Self {
        self.success = wrapped(operations);
        self
    }

    pub(in super::super) fn otherwise(mut self, operations: Vec<Operation>) -> Self {
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
pub(in super::super) struct TxnAnswer {
    #[prost(message, optional, tag = "1")]
    header: Option<Header>,
    #[prost(bool, tag = "2")]
    pub(in super::super) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    responses: Vec<ResponseOp>,
}

impl TxnAnswer {
    /// The revision of what it did.
    pub(in super::super) fn revision(&self) -> i64 {
        self.header.map_or(0, |header| header.revision)
    }

    /// How the operations were answered, in their order.
    pub(in super::super) fn replies(self) -> impl Iterator<Item = Reply> {
        self.responses.into_iter().filter_map(|response| response.response)
    }

    /// The keys that each Range among the operations has found.
    pub(in super::super) fn found(self) -> impl Iterator<Item = Vec<KeyValue>> {
        self.replies().filter_map(|reply| match reply {
            Reply::Range(found) => Some(found.kvs),
            _ => None,
        })
    }
}

/// This key.
pub(in super::super) fn one(key: &str) -> Operation {
    Operation::Range(Range { key: key.into(), ..Range::default() })
}
