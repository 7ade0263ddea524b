//! The plain cases, each as one statement. A statement that finds no plain case changes nothing, and the step goes the long way.

use std::future::Future;
use std::time::Duration;

use futures_util::future::{join, join_all};

use super::fault::{Fault, Next};
use super::known::Known;
use super::signed;
use crate::error::Result;
use crate::fence::Token;
use crate::port::limits::TOKEN_LEAD;
use crate::port::{Action, Answer, Failure, Kind, Layout, Mode, Outcome, OwnerId, Step, Take};

/// A Take of a mutex, as statements take it. Times are µs.
pub(in crate::driver) struct Taking<'a> {
    pub(in crate::driver) name: &'a str,
    pub(in crate::driver) owner: OwnerId,
    /// The text that describes the client that asks.
    pub(in crate::driver) info: &'a str,
    pub(in crate::driver) ttl: i64,
    /// How many tokens are drawn behind the first.
    pub(in crate::driver) behind: i64,
    /// The highest token that is known of it.
    pub(in crate::driver) floor: i64,
}

/// A Renew of a mutex.
pub(in crate::driver) struct Renewing<'a> {
    pub(in crate::driver) name: &'a str,
    pub(in crate::driver) owner: OwnerId,
    pub(in crate::driver) ttl: i64,
}

/// The tokens that were drawn: the first and the last.
pub(in crate::driver) type Drawn = (i64, i64);

/// A hold that was renewed: its lock, its token, and how much of it is left, in µs.
pub(in crate::driver) type Renewed = (String, i64, i64);

/// The statements.
pub(in crate::driver) trait Plain: Send + Sync {
    /// Takes a mutex that has no row yet.
    fn make(
        &self,
        taking: &Taking<'_>,
    ) -> impl Future<Output = Result<Option<Drawn>, Fault>> + Send;

    /// Takes a mutex that nobody holds, waits for or has left a mark at.
    fn take(
        &self,
        taking: &Taking<'_>,
    ) -> impl Future<Output = Result<Option<Drawn>, Fault>> + Send;

    /// Ends the hold of a mutex nobody waits for; whether there was one.
    fn free(&self, name: &str, owner: OwnerId) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// Renews holds of mutexes, of different locks.
    fn renew(
        &self,
        holds: &[Renewing<'_>],
    ) -> impl Future<Output = Result<Vec<Renewed>, Fault>> + Send;
}

/// Carries out what is plain of these steps. `connect` is asked only if there is anything.
pub(in crate::driver) async fn plain<P: Plain>(
    known: &Known,
    steps: &[&Step],
    connect: impl Future<Output = Result<P>> + Send,
) -> Vec<Option<Answer>> {
    let mut answers: Vec<Option<Answer>> = vec![None; steps.len()];
    let (mut renewals, mut others) = (Vec::new(), Vec::new());
    for (at, step) in steps.iter().enumerate().filter(|(_, step)| is_plain(step)) {
        match &step.action {
            Action::Renew { .. } => renewals.push(at),
            Action::Take(Take { mode: Mode::Exclusive, .. }) | Action::Free { .. }
                if !known.is_crowded(&step.lock) =>
            {
                others.push(at);
            }
            _ => {}
        }
    }
    if renewals.is_empty() && others.is_empty() {
        return answers;
    }
    let statements = match connect.await {
        Ok(statements) => statements,
        Err(error) => {
            for at in renewals.into_iter().chain(others) {
                answers[at] = Some(Err(Failure::refused(error.clone())));
            }
            return answers;
        }
    };
    let renewed: Vec<&Step> = renewals.iter().map(|at| steps[*at]).collect();
    let renewing =
        async { if renewed.is_empty() { Vec::new() } else { renew(&statements, &renewed).await } };
    let one = async |at: &usize| match &steps[*at].action {
        Action::Take(wanted) => take(&statements, known, steps[*at], wanted).await,
        _ => free(&statements, steps[*at]).await,
    };
    let (renewed, done) = join(renewing, join_all(others.iter().map(one))).await;
    for (at, answer) in renewals.into_iter().zip(renewed).chain(others.into_iter().zip(done)) {
        answers[at] = answer;
    }
    answers
}

/// Whether a single statement may do. What another library sees too takes more.
fn is_plain(step: &Step) -> bool {
    step.kind == Kind::Mutex && step.lock.layout() == Layout::Own
}

/// `None` if the statement was certainly not carried out because others were in the way: it goes the long way, where it may wait.
fn fault(fault: Fault) -> Option<Answer> {
    match fault.next {
        Next::Again | Next::Elsewhere => None,
        Next::Reconnect | Next::Keep => Some(Err(fault.failure)),
    }
}

async fn take(statements: &impl Plain, known: &Known, step: &Step, take: &Take) -> Option<Answer> {
    let block = take.block.saturating_sub(1);
    let taking = Taking {
        name: step.lock.as_str(),
        owner: step.owner,
        info: &take.info,
        ttl: micros(take.ttl),
        // What reaches no further ahead of the clock is drawn whole.
        behind: i64::from(block).min(micros(TOKEN_LEAD)),
        floor: signed(take.floor.get()),
    };
    let mut drawn = None;
    if taking.floor == 0 && !known.has(&step.lock) {
        drawn = match statements.make(&taking).await {
            Ok(drawn) => drawn,
            Err(failed) => return fault(failed),
        };
    }
    if drawn.is_none() {
        drawn = match statements.take(&taking).await {
            Ok(drawn) => drawn,
            Err(failed) => return fault(failed),
        };
    }
    let (first, last) = drawn?;
    known.note([(&step.lock, false)].into_iter());
    Some(Ok(Outcome::Granted {
        token: Token::new(first as u64),
        left: take.ttl,
        drawn: u32::try_from(last - first).unwrap_or(u32::MAX).min(block) + 1,
    }))
}

async fn free(statements: &impl Plain, step: &Step) -> Option<Answer> {
    match statements.free(step.lock.as_str(), step.owner).await {
        Ok(freed) => freed.then_some(Ok(Outcome::Freed)),
        Err(failed) => fault(failed),
    }
}

async fn renew(statements: &impl Plain, steps: &[&Step]) -> Vec<Option<Answer>> {
    let holds: Vec<_> = steps.iter().map(|step| renewing(step)).collect();
    let rows = match statements.renew(&holds).await {
        Ok(rows) => rows,
        Err(Fault { failure, next }) => {
            let answer = |_| fault(Fault { failure: failure.clone(), next });
            return steps.iter().map(answer).collect();
        }
    };
    let answer = |step: &&Step| {
        let (_, token, left) = rows.iter().find(|(name, ..)| name == step.lock.as_str())?;
        let left = Duration::from_micros(u64::try_from(*left).unwrap_or_default());
        Some(Ok(Outcome::Granted { token: Token::new(*token as u64), left, drawn: 1 }))
    };
    steps.iter().map(answer).collect()
}

fn renewing(step: &Step) -> Renewing<'_> {
    let ttl = match step.action {
        Action::Renew { ttl } => micros(ttl),
        _ => 0,
    };
    Renewing { name: step.lock.as_str(), owner: step.owner, ttl }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
