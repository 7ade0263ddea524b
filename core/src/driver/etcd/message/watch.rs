//! The stream of watches.

use prost::{Message, Oneof};

use super::KeyValue;

#[derive(Clone, PartialEq, Eq, Message)]
pub(in super::super) struct WatchRequest {
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
pub(in super::super) struct CreateWatch {
    #[prost(bytes = "vec", tag = "1")]
    pub(in super::super) key: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(in super::super) struct CancelWatch {
    #[prost(int64, tag = "1")]
    pub(in super::super) id: i64,
}

impl WatchRequest {
    pub(in super::super) const PATH: &'static str = "/etcdserverpb.Watch/Watch";
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
pub(in super::super) struct WatchAnswer {
    /// Which watch; -1: one that was refused.
    #[prost(int64, tag = "2")]
    pub(in super::super) id: i64,
    #[prost(bool, tag = "3")]
    pub(in super::super) created: bool,
    #[prost(bool, tag = "4")]
    pub(in super::super) canceled: bool,
    #[prost(message, repeated, tag = "11")]
    pub(in super::super) events: Vec<Event>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in super::super) struct Event {
    /// 0: the key was written, 1: it was removed.
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(message, optional, tag = "2")]
    pub(in super::super) kv: Option<KeyValue>,
}

impl Event {
    pub(in super::super) fn is_removal(&self) -> bool {
        self.kind == 1
    }
}
