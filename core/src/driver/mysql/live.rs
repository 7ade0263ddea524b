//! One connection to a server that takes writes, set up.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row, Value};

use super::address::Address;
use super::fault::judge;
use super::statement;
use super::version::Version;
use crate::driver::sql::fault::read_only;
use crate::driver::sql::first_host::first_host;
use crate::driver::sql::host::Host;
use crate::error::{Code, Error, Result};
use crate::port::RuntimeHandle;

/// See the module. It ends when this is dropped.
pub(super) struct Live {
    pub(super) conn: Conn,
    /// Whether the server writes its log at each commit.
    pub(super) durable: bool,
    pub(super) version: Version,
}

/// A request to a server.
pub(super) enum Statement {
    /// One or several, with all values in their text.
    Text(String),
    /// One that is prepared where it is new, and its values.
    Prepared(Arc<str>, Vec<Value>),
}

/// The server's answer to a [`Statement`].
pub(super) struct Answered {
    /// The rows of each statement.
    pub(super) sets: Vec<Vec<Row>>,
    /// How many rows the last one has changed.
    pub(super) changed: u64,
    /// The last id.
    pub(super) last_id: Option<u64>,
}

impl Answered {
    /// The rows of the last statement that answers any.
    pub(super) fn rows(self) -> Vec<Row> {
        self.sets.into_iter().rev().find(|rows| !rows.is_empty()).unwrap_or_default()
    }
}

/// Asks a server, and reads all that it answers.
pub(super) async fn ask(
    conn: &mut Conn,
    statement: &Statement,
) -> Result<Answered, mysql_async::Error> {
    caught(carry_out(conn, statement)).await
}

/// Runs a call of the driver. A panic in it, which some servers can cause, loses the connection, and the client goes on.
pub(super) async fn caught<T>(
    work: impl Future<Output = Result<T, mysql_async::Error>>,
) -> Result<T, mysql_async::Error> {
    let panicked = |_| Err(mysql_async::Error::Other("the driver of the server panicked".into()));
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(panicked)
}

async fn carry_out(conn: &mut Conn, statement: &Statement) -> Result<Answered, mysql_async::Error> {
    macro_rules! read {
        ($result:expr) => {{
            let (mut result, mut sets) = ($result, Vec::new());
            while !result.is_empty() {
                sets.push(result.collect::<Row>().await?);
            }
            let (changed, last_id) = (result.affected_rows(), result.last_insert_id());
            result.drop_result().await?;
            Ok(Answered { sets, changed, last_id })
        }};
    }
    match statement {
        Statement::Text(text) => read!(conn.query_iter(text).await?),
        Statement::Prepared(text, values) => read!(conn.exec_iter(&**text, values.clone()).await?),
    }
}

impl Live {
    /// Connects to a server and sets the connection up.
    pub(super) async fn open(address: &Address, host: &Host) -> Result<Self> {
        let fault = |error: mysql_async::Error| judge(host, &error, false).failure.error;
        let mut conn = caught(Conn::new(address.options(host))).await.map_err(fault)?;
        conn.query_drop(statement::setup()).await.map_err(fault)?;
        let server: Option<Row> = conn.query_first(statement::SERVER).await.map_err(fault)?;
        let word = |at| {
            let value = server.as_ref().and_then(|row| row.get_opt::<String, _>(at));
            value.and_then(std::result::Result::ok).unwrap_or_default()
        };
        let unsupported = |message: &'static str| {
            Err(Error::new(Code::Unsupported, message).with("server", host.to_string()))
        };
        let version = Version::read(&word(0));
        if version.is_old() {
            return unsupported(
                "the server is too old: MySQL 8.0 or MariaDB 10.4, or a newer one, is needed",
            );
        }
        if !matches!(&*word(1), "0" | "OFF") {
            return Err(read_only().with("server", host.to_string()));
        }
        if word(4) != "1" {
            return unsupported(
                "the server reads its clock only once in a statement, before it waits for a row; start it without `sysdate-is-now`",
            );
        }
        Ok(Self { conn, durable: matches!(&*word(2), "1" | "3"), version })
    }

    /// A connection to the first server that takes writes, in at most `limit`.
    pub(super) async fn open_first(
        address: &Address,
        runtime: &RuntimeHandle,
        limit: Duration,
    ) -> Result<(Self, Host)> {
        let open = |host: Host| async move { Self::open(address, &host).await };
        first_host(&address.hosts, &address.used, runtime, limit, open).await
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::caught;

    #[test]
    fn u13_a_panic_of_the_driver_is_an_error() {
        let panics = caught::<()>(async { panic!("feature is disabled") });
        let error = panics.now_or_never().expect("it does not wait").unwrap_err();
        assert!(matches!(error, mysql_async::Error::Other(_)), "{error}");
    }
}
