//! Failures that a server reports, as errors of fencelock.

use std::fmt::Display;

use mysql_async::{DriverError, IoError, ServerError};

use crate::driver::own_table::{CONSTRAINT, UNFIT};
use crate::driver::sql::fault::{Fault, Next, READ_ONLY, lost};
use crate::driver::sql::known::{CHANGED, RIGHTS};
use crate::driver::tls;
use crate::error::{Code, Error};
use crate::port::Failure;

/// Errors of the server by their numbers, with the error code, how to go on, and the text for users.
pub(super) type Number = (&'static [u16], Code, Next, &'static str);

/// The errors on fencelock's own tables, and the general ones.
const NUMBERS: &[Number] = &[
    (&[1213], Code::Unavailable, Next::Again, "other transactions were in the way for too long"),
    (
        &[1205, 3572],
        Code::Unavailable,
        Next::Again,
        "another transaction keeps the lock's row locked; look for it in information_schema.INNODB_TRX, and end it",
    ),
    (
        &[1317, 1969, 3024],
        Code::Unavailable,
        Next::Keep,
        "the server gave the statement up; if it has a limit for statements (`max_statement_time`), make that longer",
    ),
    (
        &[1146],
        Code::Unsupported,
        Next::Keep,
        "the database has no table `fencelock`, or none of the name in `table`; connect once with `create=true`, or have its owner run what `fencelock sql schema --dialect mysql` prints, with the `--table` of the URL",
    ),
    (
        &[1054, 1062, 1136, 1176, 1264, 1265, 1292, 1347, 1348, 1364, 1366, 1406, 1471],
        Code::Conflict,
        Next::Keep,
        OTHER_SHAPE,
    ),
    (
        &[1142, 1143, 1370],
        Code::Auth,
        Next::Keep,
        "the user may not do this; grant it SELECT, INSERT and UPDATE on `fencelock`, and the same with DELETE on `fencelock_cell` (or what begins with `table`); to create them (`create=true`) it needs CREATE and INDEX",
    ),
    (
        &[1044, 1045, 1251, 1698, 1820, 1862, 3118, 4151],
        Code::Auth,
        Next::Reconnect,
        "the server refused the user, the password or the database; correct them in the URL, or the user's rights",
    ),
    (
        &[1049],
        Code::Invalid,
        Next::Reconnect,
        "there is no such database on the server; correct the URL",
    ),
    (&[1290, 1792, 1836], Code::Unavailable, Next::Reconnect, READ_ONLY),
    (
        &[1040, 1203, 1226],
        Code::Unavailable,
        Next::Reconnect,
        "the server takes no more connections; raise its `max_connections`, or what the user may have",
    ),
    (
        &[1665],
        Code::Unsupported,
        Next::Keep,
        "the server writes statements into its binary log; set its `binlog_format` to ROW or MIXED",
    ),
    (
        &[1021, 1037, 1038, 1041, 1114],
        Code::Unavailable,
        Next::Keep,
        "the server lacks memory or disk space; see `reply`",
    ),
    (
        &[1130, 1129],
        Code::Auth,
        Next::Reconnect,
        "the server takes no connections from this machine; see `reply`",
    ),
];

/// The server's errors on a user's own table with versions.
pub(super) const OWN_TABLE: &[Number] = &[
    (&[1142, 1143], Code::Auth, Next::Keep, RIGHTS),
    (&[1054, 1146, 1356], Code::Conflict, Next::Keep, CHANGED),
    (&[1048, 1062, 1451, 1452, 1644, 3819, 4025], Code::Conflict, Next::Keep, CONSTRAINT),
    (&[1264, 1265, 1267, 1292, 1366, 1367, 1406, 3140, 3156], Code::Invalid, Next::Keep, UNFIT),
];

/// The server's errors on another library's table, which cannot be used then.
pub(super) const FOREIGN: &[Number] = &[
    (&[1146], Code::Unsupported, Next::Keep, ""),
    (&[1142, 1143], Code::Auth, Next::Keep, ""),
    (&[1054, 1062, 1136, 1264, 1265, 1364, 1366, 1406], Code::Conflict, Next::Keep, ""),
    (
        &[1292],
        Code::Unavailable,
        Next::Keep,
        "the other library's table keeps times in a zone that lacks this one (daylight saving); give it DATETIME columns, or the server a zone without",
    ),
];

/// The errors by which the server ends a session, possibly after a commit.
const ENDS: &[u16] = &[1053, 1152, 1158, 1159, 1160, 1161, 1180, 1184, 1927, 3169, 4031];

const OTHER_SHAPE: &str = "the database's fencelock tables are not as fencelock made them; use other names (`table`) or another database, or drop them while nobody holds a lock";

/// Says that the tables are laid out in another way: that this column is not of this type.
pub(super) fn other_shape(column: &str, kind: &str) -> Error {
    Error::new(Code::Conflict, OTHER_SHAPE).with("column", column).with("type", kind)
}

