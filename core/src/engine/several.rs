//! Several locks as one: in one step where the store can, else one after another in a global order, so that no two ever
//! wait for each other. All or nothing.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use scopeguard::{ScopeGuard, guard};

use super::Engine;
use super::attempt::conflict;
use super::hold::{Tokens, is_behind};
use super::line::{Entered, Local};
use super::reason::{Reason, behind, too_late};
use super::request::{Asked, LockId, Request, Wait};
use crate::error::{Code, Error, Result};
use crate::port::backoff::Backoff;
use crate::port::limits::TOMBSTONE_LIFE;
use crate::port::{Action, Answer, Applied, Outcome, OwnerId};
use crate::runtime::sync::Mutex;

/// One lock of several.
pub(crate) struct Member {
    pub lock: LockId,
    pub request: Request,
}

impl Engine {
    /// Gets all of them, in the order of their names, or none: `None` if the caller does not wait and one is not free.
    pub(crate) async fn acquire_all(
        self: &Arc<Self>,
        members: &[Member],
        wait: Wait,
    ) -> Result<Option<Vec<Local>>> {
        let known = Mutex::default();
        let work = Box::pin(self.gather(members, wait, &known));
        let Wait::Until(end) = wait else { return work.await };
        match select(work, self.runtime.sleep_until(end)).await {
            Either::Left((result, _)) => result,
            Either::Right(((), work)) => {
                let line = |member: &Member| self.table.lock().lines.reason_of(&member.lock);
                let trouble = members.iter().filter_map(line).find(|why| why.trouble().is_some());
                drop(work);
                Err(trouble.unwrap_or_else(|| std::mem::take(&mut *known.lock())).into_error(&[]))
            }
        }
    }

    /// `known` is why one request for all was not granted, for whoever cuts it short.
    async fn gather(
        self: &Arc<Self>,
        members: &[Member],
        wait: Wait,
        known: &Mutex<Reason>,
    ) -> Result<Option<Vec<Local>>> {
        let mut rest = Backoff::new();
        let asked = self.ask();
        loop {
            self.check_open()?;
            match self.take_as_one(members, asked).await {
                AsOne::Won(locals) => return Ok(Some(locals)),
                AsOne::Refused | AsOne::Occupied if wait == Wait::Try => return Ok(None),
                AsOne::Failed(error) if !error.retryable() || wait == Wait::Try => {
                    return Err(error);
                }
                AsOne::Refused => *known.lock() = Reason::Held,
                AsOne::Failed(error) => *known.lock() = Reason::Trouble(error.into()),
                AsOne::Unable | AsOne::Occupied => {}
            }
            // Given back unless all are won.
            let mut won = guard(Vec::new(), |won: Vec<Local>| {
                won.iter().rev().for_each(|local| self.abandon(local));
            });
            for Member { lock, request } in members {
                let acquired = self.acquire(lock, request.clone(), wait).await;
                match acquired.map_err(|error| error.with("name", lock.as_str()))? {
                    Some(local) => won.push(local),
                    None => return Ok(None),
                }
            }
            // Fixed leases begin when the last of them was won.
            for (Member { request, .. }, local) in members.iter().zip(&*won) {
                if !request.renew && members.len() > 1 && local.hold.is_held() {
                    // Lost or not is looked at below.
                    let _ = self.extend(local, request.ttl).await;
                }
            }
            // The first may have been lost while the last was waited for; that a store without its data granted it anew shows
            // in the token.
            let stands = |local: &Local| {
                let hold = &local.hold;
                hold.is_held() && self.table.lock().floor(&hold.lock.key) <= hold.newest_token()
            };
            if won.iter().all(stands) {
                return Ok(Some(ScopeGuard::into_inner(won)));
            }
            drop(won);
            self.retry_delays.rest(Backoff::spread(rest.next(), &self.runtime)).await;
        }
    }

