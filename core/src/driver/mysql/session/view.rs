//! The state of a lock as the server reports it, for people who look.

use std::sync::Arc;
use std::time::Duration;

use super::connection::Connection;
use super::way::Way;
use crate::driver::mysql::literal::text;
use crate::driver::sql::statement::{Answer, Row, Statement, column};
use crate::error::Result;
use crate::port::{Failure, HolderView, LockKey, LockState, Mode, WaiterView};

/// The holder and waiters of a lock, as far as this user may see connections. `holder` is SQL for the holder's connection number,
/// `waiting` the statement of those that wait.
pub(super) async fn look<W: Way>(
    session: &Connection<W>,
    holder: &str,
    waiting: &str,
) -> Result<LockState, Failure> {
    let (length, waiting) = (waiting.chars().count(), text(waiting));
    // MariaDB also tells thousandths of a second.
    let asked = format!(
        "SELECT {holder}; SELECT ID, USER, HOST, TIME * 1000 /*M! * 0 + ROUND(TIME_MS) */ FROM information_schema.PROCESSLIST
         WHERE ID = {holder} OR (COMMAND = 'Query' AND DB = DATABASE() AND LEFT(INFO, {length}) = {waiting})
         ORDER BY /*M! TIME_MS DESC, */ TIME DESC, ID"
    );
    let answered = session.line.ask(vec![Statement::bare(asked)], false).await;
    state(&answered.map_err(|fault| fault.failure)?).map_err(Failure::refused)
}

/// The names that a statement answers.
pub(super) fn names(answered: &Answer) -> Result<Vec<LockKey>> {
    let name = |row: &Row| column::<&str>(row, 0, "name").map(LockKey::new);
    answered.all().map(name).collect()
}

/// The server knows neither tokens nor what a client says of itself.
fn state(answered: &Answer) -> Result<LockState> {
    let mut state = LockState::default();
    let mut rows = answered.all();
    let holder = match rows.next() {
        Some(row) => column::<Option<u64>>(row, 0, "IS_USED_LOCK")?,
        None => None,
    };
    let mode = Mode::Exclusive;
    let mut shown = None;
    for row in rows {
        let connection = column::<u64>(row, 0, "ID")?;
        let (user, host) = (column::<&str>(row, 1, "USER")?, column::<&str>(row, 2, "HOST")?);
        let info = serde_json::json!({ "user": user, "host": host, "connection": connection });
        let info: Arc<str> = info.to_string().into();
        if Some(connection) == holder {
            shown = Some(info);
            continue;
        }
        let waited = column::<Option<f64>>(row, 3, "TIME")?.unwrap_or_default();
        let waiting_for = Duration::try_from_secs_f64(waited / 1000.0).unwrap_or_default();
        state.waiters.push(WaiterView { mode, info, waiting_for });
    }
    if let Some(connection) = holder {
        // Other users' connections are not shown to everybody.
        let hidden = || serde_json::json!({ "connection": connection }).to_string().into();
        let info = shown.unwrap_or_else(hidden);
        let (token, left, held_for, owner) = (None, None, None, None);
        state.holders.push(HolderView { mode, token, left, held_for, info, owner });
    }
    Ok(state)
}
