//! The table as a store of locks and of cells.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use futures_util::future::join;
use url::Url;

use super::cell::{self, Exchange};
use super::dialect::{AddressOf, Dialect, each};
use super::fault::Fault;
use super::foreign;
use super::foreign_rows;
use super::link::Link;
use super::model::{Loaded, Outbox, alike, apply, apply_all, locks};
use super::own_table;
use super::plain::plain;
use super::records::{Replace, load, names};
use super::statement::{Statement, column, name};
use super::transaction::carry_out;
use crate::error::{Code, Error, Result};
use crate::options::Options;
use crate::port::{
    Action, Answer, Capabilities, CellKey, CellStore, Cells, Change, Failure, Fence, LeaseStore,
    LockKey, Look, NoticeSink, RuntimeHandle, Step, Swap,
};

/// The most steps of one transaction, so that no lock's row is kept from others for long.
const PART: usize = 24;

/// One client's view of the locks in a table of a database.
pub struct SqlStore<D: Dialect>(Arc<Link<D>>);

impl<D: Dialect> fmt::Debug for SqlStore<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = &self.0.address;
        f.debug_struct("SqlStore").field("address", address).finish_non_exhaustive()
    }
}

impl<D: Dialect> SqlStore<D> {
    /// Connects to the first server that takes writes of `scheme://user[:password]@host[:port]/database`. `others` are the hosts behind the
    /// first, which a URL cannot hold.
    pub async fn connect(
        url: &Url,
        others: &[String],
        options: &Options,
        runtime: RuntimeHandle,
    ) -> Result<Self> {
        Link::open(url, others, options, runtime).await.map(Self)
    }

    /// Refuses a URL that names no server, without a connection.
    pub(crate) fn check(url: &Url, others: &[String]) -> Result<()> {
        AddressOf::<D>::read(url, others, D::RULES).map(drop)
    }

    /// Carries steps out in as few transactions as may be.
    async fn together(&self, batch: &[Step]) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(batch.len());
        for part in batch.chunks(PART) {
            answers.extend(self.part(part).await);
        }
        answers
    }

    /// Carries each step on another library's lock out by itself, one after the other: what is wrong with one concerns no other.
    async fn each(&self, steps: &[&Step]) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(steps.len());
        for step in steps {
            match foreign::refusal(step) {
                Some(refusal) => answers.push(Err(refusal)),
                None => answers.extend(self.part(std::slice::from_ref(*step)).await),
            }
        }
        answers
    }

    /// Asks for the plain cases first, and carries the rest out in one transaction.
    async fn part(&self, part: &[Step]) -> Vec<Answer> {
        if part.iter().all(|step| step.action.only_looks()) {
            return self.look(part).await;
        }
        // The order of steps counts within a lock only.
        let alone = |step: &&Step| part.iter().filter(|other| other.lock == step.lock).count() == 1;
        let steps: Vec<&Step> = part.iter().filter(alone).collect();
        let mut decided = plain(&self.0, &steps).await.into_iter();
        let mut answers: Vec<Option<Answer>> = part
            .iter()
            .map(|step| alone(&step).then(|| decided.next()).flatten().flatten())
            .collect();
        let open =
            |(step, answer): (&Step, &Option<Answer>)| answer.is_none().then(|| step.clone());
        let rest: Arc<[Step]> = part.iter().zip(&answers).filter_map(open).collect();
        if !rest.is_empty() {
            let (steps, channel) = (rest.clone(), self.0.channel.clone());
            let act = move |records: &mut [Loaded], now| apply(&steps, records, now, &channel);
            // Hundreds may wait: a Free does not stand in line behind them.
            let waits =
                |step: &Step| matches!(step.action, Action::Take(_) | Action::Refresh { .. });
            let yields = rest.iter().all(waits);
            let mut done = self.transact(&rest, yields, act).await.into_iter();
            for answer in answers.iter_mut().filter(|answer| answer.is_none()) {
                *answer = done.next();
            }
        }
        answers.into_iter().flatten().collect()
    }

    /// Reads the records of these locks as they are, each as one change left it.
    async fn look(&self, part: &[Step]) -> Vec<Answer> {
        let locks = locks(part);
        let look = || async {
            let answer = self.0.ask(each(&self.0.texts.look, &[names(&locks)]), false).await?;
            let found = foreign_rows::look(&self.0, &locks).await?;
            Ok((load(&answer.all(), &locks), found, answer.clock().map_err(Fault::refused)?))
        };
        let looked = foreign::look(look).await.map_err(|fault: Fault| fault.failure);
        match looked {
            Ok((mut records, now)) => apply(part, &mut records, now, &self.0.channel).0,
            Err(failure) => alike(part.len(), &failure),
        }
    }

    /// Locks the records of these steps, reads the server's clock, has `act` change the records at that moment, and keeps and tells the
    /// result as one change. `act` is asked again if a transaction could not be carried out; at most one of its results is kept. Dropping
    /// the future recalls nothing that was begun. `yields`: it can wait, so where many may want the records, others go first.
    async fn transact(
        &self,
        steps: &[Step],
        yields: bool,
        act: impl Fn(&mut [Loaded], u64) -> (Vec<Answer>, Outbox) + Send + Sync + 'static,
    ) -> Vec<Answer> {
        let replace = Replace { locks: locks(steps), yields, act };
        let done = carry_out(&self.0, replace).await;
        done.unwrap_or_else(|failure| alike(steps.len(), &failure))
    }
}

