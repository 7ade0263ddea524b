//! Rows of a table of the user's own as locks, `account(id)` with a row 7 among them.

use std::time::Instant;

use fencelock::{Client, Code};

use super::DatabaseSessions;
use crate::database::{connect, holds, refused};
use crate::session_store::{PATIENCE, code};

/// Where the rows of this table are locks.
pub fn on(server: &impl DatabaseSessions, table: &str) -> String {
    server.at(server.port(), &format!("?on_table={}", table.replace(' ', "+")))
}

/// A client of them.
pub async fn client(server: &impl DatabaseSessions, table: &str) -> Client {
    connect(&on(server, table)).await
}

/// Two names of one value are one lock, another one's is another. `shows` is in what is told of a holder.
pub async fn a_name_is_a_value(
    server: &impl DatabaseSessions,
    table: &str,
    [name, same]: [&str; 2],
    other: Option<&str>,
    (shown, shows): (&[&str], &str),
) {
    let (one, two) = (client(server, table).await, client(server, table).await);
    let guard = one.lock(name).acquire().await.unwrap();
    assert!(!holds(&two, name).await && !holds(&two, same).await, "{table}");
    assert!(!holds(&one, same).await, "{table}");
    if let Some(other) = other {
        assert!(holds(&two, other).await, "{table}");
    }
    for name in shown {
        let state = two.lock(name).inspect().await.unwrap();
        assert!(state.holders[0].info.contains(shows), "{state:?}");
    }
    let token = guard.token();
    guard.release().await.check().unwrap();
    let next = two.lock(same).acquire_within(PATIENCE).await.unwrap();
    assert!(next.token() > token, "{table}");
    next.release().await.check().unwrap();
}

/// Each of these tables is refused, for a reason that says so.
pub async fn tables_are_refused(server: &impl DatabaseSessions, tables: &[(&str, &str)]) {
    for (table, says) in tables {
        let (code, error) = refused(&on(server, table)).await;
        assert_eq!(code, Code::Invalid, "{table}: {error}");
        assert_eq!(error.fields()["argument"], "on_table", "{table}: {error}");
        assert!(error.message().contains(says), "{table}: {error}");
    }
}

/// A name is refused with a code, at once.
pub async fn a_name_is_refused(client: &Client, name: &str, expected: Code) {
    let began = Instant::now();
    let error = client.lock(name).acquire_within(PATIENCE).await.unwrap_err();
    assert_eq!(error.code(), expected, "{name}: {error}");
    assert_eq!(code(client.lock(name).try_acquire().await), Some(expected), "{name}");
    assert!(began.elapsed() < PATIENCE / 2, "{name}");
}

/// B93: a session that is ended is told as a loss.
pub async fn b93_a_session_that_is_ended_is_a_loss(server: &impl DatabaseSessions) {
    let (one, two) = (client(server, "account(id)").await, client(server, "account(id)").await);
    for _ in 0..3 {
        let guard = one.lock("7").acquire_within(PATIENCE).await.unwrap();
        let waits = tokio::spawn(two.lock("7").acquire_within(PATIENCE));
        server.comes_to("1|1").await;
        server.end_connections(true);
        tokio::time::timeout(PATIENCE, guard.lost()).await.expect("it is told");
        let next = waits.await.unwrap().unwrap();
        assert!(next.token() > guard.token() && !guard.is_held());
        next.release().await.check().unwrap();
    }
    server.comes_to("0|0").await;
}
