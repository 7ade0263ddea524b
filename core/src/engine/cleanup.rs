//! The cleanup task: frees and leaves until the store confirms, so that nothing is left behind by whoever gave up.

use std::sync::Arc;

use futures_channel::{mpsc, oneshot};
use futures_util::future::{Either, Shared, select};
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::request::LockId;
use super::retry_delays::RetryDelays;
use crate::error::Code;
use crate::port::backoff::Backoff;
use crate::port::{
    Action, Answer, BoxFuture, Instant, LeaseHandle, Outcome, OwnerId, RuntimeHandle,
};
use crate::released::Released;

/// A batch that several wait for; whoever polls it carries it on.
pub(crate) type Batch = Shared<BoxFuture<'static, Vec<Answer>>>;

/// Something to take back on the store.
pub(crate) struct Cleanup {
    pub lock: LockId,
    pub owner: OwnerId,
    /// A Free or a Leave: both may be repeated.
    pub action: Action,
    /// When it has settled itself and need not be repeated any more.
    pub until: Instant,
    /// Dropped when it is settled.
    #[expect(dead_code, reason = "whoever has the other end asks whether it is still there")]
    pub settled: Option<Arc<()>>,
}

enum Message {
    Cleanup(Cleanup),
    /// Carry this batch on; its first answer is that of the cleanup.
    Finish(Cleanup, Batch),
    /// Answer when everything before has been settled.
    Flush(oneshot::Sender<()>),
}

/// The way to the cleanup task. Never blocks, and may be used anywhere, also while a thread unwinds.
#[derive(Clone)]
pub(crate) struct CleanupSender(mpsc::UnboundedSender<Message>);

pub(crate) struct CleanupReceiver(mpsc::UnboundedReceiver<Message>);

pub(crate) fn channel() -> (CleanupSender, CleanupReceiver) {
    let (sender, receiver) = mpsc::unbounded();
    (CleanupSender(sender), CleanupReceiver(receiver))
}

/// How an answered Free or Leave reads to the one who released.
pub(crate) fn released(outcome: &Outcome) -> Released {
    match outcome {
        Outcome::Freed => Released::Released,
        _ => Released::AlreadyLost,
    }
}

impl CleanupSender {
    pub(crate) fn send(&self, cleanup: Cleanup) {
        // Fails only when the client's task is gone with its runtime; then the lease ends by itself.
        let _ = self.0.unbounded_send(Message::Cleanup(cleanup));
    }

    /// Carries on a batch nobody may be waiting for any more.
    pub(crate) fn finish(&self, cleanup: Cleanup, batch: Batch) {
        let _ = self.0.unbounded_send(Message::Finish(cleanup, batch));
    }

    /// Completes when all that was sent before is settled.
    pub(crate) async fn flush(&self) {
        let (done, wait) = oneshot::channel();
        if self.0.unbounded_send(Message::Flush(done)).is_ok() {
            let _ = wait.await;
        }
    }
}

/// Repeats what is to be cleaned up until the client is gone and all is settled.
pub(crate) async fn run(
    mut inbox: CleanupReceiver,
    store: LeaseHandle,
    runtime: RuntimeHandle,
    retry_delays: RetryDelays,
) {
    let settling =
        |batch, begun| settle(batch, begun, store.clone(), runtime.clone(), retry_delays.clone());
    let mut under_way = FuturesUnordered::new();
    let mut open = true;
    let mut flushes: Vec<oneshot::Sender<()>> = Vec::new();
    while open || !under_way.is_empty() {
        let message = if under_way.is_empty() {
            for done in flushes.drain(..) {
                let _ = done.send(());
            }
            inbox.0.next().await
        } else if open {
            match select(inbox.0.next(), under_way.next()).await {
                Either::Left((message, _)) => message,
                Either::Right(_) => continue,
            }
        } else {
            under_way.next().await;
            continue;
        };
        let mut batch = Vec::new();
        let mut next = message;
        open = next.is_some();
        while let Some(message) = next {
            match message {
                Message::Cleanup(cleanup) => batch.push(cleanup),
                Message::Finish(cleanup, begun) => {
                    under_way.push(settling(vec![cleanup], Some(begun)));
                }
                Message::Flush(done) => flushes.push(done),
            }
            next = inbox.0.try_recv().ok();
        }
        if !batch.is_empty() {
            under_way.push(settling(batch, None));
        }
    }
}

/// Repeats a batch until every one of it is confirmed or has settled itself; the first time it may be under way already.
async fn settle(
    mut batch: Vec<Cleanup>,
    mut begun: Option<Batch>,
    store: LeaseHandle,
    runtime: RuntimeHandle,
    retry_delays: RetryDelays,
) {
    let mut backoff = Backoff::new();
    loop {
        let step = |cleanup: &Cleanup| cleanup.lock.step(cleanup.owner, cleanup.action.clone());
        let answers = match begun.take() {
            Some(begun) => begun.await,
            None => store.step(batch.iter().map(step).collect()).await,
        };
        let now = runtime.now();
        let open = |cleanup: &Cleanup, answer: &Answer| match answer {
            Ok(_) => false,
            // Nothing reaches the store any more.
            Err(failure) if failure.error.code() == Code::Closed => false,
            Err(_) => now < cleanup.until,
        };
        let answered = batch.into_iter().zip(&answers);
        batch = answered
            .filter(|(cleanup, answer)| open(cleanup, answer))
            .map(|(cleanup, _)| cleanup)
            .collect();
        if batch.is_empty() {
            return;
        }
        retry_delays.rest(backoff.next()).await;
    }
}