/// Says that a connection has no session of its own.
pub(super) fn pooled() -> Error {
    let message = "a proxy before the server gives the statements of a connection to several sessions, so a lock would be lost; connect to the server itself, or to a proxy that keeps sessions";
    Error::new(Code::Unsupported, message)
}

/// The fault that a failed statement amounts to. `decides`: it may have been carried out though its answer was lost.
pub(super) fn judge(server: &impl Display, error: &mysql_async::Error, decides: bool) -> Fault {
    judge_as(server, error, decides, &[])
}

/// The same, where some of what the server says means something else.
pub(super) fn judge_as(
    server: &impl Display,
    error: &mysql_async::Error,
    decides: bool,
    numbers: &[Number],
) -> Fault {
    match error {
        mysql_async::Error::Server(said) => judge_answer(server, said, decides, numbers),
        mysql_async::Error::Driver(DriverError::NoClientSslFlagFromServer) => {
            let message = "the server has no TLS, so what is sent there could be read and changed; set it up there, or add `sslmode=disable` if the network between is trusted";
            let error = Error::new(Code::Unavailable, message).with("server", server.to_string());
            ended(error.with_retryable(false))
        }
        mysql_async::Error::Driver(
            DriverError::UnknownAuthPlugin { .. }
            | DriverError::MysqlOldPasswordDisabled
            | DriverError::CleartextPluginDisabled,
        ) => {
            let message = "the server wants the password in a way this client does not know; give the user one that is checked by `caching_sha2_password` or `mysql_native_password`";
            ended(Error::new(Code::Auth, message).with("server", server.to_string()))
        }
        mysql_async::Error::Driver(DriverError::PacketTooLarge) => {
            let message = "too many wait for this lock; raise the server's `max_allowed_packet`";
            ended(Error::new(Code::Unavailable, message).with("server", server.to_string()))
        }
        mysql_async::Error::Io(IoError::Io(error)) => {
            match tls::unproven(&server.to_string(), error) {
                Some(error) => ended(error),
                None => lost(server, &error.to_string(), decides),
            }
        }
        other => lost(server, &reason(other), decides),
    }
}

/// It was refused before anything could count, and the connection with it.
fn ended(error: Error) -> Fault {
    Fault { failure: Failure::refused(error), next: Next::Reconnect }
}

/// Why a connection ended. Values are in no text of the client's.
fn reason(error: &mysql_async::Error) -> String {
    match error {
        mysql_async::Error::Io(error) => error.to_string(),
        mysql_async::Error::Driver(DriverError::ConnectionClosed) => {
            "the connection was closed".to_owned()
        }
        mysql_async::Error::Other(error) => error.to_string(),
        _ => "the server answers something else than this protocol".to_owned(),
    }
}

fn judge_answer(
    server: &impl Display,
    said: &ServerError,
    decides: bool,
    numbers: &[Number],
) -> Fault {
    let ServerError { code: number, state, message: reply } = said;
    if ENDS.contains(number) {
        return lost(server, reply, decides);
    }
    let numbered = |error: Error| {
        let error = error.with("server", server.to_string());
        error.with("number", number.to_string()).with("sqlstate", state.clone())
    };
    let known = numbers.iter().chain(NUMBERS).find(|(numbers, ..)| numbers.contains(number));
    let Some((_, code, next, message)) = known else {
        let message = "the server refused a statement; see `reply`";
        return Fault::refused(
            numbered(Error::new(Code::Unavailable, message)).with("reply", reply.clone()),
        );
    };
    let error = numbered(Error::new(*code, *message));
    // What does not fit a column is quoted, and may be an owner id.
    let error = if *message == OTHER_SHAPE { error } else { error.with("reply", reply.clone()) };
    Fault { failure: Failure::refused(error), next: *next }
}

/// The number of an error that the server reported, if it did.
pub(super) fn number(error: &Error) -> &str {
    error.fields().get("number").map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::Applied;

    fn judged(code: u16, decides: bool) -> Fault {
        let said = ServerError { code, message: "secret".to_owned(), state: "HY000".to_owned() };
        judge(&"db", &mysql_async::Error::Server(said), decides)
    }

    #[test]
    fn what_the_server_undid_is_told_from_what_it_may_have_done() {
        assert_eq!(judged(1213, true).next, Next::Again);
        assert_eq!(judged(1213, true).failure.applied, Applied::No);
        for number in ENDS {
            assert_eq!(judged(*number, true).failure.applied, Applied::Unknown, "{number}");
            assert_eq!(judged(*number, false).failure.applied, Applied::No, "{number}");
        }
    }

    #[test]
    fn a_value_that_does_not_fit_is_not_repeated() {
        for (number, shows) in [(1366, false), (1292, false), (1142, true), (9999, true)] {
            let error = judged(number, true).failure.error;
            assert_eq!(format!("{error} {error:?}").contains("secret"), shows, "{number}");
        }
    }
}