impl<D: Dialect> LeaseStore for SqlStore<D> {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new(D::NAME, Fence::ClockBounded)
            .with_dialects(&["shedlock", "spring"])
            .with_own_tables()
            .with_guarantees(self.0.dialect.guarantees())
    }

    fn warning(&self) -> Option<&'static str> {
        self.0.dialect.warning()
    }

    async fn step(&self, batch: &[Step]) -> Vec<Answer> {
        let is_foreign = |step: &&Step| foreign::is_foreign(&step.lock);
        if !batch.iter().any(|step| is_foreign(&step)) {
            return self.together(batch).await;
        }
        let ours: Vec<Step> = batch.iter().filter(|step| !is_foreign(step)).cloned().collect();
        let foreign: Vec<&Step> = batch.iter().filter(is_foreign).collect();
        // Boxed: it is rare, and would make all steps' futures larger.
        let (ours, foreign) = Box::pin(join(self.together(&ours), self.each(&foreign))).await;
        let (mut ours, mut foreign) = (ours.into_iter(), foreign.into_iter());
        let next = |step| if is_foreign(&step) { foreign.next() } else { ours.next() };
        batch.iter().filter_map(next).collect()
    }

    async fn step_all(&self, batch: &[Step]) -> Vec<Answer> {
        if batch.iter().any(|step| foreign::is_foreign(&step.lock)) {
            let message = "several mutexes cannot be had as one in the tables of another library; take them one after the other";
            let refusal = Failure::refused(Error::new(Code::Unsupported, message));
            return alike(batch.len(), &refusal);
        }
        let (steps, channel): (Arc<[Step]>, _) = (batch.into(), self.0.channel.clone());
        let act = move |records: &mut [Loaded], now| apply_all(&steps, records, now, &channel);
        self.transact(batch, false, act).await
    }

    async fn listen(&self, sink: NoticeSink) -> Result<()> {
        self.0.listen(sink).await
    }

    async fn names(&self, prefix: &str) -> Result<Vec<LockKey>> {
        let mut locks = BTreeSet::new();
        for first in foreign::row_prefixes(prefix) {
            let asked = Statement::kept(&self.0.texts.names, [name(first)]);
            let answer = self.0.ask(vec![asked], false).await;
            for row in answer.map_err(|fault| fault.failure.error)?.all() {
                let name = column(row, 0, "name")?;
                locks.insert(foreign::lock_of_row(name));
            }
        }
        Ok(locks.into_iter().filter(|lock| lock.as_str().starts_with(prefix)).collect())
    }

    fn cells(&self) -> Option<Cells<'_>> {
        Some(Cells::of(self))
    }

    async fn close(&self) {
        self.0.close();
    }
}

impl<D: Dialect> CellStore for SqlStore<D> {
    async fn read(&self, key: &CellKey) -> Result<Look> {
        if key.table.is_none() {
            return cell::look(&self.0, key).await;
        }
        let read = carry_out(&self.0, own_table::Read(key.clone())).await;
        read.map_err(|failure| failure.error)
    }

    async fn compare_and_set(&self, change: &Change) -> Result<Swap, Failure> {
        if change.key.table.is_none() {
            return carry_out(&self.0, Exchange(change.clone())).await;
        }
        carry_out(&self.0, own_table::Replace(change.clone())).await
    }
}

impl<D: Dialect> Drop for SqlStore<D> {
    fn drop(&mut self) {
        self.0.close();
    }
}
