//! Failures on the way to a server and at it, as errors of fencelock: the message, whether the call was applied, the next step.

use std::fmt::Display;

use tokio_postgres::error::Severity;

use crate::driver::own_table::{CONSTRAINT, UNFIT};
use crate::driver::sql::fault::{Fault, Next, READ_ONLY, lost};
use crate::driver::sql::known::{CHANGED, RIGHTS};
use crate::error::{Code, Error};
use crate::port::Failure;

/// An error of the server by SQLSTATE (or its first two digits), with its code, how to go on, and the text for users.
pub(super) type State = (&'static str, Code, Next, &'static str);

/// The errors on fencelock's own tables, and the general ones.
const STATES: &[State] = &[
    ("40001", Code::Unavailable, Next::Again, "other transactions were in the way for too long"),
    ("40P01", Code::Unavailable, Next::Again, "other transactions were in the way for too long"),
    (
        "55P03",
        Code::Unavailable,
        Next::Elsewhere,
        "another transaction keeps the lock's row locked; look for it in pg_stat_activity, and end it",
    ),
    (
        "57014",
        Code::Unavailable,
        Next::Keep,
        "the server gave the statement up; if it has a `statement_timeout`, make that longer",
    ),
    ("42P01", Code::Unsupported, Next::Keep, NO_TABLES),
    ("42703", Code::Conflict, Next::Keep, OTHER_SHAPE),
    ("42804", Code::Conflict, Next::Keep, OTHER_SHAPE),
    ("42883", Code::Conflict, Next::Keep, OTHER_SHAPE),
    ("42P10", Code::Conflict, Next::Keep, OTHER_SHAPE),
    ("42809", Code::Conflict, Next::Keep, OTHER_SHAPE),
    ("23", Code::Conflict, Next::Keep, OTHER_SHAPE),
    (
        "42501",
        Code::Auth,
        Next::Keep,
        "the user may not do this; grant it SELECT, INSERT and UPDATE on `fencelock`, and the same with DELETE on `fencelock_cell`, by session SELECT and UPDATE on the sequence `fencelock_token`, by row also SELECT, INSERT, UPDATE and DELETE on `fencelock_row` (or what begins with `table`), EXECUTE on the functions; to create them (`create=true`) it needs CREATE on the schema",
    ),
    (
        "28",
        Code::Auth,
        Next::Keep,
        "the server refused the user or the password; correct them in the URL, or its pg_hba.conf",
    ),
    (
        "3D000",
        Code::Invalid,
        Next::Keep,
        "there is no such database on the server; correct the URL",
    ),
    ("3F000", Code::Invalid, Next::Keep, NO_SCHEMA),
    ("25006", Code::Unavailable, Next::Reconnect, READ_ONLY),
    (
        "53300",
        Code::Unavailable,
        Next::Reconnect,
        "the server takes no more connections; raise its `max_connections`",
    ),
    ("53", Code::Unavailable, Next::Keep, "the server lacks memory or disk space; see `reply`"),
    (
        "22",
        Code::Invalid,
        Next::Keep,
        "the database cannot hold this text: it takes no zero character, and what its encoding lacks only if that is UTF8",
    ),
    ("26000", Code::Unsupported, Next::Reconnect, POOLED),
    // Somebody else has prepared a statement of that name in this session.
    ("42P05", Code::Unsupported, Next::Reconnect, POOLED),
    (
        "42704",
        Code::Unsupported,
        Next::Keep,
        "the server is too old to end a session that is silent: `postgres+advisory` and `postgres+row` need PostgreSQL 14; `postgres` works with 12",
    ),
    ("57P03", Code::Unavailable, Next::Reconnect, "the server is starting or stopping; try again"),
];

/// The server's errors on a user's own table whose rows are locks.
pub(super) const OWN_ROWS: &[State] = &[
    (
        "42501",
        Code::Auth,
        Next::Keep,
        "the user may not do this; grant it SELECT and UPDATE on your table and on the sequence `fencelock_token`, SELECT and INSERT on `fencelock_row` (or what begins with `table`)",
    ),
    ("42", Code::Conflict, Next::Keep, CHANGED),
    (
        "22",
        Code::Invalid,
        Next::Keep,
        "the name of the lock is no value of the key's column; see `reply`",
    ),
];

