//! The plain cases, each as one statement. A statement that finds no plain case changes nothing, and the step goes the long way.

use std::time::Duration;

use futures_util::future::{join, join_all};

use super::dialect::{Dialect, Renewing};
use super::fault::{Fault, Next};
use super::link::Link;
use super::signed;
use super::statement::{self, Row, Statement, column, name};
use crate::fence::Token;
use crate::port::limits::TOKEN_LEAD;
use crate::port::{Action, Answer, Kind, Layout, Mode, Outcome, Step, Take};

/// Carries out what is plain of these steps.
pub(super) async fn plain<D: Dialect>(link: &Link<D>, steps: &[&Step]) -> Vec<Option<Answer>> {
    let mut answers: Vec<Option<Answer>> = vec![None; steps.len()];
    let (mut renewals, mut others) = (Vec::new(), Vec::new());
    for (at, step) in steps.iter().enumerate().filter(|(_, step)| is_plain(step)) {
        match &step.action {
            Action::Renew { .. } => renewals.push(at),
            Action::Take(Take { mode: Mode::Exclusive, vote: None, .. }) | Action::Free { .. }
                if !link.known.is_crowded(&step.lock) =>
            {
                others.push(at);
            }
            _ => {}
        }
    }
    if renewals.is_empty() && others.is_empty() {
        return answers;
    }
    let renewed: Vec<&Step> = renewals.iter().map(|at| steps[*at]).collect();
    let renewing =
        async { if renewed.is_empty() { Vec::new() } else { renew(link, &renewed).await } };
    let one = async |at: &usize| match &steps[*at].action {
        Action::Take(wanted) => take(link, steps[*at], wanted).await,
        _ => free(link, steps[*at]).await,
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

async fn take<D: Dialect>(link: &Link<D>, step: &Step, take: &Take) -> Option<Answer> {
    let (known, block) = (&link.known, take.block.saturating_sub(1));
    // What reaches no further ahead of the clock is drawn whole.
    let behind = i64::from(block).min(micros(TOKEN_LEAD));
    let floor = signed(take.floor.get());
    let mut values = vec![
        name(step.lock.as_str()),
        step.owner.to_string().into(),
        (&*take.info).into(),
        micros(take.ttl).into(),
        behind.into(),
    ];
    let mut drawn = None;
    if floor == 0 && !known.has(&step.lock) {
        let make = vec![Statement::kept(&link.texts.make, values.clone())];
        match link.ask(make, true).await {
            Ok(answer) => drawn = self::drawn(&answer, behind),
            Err(failed) => return fault(failed),
        }
        if drawn.is_some() {
            link.row_made();
        }
    }
    if drawn.is_none() {
        values.push(floor.into());
        match link.ask(vec![Statement::kept(&link.texts.take, values)], true).await {
            Ok(answer) => drawn = self::drawn(&answer, behind),
            Err(failed) => return fault(failed),
        }
    }
    let (first, last) = drawn?;
    known.note([(&step.lock, 0)].into_iter());
    Some(Ok(Outcome::Granted {
        token: Token::new(first as u64),
        left: take.ttl,
        drawn: u32::try_from(last - first).unwrap_or(u32::MAX).min(block) + 1,
    }))
}

/// The first and the last token drawn, if a row was changed. Some databases answer only the first, as an id.
fn drawn(answer: &statement::Answer, behind: i64) -> Option<(i64, i64)> {
    if let Some(row) = answer.row() {
        return Some((column(row, 0, "token").ok()?, column(row, 1, "last_token").ok()?));
    }
    let first = answer.last_id.filter(|_| answer.changed == 1)?;
    let first = i64::try_from(first).ok()?;
    Some((first, first + behind))
}

async fn free<D: Dialect>(link: &Link<D>, step: &Step) -> Option<Answer> {
    let values = [name(step.lock.as_str()), step.owner.to_string().into()];
    match link.ask(vec![Statement::kept(&link.texts.free, values)], true).await {
        Ok(answer) => (answer.changed == 1).then_some(Ok(Outcome::Freed)),
        Err(failed) => fault(failed),
    }
}

async fn renew<D: Dialect>(link: &Link<D>, steps: &[&Step]) -> Vec<Option<Answer>> {
    let holds: Vec<_> = steps.iter().map(|step| renewing(step)).collect();
    let rows = match link.ask(D::renew(&link.tables, &holds), true).await {
        Ok(answer) => answer.rows(),
        Err(Fault { failure, next }) => {
            let answer = |_| fault(Fault { failure: failure.clone(), next });
            return steps.iter().map(answer).collect();
        }
    };
    let answer = |step: &&Step| {
        let named =
            |row: &&Row| column::<&str>(row, 0, "name").is_ok_and(|it| it == step.lock.as_str());
        let row = rows.iter().find(named)?;
        let (token, left) =
            (column::<u64>(row, 1, "token").ok()?, column::<i64>(row, 2, "left").ok()?);
        let left = Duration::from_micros(u64::try_from(left).unwrap_or_default());
        Some(Ok(Outcome::Granted { token: Token::new(token), left, drawn: 1 }))
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
