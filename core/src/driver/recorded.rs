//! Stores that keep a record of each lock and replace it in a transaction: the model runs in the client.
//!
//! A store says how records are locked, read and written ([`RecordStore`]); [`Recorded`] makes a store of locks of it. Memory and SQLite
//! run the model without this: nothing there is awaited between the reading of a record and its writing.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::join;

use crate::driver::record::{Record, StepContext};
use crate::error::{Code, Error, Result};
use crate::port::{
    Action, Answer, Capabilities, Cells, Failure, LeaseStore, LockKey, MaybeSend, MaybeSync,
    Notice, NoticeSink, Step,
};

/// The most steps of one transaction, so that no lock's record is kept from others for long.
const PART: usize = 24;

/// The record of one lock, or why it cannot be read. The other locks are not concerned.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The lock.
    pub lock: LockKey,
    /// Its record.
    pub record: Result<Record, Failure>,
}

/// The notices to send once a change is safely stored, each with the channel of the client that gets it.
pub type Outbox = Vec<(Arc<str>, Notice)>;

/// Records of locks, replaced at a moment of the store's own clock.
///
/// [`Recorded`] implements the steps of locks on it; this only locks, reads and writes.
pub trait RecordStore: MaybeSend + MaybeSync + 'static {
    /// [`LeaseStore::capabilities`].
    fn capabilities(&self) -> Capabilities;

    /// [`LeaseStore::warning`].
    fn warning(&self) -> Option<&'static str> {
        None
    }

    /// Whether a lock is never in one transaction with others, so that what is wrong with it concerns no other.
    fn is_alone(_: &LockKey) -> bool {
        false
    }

    /// Why a step on such a lock cannot be carried out, if so. Nothing is then asked of the store.
    fn refusal(_: &Step) -> Option<Failure> {
        None
    }

    /// Where this client listens.
    fn channel(&self) -> Arc<str>;

    /// Carries steps of different locks out, each by one statement if it is a plain case; `None` if the step is no plain
    /// case; it has changed nothing. One answer per step.
    fn plain(&self, steps: &[&Step]) -> impl Future<Output = Vec<Option<Answer>>> + MaybeSend;

    /// The records of these locks as they are, each as one change left it, and a moment of the store's clock after that.
    fn look(
        &self,
        locks: Vec<LockKey>,
    ) -> impl Future<Output = Result<(Vec<Loaded>, u64), Failure>> + MaybeSend;

    /// Locks these records, reads the store's clock, has `act` change the records at that moment, and keeps and tells the result as one
    /// change. `act` is asked again if a transaction could not be carried out; at most one of its results is kept. Dropping the future
    /// recalls nothing that was begun. `yields`: it can wait, so where many may want the records, others go first.
    fn transact<T: MaybeSend + 'static>(
        &self,
        locks: Vec<LockKey>,
        yields: bool,
        act: impl Fn(&mut [Loaded], u64) -> (T, Outbox) + MaybeSend + MaybeSync + 'static,
    ) -> impl Future<Output = Result<T, Failure>> + MaybeSend;

    /// [`LeaseStore::listen`].
    fn listen(&self, sink: NoticeSink) -> impl Future<Output = Result<()>> + MaybeSend;

    /// [`LeaseStore::names`].
    fn names(&self, prefix: &str) -> impl Future<Output = Result<Vec<LockKey>>> + MaybeSend;

    /// [`LeaseStore::cells`].
    fn cells(&self) -> Option<Cells<'_>> {
        None
    }

    /// [`LeaseStore::close`].
    fn close(&self) -> impl Future<Output = ()> + MaybeSend;
}

/// Locks on a [`RecordStore`].
#[derive(Debug)]
pub struct Recorded<S>(S);

impl<S: RecordStore> Recorded<S> {
    /// The store of locks over these records.
    pub fn new(store: S) -> Self {
        Self(store)
    }

    /// Asks for the plain cases first, and carries the rest out in one transaction.
    async fn part(&self, part: &[Step]) -> Vec<Answer> {
        if part.iter().all(|step| step.action.only_looks()) {
            return self.look(part).await;
        }
        // The order of steps counts within a lock only.
        let alone = |step: &&Step| part.iter().filter(|other| other.lock == step.lock).count() == 1;
        let plain: Vec<&Step> = part.iter().filter(alone).collect();
        let mut decided = self.0.plain(&plain).await.into_iter();
        let mut answers: Vec<Option<Answer>> = part
            .iter()
            .map(|step| alone(&step).then(|| decided.next()).flatten().flatten())
            .collect();
        let open =
            |(step, answer): (&Step, &Option<Answer>)| answer.is_none().then(|| step.clone());
        let rest: Arc<[Step]> = part.iter().zip(&answers).filter_map(open).collect();
        if !rest.is_empty() {
            let channel = self.0.channel();
            let steps = rest.clone();
            let act = move |records: &mut [Loaded], now| apply(&steps, records, now, &channel);
            // Hundreds may wait: a Free does not stand in line behind them.
            let waits =
                |step: &Step| matches!(step.action, Action::Take(_) | Action::Refresh { .. });
            let yields = rest.iter().all(waits);
            let done = self.0.transact(locks(&rest), yields, act).await;
            let mut done = done.unwrap_or_else(|failure| alike(rest.len(), &failure)).into_iter();
            for answer in answers.iter_mut().filter(|answer| answer.is_none()) {
                *answer = done.next();
            }
        }
        answers.into_iter().flatten().collect()
    }

