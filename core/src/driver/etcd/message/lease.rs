//! Leases, tokens of users, and what a server is.

use prost::Message;

use super::Call;
use super::kv::Done;

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(in super::super) struct LeaseGrant {
    /// In seconds.
    #[prost(int64, tag = "1")]
    pub(in super::super) ttl: i64,
}

/// How a grant or a heartbeat was answered.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(in super::super) struct Leased {
    #[prost(int64, tag = "2")]
    pub(in super::super) id: i64,
    /// In seconds; nothing is left of a lease that has ended.
    #[prost(int64, tag = "3")]
    pub(in super::super) ttl: i64,
}

impl Call for LeaseGrant {
    type Answer = Leased;
    const PATH: &'static str = "/etcdserverpb.Lease/LeaseGrant";
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(in super::super) struct LeaseRevoke {
    #[prost(int64, tag = "1")]
    pub(in super::super) id: i64,
}

impl Call for LeaseRevoke {
    type Answer = Done;
    const PATH: &'static str = "/etcdserverpb.Lease/LeaseRevoke";
}

/// A heartbeat. The method is a stream, which one request and one answer are too.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(in super::super) struct KeepAlive {
    #[prost(int64, tag = "1")]
    pub(in super::super) id: i64,
}

impl Call for KeepAlive {
    type Answer = Leased;
    const PATH: &'static str = "/etcdserverpb.Lease/LeaseKeepAlive";
}

/// Asks what is left of a lease, anyone's.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(in super::super) struct TimeToLive {
    #[prost(int64, tag = "1")]
    pub(in super::super) id: i64,
}

impl Call for TimeToLive {
    type Answer = Leased;
    const PATH: &'static str = "/etcdserverpb.Lease/LeaseTimeToLive";
}

#[derive(Clone, PartialEq, Eq, Message)]
#[prost(skip_debug)]
pub(in super::super) struct Authenticate {
    #[prost(string, tag = "1")]
    pub(in super::super) name: String,
    #[prost(string, tag = "2")]
    pub(in super::super) password: String,
}

/// Shows no password.
impl std::fmt::Debug for Authenticate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authenticate")
    }
}

#[derive(Clone, PartialEq, Eq, Message)]
#[prost(skip_debug)]
pub(in super::super) struct Authenticated {
    #[prost(string, tag = "2")]
    pub(in super::super) token: String,
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
pub(in super::super) struct Status {}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in super::super) struct StatusAnswer {
    #[prost(string, tag = "2")]
    pub(in super::super) version: String,
}

impl Call for Status {
    type Answer = StatusAnswer;
    const PATH: &'static str = "/etcdserverpb.Maintenance/Status";
}
