//! The plain cases, each as one statement. A statement that finds no plain case changes nothing, and the step goes the long way.

use std::sync::Arc;

use futures_util::future::{join, join_all};

use super::fault::{Fault, Next};
use super::link::Link;
use super::live::Live;
use super::statement::Single;
use super::value::{Hidden, signed};
use crate::fence::Token;
use crate::port::limits::TOKEN_LEAD;
use crate::port::{Action, Answer, Failure, Kind, Mode, Outcome, Step, Take};

/// Carries out what is plain of these steps, all in one flight.
pub(super) async fn plain(link: &Link, steps: &[&Step]) -> Vec<Option<Answer>> {
    let mut answers: Vec<Option<Answer>> = vec![None; steps.len()];
    let (mut renewals, mut others) = (Vec::new(), Vec::new());
    for (at, step) in steps.iter().enumerate().filter(|(_, step)| step.kind == Kind::Mutex) {
        match &step.action {
            Action::Renew { .. } => renewals.push(at),
            Action::Take(Take { mode: Mode::Exclusive, .. }) | Action::Free { .. }
                if !link.is_crowded(&step.lock) =>
            {
                others.push(at);
            }
            _ => {}
        }
    }
    if renewals.is_empty() && others.is_empty() {
        return answers;
    }
    let live = match link.single().await {
        Ok(live) => live,
        Err(error) => {
            for at in renewals.into_iter().chain(others) {
                answers[at] = Some(Err(Failure::refused(error.clone())));
            }
            return answers;
        }
    };
    let renewed: Vec<&Step> = renewals.iter().map(|at| steps[*at]).collect();
    let renewing =
        async { if renewed.is_empty() { Vec::new() } else { renew(link, &live, &renewed).await } };
    let one = async |at: &usize| match &steps[*at].action {
        Action::Take(wanted) => take(link, &live, steps[*at], wanted).await,
        _ => free(link, &live, steps[*at]).await,
    };
    let (renewed, done) = join(renewing, join_all(others.iter().map(one))).await;
    for (at, answer) in renewals.into_iter().zip(renewed).chain(others.into_iter().zip(done)) {
        answers[at] = answer;
    }
    answers
}

/// What is certain not to have been carried out because others were in the way goes the long way, where it may wait.
fn fault(fault: Fault) -> Option<Answer> {
    match fault.next {
        Next::Again | Next::Elsewhere => None,
        Next::Reconnect | Next::Keep => Some(Err(fault.failure)),
    }
}

async fn take(link: &Link, live: &Arc<Live<Single>>, step: &Step, take: &Take) -> Option<Answer> {
    let ttl = i64::try_from(take.ttl.as_micros()).unwrap_or(i64::MAX);
    let block = take.block.saturating_sub(1);
    // What reaches no further ahead of the clock is drawn whole.
    let behind = i64::from(block).min(i64::try_from(TOKEN_LEAD.as_micros()).unwrap_or(i64::MAX));
    let floor = signed(take.floor.get());
    let (name, owner, info) = (step.lock.as_str(), Hidden::owner(step.owner), &*take.info);
    let Live { client, statements, .. } = &**live;
    let mut row = None;
    if floor == 0 && !link.is_known(&step.lock) {
        let made = async {
            client.query_opt(&statements.make, &[&name, &owner, &info, &ttl, &behind]).await
        };
        row = match link.ask(live, made, true).await {
            Ok(row) => row,
            Err(failed) => return fault(failed),
        };
    }
    if row.is_none() {
        let asked = async {
            client.query_opt(&statements.take, &[&name, &owner, &info, &ttl, &behind, &floor]).await
        };
        row = match link.ask(live, asked, true).await {
            Ok(row) => row,
            Err(failed) => return fault(failed),
        };
    }
    let row = row?;
    link.note([(&step.lock, false)].into_iter());
    let (first, last): (i64, i64) = (row.get(0), row.get(1));
    Some(Ok(Outcome::Granted {
        token: Token::new(first as u64),
        left: take.ttl,
        drawn: u32::try_from(last - first).unwrap_or(u32::MAX).min(block) + 1,
    }))
}

async fn free(link: &Link, live: &Arc<Live<Single>>, step: &Step) -> Option<Answer> {
    let (name, owner) = (step.lock.as_str(), Hidden::owner(step.owner));
    let Live { client, statements, .. } = &**live;
    let asked = async { client.execute(&statements.free, &[&name, &owner]).await };
    match link.ask(live, asked, true).await {
        Ok(rows) => (rows == 1).then_some(Ok(Outcome::Freed)),
        Err(failed) => fault(failed),
    }
}

async fn renew(link: &Link, live: &Arc<Live<Single>>, steps: &[&Step]) -> Vec<Option<Answer>> {
    let lease = |step: &&Step| match step.action {
        Action::Renew { ttl } => i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX),
        _ => 0,
    };
    let names: Vec<&str> = steps.iter().map(|step| step.lock.as_str()).collect();
    let owners: Vec<Hidden> = steps.iter().map(|step| Hidden::owner(step.owner)).collect();
    let leases: Vec<i64> = steps.iter().map(lease).collect();
    let Live { client, statements, .. } = &**live;
    let asked = async { client.query(&statements.renew, &[&names, &owners, &leases]).await };
    let rows = match link.ask(live, asked, true).await {
        Ok(rows) => rows,
        Err(Fault { failure, next }) => {
            let answer = |_| fault(Fault { failure: failure.clone(), next });
            return steps.iter().map(answer).collect();
        }
    };
    let answer = |step: &&Step| {
        let row = rows.iter().find(|row| row.get::<_, &str>(0) == step.lock.as_str())?;
        let (token, left): (i64, i64) = (row.get(1), row.get(2));
        let left = std::time::Duration::from_micros(u64::try_from(left).unwrap_or_default());
        Some(Ok(Outcome::Granted { token: Token::new(token as u64), left, drawn: 1 }))
    };
    steps.iter().map(answer).collect()
}
