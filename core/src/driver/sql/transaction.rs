//! Transactions, each on a connection of its own and on a task of its own: once begun it runs to its end, whoever stays for it.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{Either, select};

use super::dialect::Dialect;
use super::fault::{Fault, Next, lost};
use super::link::{Link, Purpose};
use crate::driver::within::{on_task, within};
use crate::port::backoff::Backoff;
use crate::port::{Applied, Failure};

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

/// The work of a transaction. It may be tried several times; only one of them counts.
pub(super) trait Work<D: Dialect>: Send + Sync + 'static {
    /// The result of the transaction.
    type Done: Send + 'static;

    const PURPOSE: Purpose = Purpose::Transaction;

    /// How long it may take, with all its tries.
    fn patience(&self, link: &Link<D>) -> Duration {
        link.timeout
    }

    /// Tries once. After a failure that left the connection sound, it is rolled back.
    fn attempt(
        &self,
        link: &Link<D>,
        connection: &mut D::Connection,
        progress: &Progress,
    ) -> impl Future<Output = Result<Self::Done, Fault>> + Send;
}

/// Carries a transaction out, on a task of its own.
pub(super) async fn carry_out<D: Dialect, W: Work<D>>(
    link: &Arc<Link<D>>,
    work: W,
) -> Result<W::Done, Failure> {
    let task = link.clone();
    let repeated = on_task(&link.runtime, async move { repeat(&task, &work).await });
    repeated.await.map_err(Failure::unknown)?
}

/// Tries until it is carried out, for as long as it is certain that it was not and time is left.
async fn repeat<D: Dialect, W: Work<D>>(link: &Link<D>, work: &W) -> Result<W::Done, Failure> {
    let runtime = &link.runtime;
    let end = runtime.now() + work.patience(link);
    let mut backoff = Backoff::new();
    let late = |decides| lost(&link.address, "it took too long", decides).failure;
    let left = || end.since(runtime.now());
    let turn = within(runtime, left(), link.turn(W::PURPOSE)).await;
    let _turn = turn.ok_or_else(|| late(false))?;
    let mut stale = true;
    loop {
        let opened = within(runtime, left(), link.take()).await;
        let mut connection = opened.ok_or_else(|| late(false))?.map_err(Failure::refused)?;
        let progress = Progress::default();
        let over = runtime.sleep_until(end);
        let tried = match select(pin!(work.attempt(link, &mut connection, &progress)), over).await {
            Either::Left((tried, _)) => tried,
            // The connection ends with it.
            Either::Right(_) => return Err(late(progress.has_decided())),
        };
        let fault = match tried {
            Ok(done) => {
                link.put_back(connection);
                return Ok(done);
            }
            Err(fault) => fault,
        };
        if fault.next != Next::Reconnect {
            link.roll_back(connection).await;
        }
        let certain = fault.failure.applied == Applied::No;
        match fault.next {
            Next::Again if certain && runtime.now() < end => {
                let pause = Backoff::spread(backoff.next(), runtime);
                runtime.sleep_until(runtime.now() + pause).await;
            }
            // A connection that lay idle may have been ended without a word; another one is asked once.
            Next::Reconnect if certain && stale => stale = false,
            _ => return Err(fault.failure),
        }
    }
}
