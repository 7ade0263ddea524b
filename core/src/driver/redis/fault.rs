//! Failures on the way to the server and at the server, as errors of fencelock.

use std::fmt;

use redis::{ErrorKind, RedisError, ServerError};

use super::keys::record_key;
use crate::driver::numbers::NO_TOKEN_LEFT;
use crate::error::{Code, Error};
use crate::port::{Failure, LockKey};

/// The server as errors name it.
pub(super) trait Named: fmt::Display {
    /// A server's words without our credentials.
    fn scrub(&self, text: &str) -> String;
}

pub(super) const NO_CLUSTER: &str = "the server is no cluster; write `redis://`";
const NOPERM: &str =
    "the user may not do this on the server; grant it the command, key or channel named below";
const READONLY: &str = "the server is a read-only replica; connect to the master";
const CROSSSLOT: &str =
    "keys of one step lie in different slots of the cluster; give their names a {tag} in common";
const MASTERDOWN: &str = "the replica has lost its master; connect to the master";

/// The server's error replies: their first word, what they mean, and what to do.
const REPLIES: &[(&str, Code, &str)] = &[
    ("NOAUTH", Code::Auth, "the server wants a password; put it into the URL"),
    (
        "WRONGPASS",
        Code::Auth,
        "the server refused the user name or password; correct them in the URL",
    ),
    ("NOPERM", Code::Auth, NOPERM),
    (
        "DENIED",
        Code::Auth,
        "the server is in protected mode and takes local connections only; set a password there",
    ),
    ("READONLY", Code::Unavailable, READONLY),
    ("OOM", Code::Unavailable, "the server is out of memory; raise its `maxmemory` or free some"),
    (
        "MISCONF",
        Code::Unavailable,
        "the server cannot save its data and takes no writes; look into its log",
    ),
    ("LOADING", Code::Unavailable, "the server is still loading its data; try again"),
    ("MASTERDOWN", Code::Unavailable, MASTERDOWN),
    ("CLUSTERDOWN", Code::Unavailable, "the cluster does not serve this key now; try again"),
    (
        "NOREPLICAS",
        Code::Unavailable,
        "the server has too few replicas to take writes (`min-replicas-to-write`)",
    ),
    (
        "BUSY",
        Code::Unavailable,
        "the server is busy with somebody's script; try again, or stop that with `SCRIPT KILL`",
    ),
    ("TRYAGAIN", Code::Unavailable, "the cluster is moving this key; try again"),
    ("MOVED", Code::Unavailable, "the cluster moved this key to another node; try again"),
    ("ASK", Code::Unavailable, "the cluster is moving this key to another node; try again"),
    ("CROSSSLOT", Code::Unsupported, CROSSSLOT),
    ("NOPROTO", Code::Unsupported, "the server does not speak RESP3; Redis 6 or newer is needed"),
];

/// The same for replies without a telling first word.
const PHRASES: &[(&str, Code, &str)] = &[
    ("cluster support disabled", Code::Unsupported, NO_CLUSTER),
    ("non local key", Code::Unavailable, "the cluster is moving a key beside this one; try again"),
    ("same slot", Code::Unsupported, CROSSSLOT),
    (
        "max number of clients",
        Code::Unavailable,
        "the server has as many clients as it takes; raise its `maxclients`",
    ),
    ("The user executing the script can't", Code::Auth, NOPERM),
    ("ACL failure in script", Code::Auth, NOPERM),
    (
        "without any password configured",
        Code::Auth,
        "the server knows no password; leave it out of the URL",
    ),
    (
        "unknown command",
        Code::Unsupported,
        "the server lacks a command; Redis 6 or newer, or another server that runs Lua scripts, is needed",
    ),
    ("no token is left", Code::Conflict, NO_TOKEN_LEFT),
    (
        "another layout",
        Code::Unsupported,
        "another version of fencelock wrote this lock's record, in a layout that this one does not know; use one version for one server",
    ),
    (
        "DB index is out of range",
        Code::Invalid,
        "the server has no such database; look at the number in the URL",
    ),
    (
        "switch database",
        Code::Invalid,
        "the server has no such database; look at the number in the URL",
    ),
];

/// An error reply in the server's words, its code first.
pub(super) fn words(error: &ServerError) -> String {
    format!("{} {}", error.code(), error.details().unwrap_or_default())
}