    /// Carries steps out in as few transactions as may be.
    async fn together(&self, batch: &[Step]) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(batch.len());
        for part in batch.chunks(PART) {
            answers.extend(self.part(part).await);
        }
        answers
    }

    /// Carries each step out by itself, one after the other.
    async fn each(&self, steps: &[&Step]) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(steps.len());
        for step in steps {
            match S::refusal(step) {
                Some(refusal) => answers.push(Err(refusal)),
                None => answers.extend(self.part(std::slice::from_ref(*step)).await),
            }
        }
        answers
    }

    async fn look(&self, part: &[Step]) -> Vec<Answer> {
        match self.0.look(locks(part)).await {
            Ok((mut records, now)) => apply(part, &mut records, now, &self.0.channel()).0,
            Err(failure) => alike(part.len(), &failure),
        }
    }
}

/// The locks of these steps, each once, in order.
fn locks(steps: &[Step]) -> Vec<LockKey> {
    let mut locks: Vec<_> = steps.iter().map(|step| step.lock.clone()).collect();
    locks.sort_unstable();
    locks.dedup();
    locks
}

fn alike(count: usize, failure: &Failure) -> Vec<Answer> {
    (0..count).map(|_| Err(failure.clone())).collect()
}

/// Carries steps out, one after the other. Whether a client hears cannot be told from its records, so all count as reachable.
fn apply(
    steps: &[Step],
    records: &mut [Loaded],
    now: u64,
    channel: &Arc<str>,
) -> (Vec<Answer>, Outbox) {
    let mut context = StepContext::new(now, channel, &|_| true);
    let answer = |step: &Step| {
        let found = records.iter_mut().find(|loaded| loaded.lock == step.lock);
        let loaded = found.expect("the locks of all steps are loaded");
        match &mut loaded.record {
            Ok(record) => record.answer(step, &mut context),
            Err(failure) => Err(failure.clone()),
        }
    };
    let answers = steps.iter().map(answer).collect();
    (answers, context.notices)
}

/// Carries Takes of different locks out as one: all are granted, or no record is changed.
fn apply_all(
    steps: &[Step],
    records: &mut [Loaded],
    now: u64,
    channel: &Arc<str>,
) -> (Vec<Answer>, Outbox) {
    let mut context = StepContext::new(now, channel, &|_| true);
    let unread = records.iter().find_map(|loaded| loaded.record.as_ref().err().cloned());
    if let Some(failure) = unread {
        return (alike(steps.len(), &failure), context.notices);
    }
    let mut changed: Vec<(&Step, Record)> = Vec::with_capacity(steps.len());
    for step in steps {
        let found = records.iter().find(|loaded| loaded.lock == step.lock);
        let record = found.and_then(|loaded| loaded.record.as_ref().ok());
        changed.push((step, record.expect("the locks of all steps are loaded").clone()));
    }
    let (answers, granted) = Record::answer_all(&mut changed, &mut context);
    for (step, record) in changed.into_iter().filter(|_| granted) {
        if let Some(loaded) = records.iter_mut().find(|loaded| loaded.lock == step.lock) {
            loaded.record = Ok(record);
        }
    }
    (answers, context.notices)
}

impl<S: RecordStore> LeaseStore for Recorded<S> {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn warning(&self) -> Option<&'static str> {
        self.0.warning()
    }

    async fn step(&self, batch: &[Step]) -> Vec<Answer> {
        let is_alone = |step: &&Step| S::is_alone(&step.lock);
        if !batch.iter().any(|step| is_alone(&step)) {
            return self.together(batch).await;
        }
        let others: Vec<Step> = batch.iter().filter(|step| !is_alone(step)).cloned().collect();
        let alone: Vec<&Step> = batch.iter().filter(is_alone).collect();
        // Boxed: it is rare, and would make all steps' futures larger.
        let (others, alone) = Box::pin(join(self.together(&others), self.each(&alone))).await;
        let (mut others, mut alone) = (others.into_iter(), alone.into_iter());
        let next = |step| if is_alone(&step) { alone.next() } else { others.next() };
        batch.iter().filter_map(next).collect()
    }

    async fn step_all(&self, batch: &[Step]) -> Vec<Answer> {
        if batch.iter().any(|step| S::is_alone(&step.lock)) {
            let message = "several mutexes cannot be had as one in the tables of another library; take them one after the other";
            let refusal = Failure::refused(Error::new(Code::Unsupported, message));
            return alike(batch.len(), &refusal);
        }
        let (steps, channel): (Arc<[Step]>, _) = (batch.into(), self.0.channel());
        let act = move |records: &mut [Loaded], now| apply_all(&steps, records, now, &channel);
        let done = self.0.transact(locks(batch), false, act).await;
        done.unwrap_or_else(|failure| alike(batch.len(), &failure))
    }

    async fn listen(&self, sink: NoticeSink) -> Result<()> {
        self.0.listen(sink).await
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        self.0.names(prefix).await
    }

    fn cells(&self) -> Option<Cells<'_>> {
        self.0.cells()
    }

    async fn close(&self) {
        self.0.close().await;
    }
}
