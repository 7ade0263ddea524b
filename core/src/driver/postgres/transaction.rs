//! Transactions, each on a connection of its own and on a task of its own: once begun it runs to its end, whoever stays for it.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::{Either, join, select};

use super::fault::{Fault, Next, judge, lost};
use super::link::Link;
use super::live::Live;
use super::row;
use super::statement::Several;
use crate::driver::datagram;
use crate::driver::recorded::{Loaded, Told};
use crate::error::Error;
use crate::port::backoff::Backoff;
use crate::port::{Applied, Failure, LockKey};

/// Rows do not depend on what was seen before: each statement sees the newest, whatever the database's own default.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// How far one try of a transaction has come.
#[derive(Default)]
pub(super) struct Progress(AtomicBool);

impl Progress {
    /// From now on it may count.
    pub(super) fn decides(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn has_decided(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// What a transaction does. It may be tried several times; only one of them counts.
pub(super) trait Work: Send + Sync + 'static {
    /// What comes of it.
    type Done: Send + 'static;

    /// Tries once. After a failure that left the connection sound, it is rolled back.
    fn attempt(
        &self,
        link: &Link,
        live: &Live<Several>,
        progress: &Progress,
    ) -> impl Future<Output = Result<Self::Done, Fault>> + Send;
}

/// Carries a transaction out, on a task of its own.
pub(super) async fn carry_out<W: Work>(link: &Arc<Link>, work: W) -> Result<W::Done, Failure> {
    let (sender, answer) = futures_channel::oneshot::channel();
    let task = link.clone();
    link.runtime.spawn(Box::pin(async move {
        let _ = sender.send(repeat(&task, &work).await);
    }));
    let dropped = |_| Failure::unknown(Error::internal("the runtime dropped a task"));
    answer.await.map_err(dropped)?
}

/// Tries until it is carried out, for as long as it is certain that it was not and time is left.
async fn repeat<W: Work>(link: &Link, work: &W) -> Result<W::Done, Failure> {
    let end = link.runtime.now() + link.timeout;
    let mut backoff = Backoff::new();
    let late = |decides| lost(&link.address, "it took too long", decides).failure;
    let _turn = match select(pin!(link.turns.acquire()), link.runtime.sleep_until(end)).await {
        Either::Left((turn, _)) => turn,
        Either::Right(_) => return Err(late(false)),
    };
    let mut stale = true;
    loop {
        let live = link.several().await.map_err(Failure::refused)?;
        let progress = Progress::default();
        let over = link.runtime.sleep_until(end);
        let tried = {
            let attempt = pin!(work.attempt(link, &live, &progress));
            match select(attempt, over).await {
                Either::Left((tried, _)) => tried,
                // The connection ends with it.
                Either::Right(_) => return Err(late(progress.has_decided())),
            }
        };
        let fault = match tried {
            Ok(done) => {
                link.keep(live);
                return Ok(done);
            }
            Err(fault) => fault,
        };
        if fault.next != Next::Reconnect && live.client.batch_execute("ROLLBACK").await.is_ok() {
            link.keep(live);
        }
        let certain = fault.failure.applied == Applied::No;
        match fault.next {
            Next::Again if certain && link.runtime.now() < end => {
                let pause = Backoff::spread(backoff.next(), &link.runtime);
                link.runtime.sleep_until(link.runtime.now() + pause).await;
            }
            // A connection that lay idle may have been ended without a word; another one is asked once.
            Next::Reconnect if certain && stale => stale = false,
            _ => return Err(fault.failure),
        }
    }
}

/// Locks records, has `act` change them, and writes back what is different; tells when that is committed.
pub(super) struct Replace<A> {
    pub(super) locks: Vec<LockKey>,
    pub(super) act: A,
}

impl<T, A> Work for Replace<A>
where
    T: Send + 'static,
    A: Fn(&mut [Loaded], u64) -> (T, Told) + Send + Sync + 'static,
{
    type Done = T;

    async fn attempt(
        &self,
        link: &Link,
        live: &Live<Several>,
        progress: &Progress,
    ) -> Result<T, Fault> {
        let Self { locks, act } = self;
        let Live { client, statements, .. } = live;
        let harmless = |error: tokio_postgres::Error| judge(&link.address, &error, false);
        let names: Vec<&str> = locks.iter().map(LockKey::as_str).collect();
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
        let (mut records, now) = row::load(&rows, locks.clone());
        let before = records.clone();
        let (done, told) = act(&mut records, now);
        let changed: Vec<_> = before
            .iter()
            .zip(&records)
            .filter_map(|(before, after)| match (&before.record, &after.record) {
                (Ok(before), Ok(record)) if before != record => Some((&after.lock, record)),
                _ => None,
            })
            .collect();
        let (own, others): (Told, Told) =
            told.into_iter().partition(|(channel, _)| *channel == link.channel);
        let channels: Vec<&str> = others.iter().map(|(channel, _)| &**channel).collect();
        let texts: Vec<String> = others
            .iter()
            .map(|(_, notice)| {
                let mut text = String::new();
                datagram::write(&mut text, notice);
                text
            })
            .collect();
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
        link.tell_self(own.into_iter().map(|(_, notice)| notice));
        let waited_for =
            |loaded: &Loaded| loaded.record.as_ref().is_ok_and(|record| !record.tickets.is_empty());
        link.note(records.iter().map(|loaded| (&loaded.lock, waited_for(loaded))));
        Ok(done)
    }
}
