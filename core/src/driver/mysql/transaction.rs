//! Transactions on locks.

use std::time::Duration;

use super::fault::judge;
use super::link::{Link, roll_back};
use super::live::{Live, Statement, ask};
use super::told::{Told, concerns};
use super::{foreign, row, statement, told};
use crate::driver::record::Record;
use crate::driver::recorded::{Loaded, Told as Notices};
use crate::driver::sql::fault::Fault;
use crate::driver::sql::replace::Replace;
use crate::driver::sql::transaction::{Pool, Progress, Work};
use crate::error::Result as Outcome;
use crate::port::RuntimeHandle;

impl Pool for Link {
    type Live = Live;

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

    async fn several(&self) -> Outcome<Live> {
        self.take().await
    }

    fn keep(&self, live: Live) {
        self.put_back(live);
    }

    async fn roll_back(&self, live: &mut Live) -> bool {
        roll_back(live).await
    }
}

impl<T, A> Work<Link> for Replace<A>
where
    T: Send + 'static,
    A: Fn(&mut [Loaded], u64) -> (T, Notices) + Send + Sync + 'static,
{
    type Done = T;

    fn patience(&self, link: &Link) -> Duration {
        self.patience(link.timeout)
    }

    async fn attempt(&self, link: &Link, live: &mut Live, progress: &Progress) -> Result<T, Fault> {
        let Self { locks, .. } = self;
        let harmless = |error: mysql_async::Error| judge(&link.address, &error, false);
        let asked = Statement::Text(statement::lock(&link.tables, locks));
        let mut rows = ask(&mut live.conn, &asked).await.map_err(harmless)?.rows();
        if rows.len() < locks.len() {
            // The names that are new.
            let asked = Statement::Text(statement::insert(&link.tables, locks));
            rows = ask(&mut live.conn, &asked).await.map_err(harmless)?.rows();
            if rows.len() < locks.len() {
                return Err(Fault::vanished());
            }
        }
        let row::Rows { records, beside, now } = row::load(&rows, locks);
        for (lock, row) in locks.iter().zip(&beside) {
            link.hear(lock, row.version, &row.told);
        }
        let foreign = foreign::rows(&mut live.conn, &link.address, locks, true).await?;
        let replaced = self.apply(records, foreign, now, &link.channel);
        foreign::write(&mut live.conn, &link.address, &replaced.foreign).await?;
        let different = replaced.different();
        let mut others: Vec<_> = replaced.others.iter().collect();
        let mut changed = Vec::with_capacity(different.len());
        for (lock, record) in &different {
            let at = locks.iter().position(|known| known == *lock).expect("it is one of them");
            let row::Beside { version: read, told: before } = &beside[at];
            let version = read + 1;
            let (here, elsewhere) =
                others.into_iter().partition(|(_, notice)| concerns(notice, record));
            others = elsewhere;
            let new = here.into_iter().map(|(to, notice)| Told::new(version, to.clone(), notice));
            let told = told::written(before, new.collect(), record, &link.channel);
            // Before it is written: what is told right after that must not be missed.
            link.expect(lock, *read, ahead_of_ours(record, &link.channel));
            changed.push((*lock, *record, told));
        }
        let asked = if changed.is_empty() && replaced.foreign.is_empty() {
            statement::roll_back()
        } else {
            statement::store(&link.tables, &changed)
        };
        progress.decides();
        let written = ask(&mut live.conn, &Statement::Text(asked)).await;
        written.map_err(|error| judge(&link.address, &error, true))?;
        link.known.note(replaced.waited_for());
        link.tell_self(replaced.own);
        Ok(replaced.done)
    }
}

/// How many wait in this record before the first of this client's; `None` if none of them waits.
fn ahead_of_ours(record: &Record, channel: &str) -> Option<usize> {
    record.tickets.iter().position(|ticket| *ticket.channel == *channel)
}