/// The server's errors on a user's own table with versions.
pub(super) const OWN_TABLE: &[State] = &[
    ("42501", Code::Auth, Next::Keep, RIGHTS),
    ("42", Code::Conflict, Next::Keep, CHANGED),
    ("23", Code::Conflict, Next::Keep, CONSTRAINT),
    ("P0001", Code::Conflict, Next::Keep, CONSTRAINT),
    ("22", Code::Invalid, Next::Keep, UNFIT),
];

/// The server's errors on another library's table, which cannot be used then.
pub(super) const FOREIGN: &[State] = &[
    ("42P01", Code::Unsupported, Next::Keep, ""),
    ("42501", Code::Auth, Next::Keep, ""),
    ("42", Code::Conflict, Next::Keep, ""),
    ("22", Code::Conflict, Next::Keep, ""),
    ("23", Code::Conflict, Next::Keep, ""),
];

const OTHER_SHAPE: &str = "the database's fencelock tables are not as fencelock made them; use other names (`table`) or another schema (`schema`, or the user's `search_path`), or drop them while nobody holds a lock";
const NO_SCHEMA: &str = "there is no such schema in the database, or the user may not use it; make it (CREATE SCHEMA), grant USAGE on it, or correct `schema` in the URL";
const NO_TABLES: &str = "the database has no table `fencelock`, or none of the name in `table`, where this session looks (`schema`, or the user's `search_path`); connect once with `create=true`, or have its owner run what `fencelock sql schema --dialect postgres` prints, with the `--table` of the URL; if they are there, grant the user USAGE on the schema";
const POOLED: &str = "a pooler hands each statement to another session; connect to the server (Neon: the host without `-pooler`, Supabase: port 5432), or have the pooler keep sessions";

/// Says that the tables are laid out in another way: that this column is not of this type.
pub(super) fn other_shape(column: &str, kind: &str) -> Error {
    Error::new(Code::Conflict, OTHER_SHAPE).with("column", column).with("type", kind)
}

/// Says that what the migration makes is not there.
pub(super) fn no_tables() -> Error {
    Error::new(Code::Unsupported, NO_TABLES)
}

/// Says that a connection has no session of its own.
pub(super) fn pooled() -> Error {
    Error::new(Code::Unsupported, POOLED)
}

/// The fault that a failed statement amounts to. `decides`: it may have been carried out though its answer was lost.
pub(super) fn judge(server: &impl Display, error: &tokio_postgres::Error, decides: bool) -> Fault {
    judge_as(server, error, decides, &[])
}

/// The same, where some of what the server says means something else.
pub(super) fn judge_as(
    server: &impl Display,
    error: &tokio_postgres::Error,
    decides: bool,
    states: &[State],
) -> Fault {
    let Some(said) = error.as_db_error() else {
        let (text, source) = (error.to_string(), std::error::Error::source(error));
        if ["invalid configuration", "authentication error"].iter().any(|said| text.contains(said))
        {
            let message = "the server wants a password, or another one, or in a way this client does not know; correct it in the URL, or the server's pg_hba.conf";
            let error = Error::new(Code::Auth, message).with("server", server.to_string());
            return Fault::refused(error);
        }
        let reason = source.map_or(text, ToString::to_string);
        // What could not be written as a parameter was never sent.
        let sent = decides
            && (error.is_closed()
                || source.is_none_or(<dyn std::error::Error>::is::<std::io::Error>));
        return lost(server, &reason, sent);
    };
    let (state, reply) = (said.code().code(), said.message());
    // An ERROR undoes what it ends. A session that is ended may have been so behind its commit.
    let ended = !matches!(said.parsed_severity(), Some(Severity::Error));
    if ended && decides {
        return lost(server, reply, true);
    }
    let known = states.iter().chain(STATES).find(|row| state.starts_with(row.0));
    if let Some((_, code, next, message)) = known {
        let error = replied(Error::new(*code, *message), server, state, reply);
        let next = if ended { Next::Reconnect } else { *next };
        return Fault { failure: Failure::refused(error), next };
    }
    if ended {
        return lost(server, reply, false);
    }
    let message = "the server refused a statement; see `reply`";
    Fault::refused(replied(Error::new(Code::Unavailable, message), server, state, reply))
}

fn replied(error: Error, server: &impl Display, state: &str, reply: &str) -> Error {
    error.with("server", server.to_string()).with("sqlstate", state).with("reply", reply)
}

/// The state that the server reported, if it did.
pub(super) fn state(error: &Error) -> &str {
    error.fields().get("sqlstate").map_or("", String::as_str)
}
