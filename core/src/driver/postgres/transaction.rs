//! Transactions on locks.

use std::time::Duration;

use futures_util::future::join;

use super::fault::judge;
use super::foreign;
use super::link::Link;
use super::live::Live;
use super::row;
use super::statement::Several;
use crate::driver::datagram;
use crate::driver::recorded::{Loaded, Told};
use crate::driver::sql::fault::Fault;
use crate::driver::sql::foreign::row_name;
use crate::driver::sql::replace::Replace;
use crate::driver::sql::transaction::{Pool, Progress, Work};
use crate::error::Result as Outcome;
use crate::port::RuntimeHandle;

/// Rows do not depend on what was seen before: each statement sees the newest, whatever the database's own default.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

impl Pool for Link {
    type Live = Live<Several>;

    fn runtime(&self) -> &RuntimeHandle {
        &self.runtime
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn turns(&self) -> &tokio::sync::Semaphore {
        &self.turns
    }

    fn server(&self) -> String {
        self.address.to_string()
    }

    async fn several(&self) -> Outcome<Live<Several>> {
        self.open_several().await
    }

    fn keep(&self, live: Live<Several>) {
        self.put_back(live);
    }

    async fn roll_back(&self, live: &mut Live<Several>) -> bool {
        live.client.batch_execute("ROLLBACK").await.is_ok()
    }
}

impl<T, A> Work<Link> for Replace<A>
where
    T: Send + 'static,
    A: Fn(&mut [Loaded], u64) -> (T, Told) + Send + Sync + 'static,
{
    type Done = T;

    fn patience(&self, link: &Link) -> Duration {
        self.patience(link.timeout)
    }

    async fn attempt(
        &self,
        link: &Link,
        live: &mut Live<Several>,
        progress: &Progress,
    ) -> Result<T, Fault> {
        let Self { locks, .. } = self;
        let Live { client, statements, .. } = live;
        let harmless = |error: tokio_postgres::Error| judge(&link.address, &error, false);
        let names: Vec<_> = locks.iter().map(row_name).collect();
        // One flight: what is polled first is sent first.
        let (begun, rows) =
            join(client.batch_execute(BEGIN), client.query(&statements.lock, &[&names])).await;
        begun.map_err(harmless)?;
        let mut rows = rows.map_err(harmless)?;
        if rows.len() < locks.len() {
            // The names that are new.
            let (made, again) = join(
                client.execute(&statements.insert, &[&names]),
                client.query(&statements.lock, &[&names]),
            )
            .await;
            made.map_err(harmless)?;
            rows = again.map_err(harmless)?;
            if rows.len() < locks.len() {
                return Err(Fault::vanished());
            }
        }
        let (records, now) = row::load(&rows, locks.clone());
        let rows = foreign::rows(client, &link.address, locks, true).await?;
        let replaced = self.apply(records, rows, now, &link.channel);
        foreign::write(client, &link.address, &replaced.foreign).await?;
        let others = &replaced.others;
        let channels: Vec<&str> = others.iter().map(|(channel, _)| &**channel).collect();
        let texts: Vec<String> = others
            .iter()
            .map(|(_, notice)| {
                let mut text = String::new();
                datagram::write(&mut text, notice);
                text
            })
            .collect();
        let changed = replaced.different();
        progress.decides();
        let written = row::store(client, &statements.store, &changed);
        let telling = async {
            if channels.is_empty() {
                return Ok(());
            }
            client.query(&statements.tell, &[&channels, &texts]).await.map(drop)
        };
        let committed = client.batch_execute("COMMIT");
        let (written, (telling, committed)) = join(written, join(telling, committed)).await;
        // What was not written was not committed either, if the server says so.
        let decisive = |error: tokio_postgres::Error| judge(&link.address, &error, true);
        written.and(telling).and(committed).map_err(decisive)?;
        link.known.note(replaced.waited_for());
        link.tell_self(replaced.own.into_iter());
        Ok(replaced.done)
    }
}
