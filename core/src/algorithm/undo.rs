//! Housekeeping: frees and leaves until the store confirms, so that nothing is left behind by whoever gave up.

use std::sync::Arc;

use futures_channel::{mpsc, oneshot};
use futures_util::future::{Either, Shared, select};
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::rest::Rests;
use super::target::Target;
use crate::error::Code;
use crate::port::backoff::Backoff;
use crate::port::{
    Action, Answer, BoxFuture, Instant, LeaseHandle, Outcome, OwnerId, RuntimeHandle,
};
use crate::released::Released;

/// A batch that several wait for; whoever polls it carries it on.
pub(crate) type Batch = Shared<BoxFuture<'static, Vec<Answer>>>;

/// Something to take back on the store.
pub(crate) struct Undo {
    pub lock: Target,
    pub owner: OwnerId,
    /// A Free, a Leave or a Change: all may be repeated.
    pub action: Action,
    /// When it has settled itself and need not be repeated any more.
    pub until: Instant,
    /// Dropped when it is settled.
    #[expect(dead_code, reason = "whoever has the other end asks whether it is still there")]
    pub settled: Option<Arc<()>>,
}

enum Message {
    Undo(Undo),
    /// Carry this batch on; its first answer is that of the undo.
    Finish(Undo, Batch),
    /// Answer when everything before has been settled.
    Flush(oneshot::Sender<()>),
}

/// The way to the housekeeping task. Never blocks, and may be used anywhere, also while a thread unwinds.
#[derive(Clone)]
pub(crate) struct UndoSender(mpsc::UnboundedSender<Message>);

pub(crate) struct UndoReceiver(mpsc::UnboundedReceiver<Message>);

pub(crate) fn channel() -> (UndoSender, UndoReceiver) {
    let (sender, receiver) = mpsc::unbounded();
    (UndoSender(sender), UndoReceiver(receiver))
}

/// How an answered Free or Leave reads to the one who released.
pub(crate) fn released(outcome: &Outcome) -> Released {
    let freed = matches!(outcome, Outcome::Freed) || mutant!(GoneToldAsReleased);
    if freed { Released::Released } else { Released::AlreadyLost }
}

impl UndoSender {
    pub(crate) fn send(&self, undo: Undo) {
        // Fails only when the client's task is gone with its runtime; then the lease ends by itself.
        let _ = self.0.unbounded_send(Message::Undo(undo));
    }

    /// Carries on a batch nobody may be waiting for any more.
    pub(crate) fn finish(&self, undo: Undo, batch: Batch) {
        let _ = self.0.unbounded_send(Message::Finish(undo, batch));
    }

    /// Completes when all that was sent before is settled.
    pub(crate) async fn flush(&self) {
        let (done, wait) = oneshot::channel();
        if self.0.unbounded_send(Message::Flush(done)).is_ok() {
            let _ = wait.await;
        }
    }
}

/// Carries undos out until the client is gone and all is settled.
pub(crate) async fn housekeeping(
    mut inbox: UndoReceiver,
    store: LeaseHandle,
    runtime: RuntimeHandle,
    rests: Rests,
) {
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
                Message::Undo(undo) => batch.push(undo),
                Message::Finish(undo, begun) => {
                    let (store, runtime) = (store.clone(), runtime.clone());
                    under_way.push(settle(vec![undo], Some(begun), store, runtime, rests.clone()));
                }
                Message::Flush(done) => flushes.push(done),
            }
            next = inbox.0.try_recv().ok();
        }
        if !batch.is_empty() {
            under_way.push(settle(batch, None, store.clone(), runtime.clone(), rests.clone()));
        }
    }
}

/// Repeats a batch until every one of it is confirmed or has settled itself; the first time it may be under way already.
async fn settle(
    mut batch: Vec<Undo>,
    mut begun: Option<Batch>,
    store: LeaseHandle,
    runtime: RuntimeHandle,
    rests: Rests,
) {
    let mut backoff = Backoff::new();
    loop {
        let step = |undo: &Undo| undo.lock.step(undo.owner, undo.action.clone());
        let answers = match begun.take() {
            Some(begun) => begun.await,
            None => store.step(batch.iter().map(step).collect()).await,
        };
        let now = runtime.now();
        let open = |undo: &Undo, answer: &Answer| match answer {
            Ok(_) => false,
            // Nothing reaches the store any more.
            Err(failure) if failure.error.code() == Code::Closed => false,
            Err(_) => now < undo.until && !mutant!(UndoNotRepeated),
        };
        let answered = batch.into_iter().zip(&answers);
        batch =
            answered.filter(|(undo, answer)| open(undo, answer)).map(|(undo, _)| undo).collect();
        if batch.is_empty() {
            return;
        }
        rests.rest(backoff.next()).await;
    }
}