/// Says what an error reply means.
pub(super) fn refusal(address: &impl Named, text: &str, lock: Option<&LockKey>) -> Error {
    let has_word = |word| text.split(|c: char| !c.is_ascii_uppercase()).any(|part| part == word);
    if let Some(lock) = lock.filter(|_| has_word("WRONGTYPE")) {
        return Error::new(
            Code::Conflict,
            "what lies under the lock's key, or under that of its side record, is no lock but somebody else's data; choose another name",
        )
        .with("key", lock.as_str())
        .with("record", record_key(lock));
    }
    let word = REPLIES.iter().find(|(word, ..)| has_word(word));
    let phrase = || PHRASES.iter().find(|(phrase, ..)| text.contains(phrase));
    let error = match word.or_else(phrase) {
        Some((_, code, message)) => Error::new(*code, *message),
        None => Error::internal("the server refused a command in a way fencelock does not know"),
    };
    let error = error.with("server", address.to_string()).with("reply", address.scrub(text));
    match lock {
        Some(lock) => error.with("key", lock.as_str()),
        None => error,
    }
}

/// The failure of a step that a server answered by an error. Scripts read before they write, and a server that takes no writes says so at
/// the first one: then nothing was done. Any other error of a script, and rights that end in the middle of it, leave what it had
/// written by then, so the outcome is unknown.
pub(super) fn failed_step(address: &impl Named, text: &str, lock: &LockKey) -> Failure {
    failed(refusal(address, text, Some(lock)), text)
}

/// The failure for the error reply `text` of a script that changes something: unknown if part of it may have been written.
pub(super) fn failed(error: Error, text: &str) -> Failure {
    match error.code() {
        Code::Internal => Failure::unknown(error),
        Code::Auth if text.contains("script") => Failure::unknown(error),
        _ => Failure::refused(error),
    }
}

/// Says why there is no connection.
pub(super) fn unreachable(address: &impl Named, error: &RedisError) -> Error {
    if let Some(code) = error.code() {
        return refusal(address, &format!("{code} {}", error.detail().unwrap_or_default()), None);
    }
    if error.kind() == ErrorKind::AuthenticationFailed {
        return refusal(address, "WRONGPASS", None);
    }
    if error.kind() == ErrorKind::RESP3NotSupported {
        return refusal(address, "NOPROTO", None);
    }
    let reason = error.to_string();
    if reason.contains("fatal alert") {
        let message = "the server refused this client's certificate, or wants one; name one it trusts by `cert` and `key`";
        return Error::new(Code::Auth, message)
            .with("server", address.to_string())
            .with("reason", address.scrub(&reason));
    }
    absent(address, &reason)
}

/// Says that nobody is there.
pub(super) fn absent(address: &impl Named, reason: &str) -> Error {
    // A port with TLS resets a client without, and a port without leaves one with TLS waiting.
    let may_be_tls = ["reset", "timed out"].iter().any(|end| reason.contains(end));
    let message = if cfg!(feature = "redis") && may_be_tls {
        "the server cannot be reached; is it running, is the address right, and does its port have TLS (`rediss://`) or not (`redis://`)?"
    } else {
        "the server cannot be reached; is it running, and is the address right?"
    };
    Error::new(Code::Unavailable, message)
        .with("server", address.to_string())
        .with("reason", address.scrub(reason))
}

/// Whether a server has said that it is not the master: it may have been before, so another one is.
#[cfg(feature = "redis")]
pub(super) fn is_demotion(error: &Error) -> bool {
    error.message() == READONLY || error.message() == MASTERDOWN
}

/// Says that a request may have been carried out or not.
pub(super) fn unanswered(address: &impl Named, reason: &str) -> Error {
    let message = "the server did not answer, so whether it acted is unknown; what it did for a lock is taken back: look at the server and the way to it, or raise `timeout`";
    Error::new(Code::Unavailable, message)
        .with("server", address.to_string())
        .with("reason", address.scrub(reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::Applied;

    struct Server;

    /// As Redis 7 and Redis 6 say it: what a script could have written something before.
    #[test]
    fn a_script_that_fails_in_its_middle_has_an_unknown_outcome() {
        let lock = LockKey::new("x");
        for (text, unknown) in [
            (
                "ERR user_script:71: too many results to unpack script: 6b1bf486, on @user_script:71.",
                true,
            ),
            (
                "ERR Error running script (call to f_6b1bf486): @user_script:71: user_script:71: stack overflow",
                true,
            ),
            (
                "ERR ACL failure in script: User clerk has no permissions to run the 'hset' command script: fd339f, on @user_script:1.",
                true,
            ),
            ("NOPERM No permissions to access a key", false),
            (
                "OOM command not allowed when used memory > 'maxmemory'. script: 6b1bf486, on @user_script:40.",
                false,
            ),
            (
                "WRONGTYPE Operation against a key holding the wrong kind of value script: 6b1bf486, on @user_script:3.",
                false,
            ),
            ("READONLY You can't write against a read only replica.", false),
        ] {
            let failure = failed_step(&Server, text, &lock);
            assert_eq!(failure.applied == Applied::Unknown, unknown, "{text}");
        }
    }

    impl fmt::Display for Server {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("here:6379")
        }
    }

    impl Named for Server {
        fn scrub(&self, text: &str) -> String {
            text.replace("hunter2", "***")
        }
    }
}
