//! The removal of rows whose names nobody uses any more.
//!
//! A row goes a week after its counter was last needed: from then on a new row of its name draws a greater token, unless the clock was set
//! back by more than that.

use std::sync::Arc;

use super::link::Link;

impl Link {
    /// A row was made. Sweeps beside whoever made it, if it is time.
    pub(super) fn row_made(self: &Arc<Self>) {
        let Some(from) = self.sweep.lock().row_made() else { return };
        let link = self.clone();
        self.runtime.spawn(Box::pin(async move {
            let Ok(live) = link.single().await else { return };
            let asked = async { live.client.query_one(&live.statements.sweep, &[&from]).await };
            let swept = link.ask(&live, asked, false).await;
            let swept = swept.map(|row| row.get(0));
            link.sweep.lock().swept(swept.map_err(|fault| fault.failure.error.code()));
        }));
    }
}
