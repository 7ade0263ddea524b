//! A batch on its way to all nodes. Nodes that are still out when the matter is decided run on in the background.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, Stream, StreamExt};

use super::holds::{Kept, KeptByNode};
use super::voters::Voters;
use crate::error::{Code, Error};
use crate::port::{Action, Answer, BoxFuture, Failure, Outcome, OwnerId, Step, Take, Vote};

type Return = (usize, Arc<[Step]>, Vec<Answer>);

/// The requests that were sent, and those whose answers have not come back.
pub(super) struct Fanout {
    voters: Arc<Voters>,
    out: FuturesUnordered<BoxFuture<'static, Return>>,
    /// Which nodes have come back.
    back: Vec<bool>,
    patience: Option<BoxFuture<'static, ()>>,
    /// Of a vote that was won, where its late answers are noted. What a lost one is granted late is given back.
    pub(super) won: Option<KeptByNode>,
    /// Of the holds that end by these steps, what the nodes keep.
    pub(super) ended: BTreeMap<OwnerId, KeptByNode>,
}

impl Fanout {
    /// Sends each node its batch; nodes whose batch is empty are left out. After `patience` nobody is waited for.
    pub(super) fn send(
        voters: &Arc<Voters>,
        batches: Vec<Arc<[Step]>>,
        patience: Duration,
    ) -> Self {
        let out = FuturesUnordered::new();
        let (now, longest) = (voters.runtime.now(), voters.patience(voters.max_ttl));
        let mut back = Vec::with_capacity(batches.len());
        for (number, batch) in batches.into_iter().enumerate() {
            back.push(batch.is_empty());
            if batch.is_empty() {
                continue;
            }
            let node = Arc::clone(&voters.nodes[number]);
            let request: BoxFuture<'static, Return> = if node.begin(now, longest) {
                let (runtime, asked) = (voters.runtime.clone(), node.store.step(batch.to_vec()));
                Box::pin(async move {
                    let answers = asked.await;
                    node.end(answers.iter().any(Result::is_ok), runtime.now());
                    (number, batch, answers)
                })
            } else {
                let busy = Error::new(Code::Unavailable, "the node does not answer");
                let answers = vec![Err(Failure::refused(busy)); batch.len()];
                Box::pin(std::future::ready((number, batch, answers)))
            };
            out.push(request);
        }
        let patience = Some(voters.runtime.sleep_until(now + patience));
        Self { voters: Arc::clone(voters), out, back, patience, won: None, ended: BTreeMap::new() }
    }

    /// The next answer; `None` when nobody is waited for any more.
    pub(super) async fn next(&mut self) -> Option<Return> {
        let (number, batch, answers) = poll_fn(|context| {
            let out = Pin::new(&mut self.out);
            if let Poll::Ready(next) = out.poll_next(context) {
                return Poll::Ready(next);
            }
            let nodes = self.voters.nodes.iter().zip(&self.back);
            let mut awaited = nodes.filter(|(_, back)| !**back);
            if awaited.all(|(node, _)| node.is_silent()) {
                return Poll::Ready(None);
            }
            let over =
                self.patience.as_mut().is_none_or(|over| over.as_mut().poll(context).is_ready());
            if !over {
                return Poll::Pending;
            }
            self.patience = None;
            let nodes = self.voters.nodes.iter().zip(&self.back);
            nodes.filter(|(_, back)| !**back).for_each(|(node, _)| node.fell_silent());
            Poll::Ready(None)
        })
        .await?;
        self.back[number] = true;
        noted(&self.voters, &self.ended, number, (&batch, &answers));
        Some((number, batch, answers))
    }

    /// Has everything gone out, without waiting for an answer.
    pub(super) async fn sent(&mut self) {
        let back = poll_fn(|context| match Pin::new(&mut self.out).poll_next(context) {
            Poll::Ready(back) => Poll::Ready(back),
            Poll::Pending => Poll::Ready(None),
        });
        if let Some((number, batch, answers)) = back.await {
            self.back[number] = true;
            noted(&self.voters, &self.ended, number, (&batch, &answers));
        }
    }
}

impl Drop for Fanout {
    fn drop(&mut self) {
        if self.out.is_empty() {
            return;
        }
        let (voters, mut out) = (Arc::clone(&self.voters), std::mem::take(&mut self.out));
        let (won, ended) = (self.won.take(), std::mem::take(&mut self.ended));
        self.voters.runtime.spawn(Box::pin(async move {
            while let Some((number, batch, answers)) = out.next().await {
                noted(&voters, &ended, number, (&batch, &answers));
                for (step, answer) in batch.iter().zip(&answers) {
                    match (&step.action, answer) {
                        (Action::Renew { .. }, Ok(Outcome::Gone)) => voters.heal(number, step),
                        // It raised a counter at most.
                        (Action::Take(Take { vote: Some(Vote { again: true, .. }), .. }), _) => {}
                        (Action::Take(_), answer) => match (&won, Kept::after(answer)) {
                            (Some(hold), kept) => voters.voted(hold, number, step, kept),
                            (None, Kept::Nothing) => {}
                            (None, _) => voters.clean_up(number, step),
                        },
                        _ => {}
                    }
                }
            }
        }));
    }
}

/// Takes in a node's answers: an end that it did not confirm is repeated there.
fn noted(
    voters: &Arc<Voters>,
    ended: &BTreeMap<OwnerId, KeptByNode>,
    number: usize,
    (batch, answers): (&[Step], &[Answer]),
) {
    for (step, answer) in batch.iter().zip(answers) {
        let ends =
            matches!(step.action, Action::Free { .. } | Action::Leave { .. } | Action::Break);
        if ends && answer.is_err() {
            voters.unconfirmed(ended.get(&step.owner), number, step);
        }
    }
}
