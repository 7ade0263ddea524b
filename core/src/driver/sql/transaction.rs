//! Transactions, each on a connection of its own and on a task of its own: once begun it runs to its end, whoever stays for it.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{Either, select};

use super::fault::{Fault, Next, lost};
use crate::driver::within::within;
use crate::error::{Error, Result};
use crate::port::backoff::Backoff;
use crate::port::{Applied, Failure, RuntimeHandle};

/// How far one try of a transaction has come.
#[derive(Default)]
pub(in crate::driver) struct Progress(AtomicBool);

impl Progress {
    /// From now on it may count.
    pub(in crate::driver) fn decides(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn has_decided(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// One client's connections for transactions.
pub(in crate::driver) trait Pool: Send + Sync + 'static {
    /// One of them.
    type Live: Send + Sync;

    fn runtime(&self) -> &RuntimeHandle;

    /// How long a step may take.
    fn timeout(&self) -> Duration;

    /// How many there may be at once.
    fn turns(&self) -> &tokio::sync::Semaphore;

    /// Where the servers are.
    fn server(&self) -> String;

    /// A connection no transaction is on.
    fn several(&self) -> impl Future<Output = Result<Self::Live>> + Send;

    /// Keeps a connection for the next transaction.
    fn keep(&self, live: Self::Live);

    /// Ends a transaction that failed; whether the connection is sound.
    fn roll_back(&self, live: &mut Self::Live) -> impl Future<Output = bool> + Send;
}

/// Awaits a look that is no transaction, for as long as a step may take.
pub(in crate::driver) async fn within_step<P: Pool, T>(
    pool: &P,
    look: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    let late = || Err(lost(&pool.server(), "it took too long", false));
    within(pool.runtime(), pool.timeout(), look).await.unwrap_or_else(late)
}

/// The work of a transaction. It may be tried several times; only one of them counts.
pub(in crate::driver) trait Work<P: Pool>: Send + Sync + 'static {
    /// The result of the transaction.
    type Done: Send + 'static;

    /// How long it may take, with all its tries.
    fn patience(&self, pool: &P) -> Duration {
        pool.timeout()
    }

    /// The semaphore at which it waits for its turn.
    fn turns<'p>(&self, pool: &'p P) -> &'p tokio::sync::Semaphore {
        pool.turns()
    }

    /// Tries once. After a failure that left the connection sound, it is rolled back.
    fn attempt(
        &self,
        pool: &P,
        live: &mut P::Live,
        progress: &Progress,
    ) -> impl Future<Output = Result<Self::Done, Fault>> + Send;
}

/// Carries a transaction out, on a task of its own.
pub(in crate::driver) async fn carry_out<P: Pool, W: Work<P>>(
    pool: &Arc<P>,
    work: W,
) -> Result<W::Done, Failure> {
    let (sender, answer) = futures_channel::oneshot::channel();
    let task = pool.clone();
    pool.runtime().spawn(Box::pin(async move {
        let _ = sender.send(repeat(&*task, &work).await);
    }));
    let dropped = |_| Failure::unknown(Error::internal("the runtime dropped a task"));
    answer.await.map_err(dropped)?
}

/// Tries until it is carried out, for as long as it is certain that it was not and time is left.
async fn repeat<P: Pool, W: Work<P>>(pool: &P, work: &W) -> Result<W::Done, Failure> {
    let runtime = pool.runtime();
    let end = runtime.now() + work.patience(pool);
    let mut backoff = Backoff::new();
    let late = |decides| lost(&pool.server(), "it took too long", decides).failure;
    let _turn = match select(pin!(work.turns(pool).acquire()), runtime.sleep_until(end)).await {
        Either::Left((turn, _)) => turn,
        Either::Right(_) => return Err(late(false)),
    };
    let mut stale = true;
    loop {
        let opened = within(runtime, end.since(runtime.now()), pool.several()).await;
        let mut live = opened.ok_or_else(|| late(false))?.map_err(Failure::refused)?;
        let progress = Progress::default();
        let over = runtime.sleep_until(end);
        let tried = {
            let attempt = pin!(work.attempt(pool, &mut live, &progress));
            match select(attempt, over).await {
                Either::Left((tried, _)) => tried,
                // The connection ends with it.
                Either::Right(_) => return Err(late(progress.has_decided())),
            }
        };
        let fault = match tried {
            Ok(done) => {
                pool.keep(live);
                return Ok(done);
            }
            Err(fault) => fault,
        };
        if fault.next != Next::Reconnect {
            let rolled_back = within(runtime, pool.timeout(), pool.roll_back(&mut live)).await;
            if rolled_back == Some(true) {
                pool.keep(live);
            }
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
