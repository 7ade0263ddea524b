//! Failures on the way to the ensemble and at the ensemble, as errors of fencelock.

use zookeeper_client::Error as Fault;

use super::layout::Names;
use crate::driver::hosts::Host;
pub(super) use crate::driver::hosts::unanswered;
use crate::driver::members::Address;
pub(super) use crate::driver::members::ended;
use crate::error::{Code, Error};
use crate::port::Failure;

/// The failure that a failed request amounts to.
pub(super) fn judge(address: &Address, fault: &Fault) -> Failure {
    let (code, message) = match fault {
        Fault::SessionExpired | Fault::SessionMoved | Fault::ClientClosed => return ended(),
        Fault::NoAuth => (
            Code::Auth,
            "the user may not do this on the server; it needs the rights `cdrw` on the nodes of the locks, or put user and password into the URL",
        ),
        Fault::AuthFailed => {
            (Code::Auth, "the server refused the user or password; correct them in the URL")
        }
        Fault::QuotaExceeded => (
            Code::Unavailable,
            "the quota of the path is used up; raise it, or remove nodes behind the path",
        ),
        Fault::Throttled => (Code::Unavailable, "the server is overloaded; try again"),
        Fault::NotReadOnly => {
            (Code::Unavailable, "the server has lost the others and only answers reads; try again")
        }
        Fault::NoChildrenForEphemerals => (
            Code::Conflict,
            "a part of the lock's path is a node that can have no children; choose another name or chroot",
        ),
        Fault::Unimplemented => (
            Code::Unsupported,
            "the server does not know a request; ZooKeeper 3.5 or newer is needed",
        ),
        Fault::NoNode
        | Fault::BadVersion
        | Fault::NodeExists
        | Fault::NotEmpty
        | Fault::InvalidAcl
        | Fault::MarshallingError
        | Fault::BadArguments(_) => {
            (Code::Internal, "the server refused a request in a way fencelock does not know")
        }
        // Whether it was carried out is not said.
        other => return Failure::unknown(unanswered(address, &other.to_string())),
    };
    let error = Error::new(code, message).with("server", address.to_string());
    Failure::refused(error.with("reply", fault.to_string()))
}

/// Says why there is no session.
pub(super) fn absent(address: &Address, fault: &Fault) -> Error {
    match fault {
        Fault::AuthFailed => judge(address, fault).error,
        Fault::BadArguments(_) => Error::invalid(
            "url",
            "the hosts of the URL cannot be read; write `host:port,host:port`",
        ),
        _ => {
            let message = "no server of the ensemble opens a session; are they running, with a leader, and are the addresses right? Ports with TLS want `zookeepers://`";
            Error::new(Code::Unavailable, message)
                .with("server", address.to_string())
                .with("reason", fault.to_string())
        }
    }
}

/// Says that it took too long to speak TLS with a member.
pub(super) fn unreached(member: &Host) -> Error {
    let message = "the server did not answer in time; is it running, and is the address right?";
    Error::new(Code::Unavailable, message).with("server", member.to_string())
}

/// Says that a member that speaks TLS does not speak with us.
pub(super) fn unintroduced(member: &Host, error: &std::io::Error) -> Error {
    let message = "the server speaks TLS and then opens no session; does it ask for a certificate of ours (`cert`, `key`), and is there a leader?";
    Error::new(Code::Unavailable, message)
        .with("server", member.to_string())
        .with("reason", error.to_string())
}

/// Says that kazoo has no such lock.
pub(super) fn not_kazoos() -> Error {
    let message = "kazoo's semaphore keeps its holders without an order, and its waiters in a lock beside them: leave the dialect out to use permits";
    Error::new(Code::Unsupported, message)
}

/// Says that somebody queues there who does not see us.
pub(super) fn foreign(who: &str, names: Names, folder: &str) -> Error {
    let ours = if names == Names::Kazoo { "kazoo" } else { "Curator" };
    let message = format!(
        "{who} queues under the same path, by names that {ours} does not see, whose names fencelock uses there: use another name, or let all use one library's names (`dialect`)"
    );
    Error::new(Code::Conflict, message).with("path", folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::zookeeper::address::RULES;
    use crate::port::Applied;

    #[test]
    fn answers_are_understood() {
        let url = "zookeeper://me:hunter2@here:1".parse().expect("this is a URL");
        let address = Address::read(&url, &[], RULES).expect("it names a member");
        for (fault, code, unknown) in [
            (Fault::SessionExpired, Code::Lost, false),
            (Fault::ClientClosed, Code::Lost, false),
            (Fault::NoAuth, Code::Auth, false),
            (Fault::AuthFailed, Code::Auth, false),
            (Fault::Throttled, Code::Unavailable, false),
            (Fault::Unimplemented, Code::Unsupported, false),
            (Fault::NodeExists, Code::Internal, false),
            (Fault::ConnectionLoss, Code::Unavailable, true),
            (Fault::Timeout, Code::Unavailable, true),
            (Fault::UnexpectedErrorCode(-1), Code::Unavailable, true),
        ] {
            let Failure { error, applied } = judge(&address, &fault);
            assert_eq!((error.code(), applied == Applied::Unknown), (code, unknown), "{fault}");
            assert!(!format!("{error} {error:?}").contains("hunter2"));
        }
        assert_eq!(absent(&address, &Fault::NoHosts).code(), Code::Unavailable);
    }
}