    /// One request for all, if nobody of this client is there yet.
    async fn take_as_one(self: &Arc<Self>, members: &[Member], by: Asked) -> AsOne {
        let asked = PendingAttempts { attempts: Vec::new(), doubtful: false };
        let mut asked = guard(asked, |asked| self.take_back(asked));
        let now = self.runtime.now();
        let mut floors = Vec::new();
        for Member { lock, request } in members {
            let mut table = self.table.lock();
            if !matches!(table.lines.enter(lock, request, false, || now), Entered::Leading) {
                return AsOne::Occupied;
            }
            let owner = OwnerId::draw(&*self.runtime);
            let floor = table.ask(owner, lock, request, now);
            asked.attempts.push((lock, owner, request.ttl));
            match floor {
                Some(floor) => floors.push(floor),
                None => return AsOne::Failed(Error::closed()),
            }
        }
        let asks = members.iter().zip(&asked.attempts).zip(&floors);
        let steps = asks.map(|((member, (lock, owner, _)), floor)| {
            lock.step(*owner, Action::Take(member.request.take(false, *floor)))
        });
        let batch = steps.collect();
        let sent = self.runtime.now();
        asked.doubtful = true;
        let answers = self.store.step_all(batch).await;
        let mut holds = Vec::new();
        for (((lock, owner, _), answer), floor) in asked.attempts.iter().zip(&answers).zip(floors) {
            let Ok(Outcome::Granted { token, left, drawn }) = *answer else { continue };
            if is_behind(token, floor) {
                return AsOne::Failed(behind(token, floor).with("name", lock.as_str()));
            }
            let tokens = Tokens { first: token, count: drawn };
            let mut table = self.table.lock();
            table.saw(&lock.key, token);
            holds.extend(table.granted(*owner, tokens, sent, left, self.runtime.now()));
        }
        if holds.len() < members.len() {
            asked.doubtful = answers.iter().any(may_hold);
            if self.is_closed() {
                return AsOne::Failed(Error::closed());
            }
            return refusal(members, answers);
        }
        asked.attempts.clear();
        AsOne::Won(holds.into_iter().map(|hold| self.install(hold, by)).collect())
    }

    /// Gives back what a request for all may have left, and lets those behind it ask.
    fn take_back(self: &Arc<Self>, asked: PendingAttempts<'_>) {
        for (lock, owner, ttl) in asked.attempts {
            if asked.doubtful {
                self.leave_later(lock, owner, Some(ttl.max(TOMBSTONE_LIFE)));
            } else {
                self.table.lock().forget(owner);
            }
            self.pass_leadership(lock, None);
        }
    }
}

/// How a request for all ended.
enum AsOne {
    Won(Vec<Local>),
    /// One of them is not free.
    Refused,
    /// Somebody of this client holds one of them, or asks for it.
    Occupied,
    /// These are not taken as one on this store.
    Unable,
    Failed(Error),
}

/// Whether something may lie on the store after this answer.
fn may_hold(answer: &Answer) -> bool {
    match answer {
        Ok(outcome) => matches!(outcome, Outcome::Granted { .. }),
        Err(failure) => failure.applied == Applied::Unknown,
    }
}

fn refusal(members: &[Member], answers: Vec<Answer>) -> AsOne {
    let all_granted = answers.iter().all(|answer| matches!(answer, Ok(Outcome::Granted { .. })));
    for (Member { lock, .. }, answer) in members.iter().zip(answers) {
        match answer {
            Ok(Outcome::Conflict { kind }) => {
                return AsOne::Failed(conflict(lock.kind, kind).with("name", lock.as_str()));
            }
            Err(failure) if failure.error.code() == Code::Unsupported => return AsOne::Unable,
            Err(failure) => return AsOne::Failed(failure.error),
            Ok(_) => {}
        }
    }
    if all_granted {
        return AsOne::Failed(too_late());
    }
    AsOne::Refused
}

/// Attempts under way; taken back unless they were won.
struct PendingAttempts<'a> {
    /// Each with the lease it asks for.
    attempts: Vec<(&'a LockId, OwnerId, Duration)>,
    /// Whether a request is out whose outcome is not known to be nothing.
    doubtful: bool,
}
