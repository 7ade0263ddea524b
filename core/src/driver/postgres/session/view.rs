//! The state of a lock as the server reports it, for people who look.

use std::sync::Arc;
use std::time::Duration;

use super::connection::Connection;
use super::way::Way;
use crate::driver::sql::statement::{Row, Statement, column, name};
use crate::error::Result;
use crate::port::{Failure, HolderView, LockKey, LockState, Mode, WaiterView};

/// The holders of a lock and those who wait for it.
pub(super) async fn look<W: Way>(
    session: &Connection<W>,
    text: &Arc<str>,
    lock: &LockKey,
) -> Result<LockState, Failure> {
    let asked = Statement::kept(text, [name(lock.as_str())]);
    state(&session.send(&[asked], false).await?.rows()).map_err(Failure::refused)
}

/// The server knows neither tokens nor what a client says of itself.
fn state(rows: &[Row]) -> Result<LockState> {
    let mut state = LockState::default();
    for row in rows {
        let shared = column::<&str>(row, 1, "mode")? == "ShareLock";
        let mode = if shared { Mode::Read } else { Mode::Exclusive };
        let application = column::<Option<&str>>(row, 2, "application_name")?.unwrap_or_default();
        let backend = column::<i64>(row, 4, "pid")?;
        let info = serde_json::json!({ "app": application, "backend": backend });
        let info: Arc<str> = info.to_string().into();
        if column(row, 0, "granted")? {
            let (token, left, held_for, owner) = (None, None, None, None);
            state.holders.push(HolderView { mode, token, left, held_for, info, owner });
        } else {
            let waited = column::<Option<i64>>(row, 3, "waitstart")?.unwrap_or_default();
            let waiting_for = Duration::from_millis(u64::try_from(waited).unwrap_or_default());
            state.waiters.push(WaiterView { mode, info, waiting_for });
        }
    }
    state.kind = state.holders.first().map(|holder| holder.mode.kind()).unwrap_or_default();
    Ok(state)
}
