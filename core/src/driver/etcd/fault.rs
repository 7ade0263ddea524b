//! Failures on the way to a member and at it, as errors of fencelock: the message, whether the call was applied, the next step.

use std::fmt;

use tonic::{Code as Grpc, Status};

use crate::driver::hosts::Host;
pub(super) use crate::driver::hosts::{absent, unanswered};
pub(super) use crate::driver::members::ended;
use crate::error::{Code, Error};
use crate::port::{Applied, Failure};

/// How to go on with the connection after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It goes on.
    Keep,
    /// Another member is asked.
    Member,
    /// The token is not known any more: another one is asked for.
    Token,
}

/// A call that failed.
pub(super) struct Fault {
    pub(super) failure: Failure,
    pub(super) next: Next,
}

/// How far a request got on a connection that broke.
#[derive(Debug)]
pub(super) enum Broken {
    /// It has not left this machine.
    Unsent,
    /// It may have arrived.
    Sent(hyper::Error),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsent => f.write_str("the connection was closed"),
            Self::Sent(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Broken {}

/// The messages of members, each with its error code, how to go on, and the text for users.
const PHRASES: &[(&str, Code, Next, &str)] = &[
    ("requested lease not found", Code::Lost, Next::Keep, "the session has ended"),
    ("invalid auth token", Code::Auth, Next::Token, "the server does not know our token any more"),
    ("revision of auth store is old", Code::Auth, Next::Token, "the users have changed meanwhile"),
    (
        "user name is empty",
        Code::Auth,
        Next::Token,
        "the server wants a user and a password; put them into the URL",
    ),
    (
        "authentication failed",
        Code::Auth,
        Next::Keep,
        "the server refused the user name or password; correct them in the URL",
    ),
    (
        "authentication is not enabled",
        Code::Auth,
        Next::Keep,
        "the server knows no users; leave user and password out of the URL",
    ),
    (
        "permission denied",
        Code::Auth,
        Next::Keep,
        "the user may not do this on the server; grant its role reading and writing of all keys behind the prefix",
    ),
    (
        "etcdserver: no leader",
        Code::Unavailable,
        Next::Member,
        "the cluster has no leader now; try again",
    ),
    ("too many requests", Code::Unavailable, Next::Keep, "the server is overloaded; try again"),
    (
        "database space exceeded",
        Code::Unavailable,
        Next::Keep,
        "the store is full; compact and defragment it, then disarm the alarm with `etcdctl alarm disarm`",
    ),
    (
        "request is too large",
        Code::Invalid,
        Next::Keep,
        "the entry is larger than the server takes",
    ),
    (
        "too large lease TTL",
        Code::Invalid,
        Next::Keep,
        "the server gives no lease as long as this `ttl`",
    ),
];

/// The fault that a failed call amounts to: the error, whether the call was applied, and how to go on.
pub(super) fn judge(host: &Host, status: &Status) -> Fault {
    if let Some(source) = std::error::Error::source(status) {
        let error = unanswered(host, &source.to_string());
        let unsent = matches!(source.downcast_ref(), Some(Broken::Unsent));
        let applied = if unsent { Applied::No } else { Applied::Unknown };
        return Fault { failure: Failure { error, applied }, next: Next::Member };
    }
    let said = status.message();
    if let Some((_, code, next, message)) = PHRASES.iter().find(|row| said.contains(row.0)) {
        let error = replied(Error::new(*code, *message), host, said);
        return Fault { failure: Failure::refused(error), next: *next };
    }
    match status.code() {
        Grpc::Unimplemented => {
            let message = "what answers there is no etcd, or too old: etcd 3.4 or newer is needed";
            let error = replied(Error::new(Code::Unsupported, message), host, said);
            Fault { failure: Failure::refused(error), next: Next::Keep }
        }
        Grpc::InvalidArgument
        | Grpc::NotFound
        | Grpc::AlreadyExists
        | Grpc::PermissionDenied
        | Grpc::FailedPrecondition
        | Grpc::OutOfRange
        | Grpc::Unauthenticated => {
            let message = "the server refused a request in a way fencelock does not know";
            let error = replied(Error::internal(message), host, said);
            Fault { failure: Failure::refused(error), next: Next::Keep }
        }
        // Whether it was carried out is not said: a leader changed, or the members were slow to agree.
        _ => Fault { failure: Failure::unknown(unanswered(host, said)), next: Next::Member },
    }
}

fn replied(error: Error, host: &Host, reply: &str) -> Error {
    error.with("server", host.to_string()).with("reply", reply)
}

/// Whether a server of this version lacks what the driver asks for.
pub(super) fn is_too_old(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    let known = parts.next().flatten().zip(parts.next().flatten());
    known.is_some_and(|known| known < OLDEST)
}

/// The oldest version that the driver was written for.
const OLDEST: (u32, u32) = (3, 4);

/// Says that a server is too old.
pub(super) fn too_old(version: &str) -> Error {
    let message = "the server is too old; etcd 3.4 or newer is needed";
    Error::new(Code::Unsupported, message).with("version", version)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As servers say it, word for word.
    #[test]
    fn answers_are_understood() {
        let host = Host { name: "here".to_owned(), port: 2379 };
        for (code, said, means, unknown, next) in [
            (
                Grpc::NotFound,
                "etcdserver: requested lease not found",
                Code::Lost,
                false,
                Next::Keep,
            ),
            (
                Grpc::Unauthenticated,
                "etcdserver: invalid auth token",
                Code::Auth,
                false,
                Next::Token,
            ),
            (Grpc::Unavailable, "etcdserver: no leader", Code::Unavailable, false, Next::Member),
            (
                Grpc::Unavailable,
                "etcdserver: request timed out",
                Code::Unavailable,
                true,
                Next::Member,
            ),
            (
                Grpc::Unavailable,
                "etcdserver: leader changed",
                Code::Unavailable,
                true,
                Next::Member,
            ),
            (
                Grpc::ResourceExhausted,
                "etcdserver: mvcc: database space exceeded",
                Code::Unavailable,
                false,
                Next::Keep,
            ),
            (Grpc::InvalidArgument, "etcdserver: something new", Code::Internal, false, Next::Keep),
            (Grpc::Unknown, "something new", Code::Unavailable, true, Next::Member),
        ] {
            let fault = judge(&host, &Status::new(code, said));
            let Failure { error, applied } = fault.failure;
            assert_eq!((error.code(), fault.next), (means, next), "{said}");
            assert_eq!(applied == Applied::Unknown, unknown, "{said}");
        }
    }
}
