//! The messages of etcd's protocol that this driver uses, with no field that it does not use. The numbers are those of etcd's v3 API.

// Written by hand: a user who adds this crate has no `protoc`.

mod kv;
mod lease;
mod watch;

use prost::Message;

pub(super) use self::kv::{
    Compare, DeleteRange, KeyValue, Operation, Put, Range, Reply, Txn, TxnAnswer, one,
};
pub(super) use self::lease::{
    Authenticate, KeepAlive, LeaseGrant, LeaseRevoke, Status, TimeToLive,
};
pub(super) use self::watch::{CancelWatch, CreateWatch, Event, WatchAnswer, WatchRequest};

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
