//! One remote attempt: take, wait, take again. It may pass from waiter to waiter, and is taken back when dropped.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, FutureExt};

use super::Engine;
use super::cleanup::Batch;
use super::hold::{Hold, TicketEnd, Tokens, is_behind};
use super::reason::{Reason, behind, endless, too_late};
use super::request::{LockId, Request};
use crate::error::{Code, Error, Result};
use crate::event::Event;
use crate::fence::Token;
use crate::port::backoff::Backoff;
use crate::port::limits::TOMBSTONE_LIFE;
use crate::port::{Action, Answer, Applied, BoxFuture, Instant, Kind, Outcome, OwnerId, Step};

/// An attempt to get the lock from the store. `run` may be dropped at any await and called again, also by somebody else.
pub(crate) struct Attempt {
    engine: Arc<Engine>,
    lock: LockId,
    request: Request,
    /// Whether to queue.
    waits: bool,
    stage: Stage,
    rest: Backoff,
    /// Whether somebody was told that it has to wait.
    pub announced: bool,
    /// The number of the acquire it works for.
    pub number: u64,
    /// Why it does not have the lock yet.
    pub reason: Reason,
    /// The highest token this client had seen of the lock when it asked: a grant has to lie above.
    floor: Token,
    /// Whether a Take has ended without an answer to what it asked: its session ended on the way.
    gone: bool,
    repeat: Repeat,
}

/// Whether a try that failed at once is made once more.
enum Repeat {
    NotYet,
    /// It is, and its outcome is unknown: this owner id is taken back first, for so long.
    Due(OwnerId, Duration),
    Done,
}

/// A try whose Take failed sooner than this met a connection that had ended while it lay idle, and is repeated once. What fails later is an
/// outage. A process that has to wait for a processor sees such an end as much as a third of a second late.
const STALE: Duration = Duration::from_millis(500);

/// The longest rest between two looks at a lock that somebody holds, where the store has no queue.
const LONGEST_POLL: Duration = Duration::from_millis(250);

enum Stage {
    Ready,
    Asked { owner: OwnerId, sent: Instant, answers: Answers },
    Waiting { owner: OwnerId },
    Resting { until: BoxFuture<'static, ()> },
    Done,
}

/// Answers to come: to this attempt alone, or to whoever hands the lock over as well.
type Answers = Either<BoxFuture<'static, Vec<Answer>>, Batch>;

impl Attempt {
    pub(crate) fn new(engine: Arc<Engine>, lock: LockId, request: Request, waits: bool) -> Self {
        let (stage, rest, reason) = (Stage::Ready, Backoff::new(), Reason::Unanswered);
        let floor = Token::default();
        let (announced, number, gone, repeat) = (false, 0, false, Repeat::NotYet);
        Self {
            engine,
            lock,
            request,
            waits,
            stage,
            rest,
            announced,
            number,
            reason,
            floor,
            gone,
            repeat,
        }
    }

    /// An attempt whose first Take goes in one batch with the end of the hold before it. Whoever polls the batch first
    /// sends it: this attempt, or the one who waits for that end.
    pub(crate) fn after(engine: Arc<Engine>, hold: &Hold, request: Request) -> (Self, Batch) {
        let mut attempt = Self::new(engine, hold.lock.clone(), request, true);
        let free = hold.lock.step(hold.owner, Action::Free { open: hold.open });
        let Some((owner, take)) = attempt.draw() else {
            let batch = attempt.engine.store.step(vec![free]).shared();
            return (attempt, batch);
        };
        let sent = attempt.engine.runtime.now();
        let batch = attempt.engine.store.step(vec![free, take]).shared();
        attempt.stage = Stage::Asked { owner, sent, answers: Either::Right(batch.clone()) };
        (attempt, batch)
    }

    /// The attempt goes on for a waiter with this request: with what it won or queued already, if that fits them.
    pub(crate) fn pass_to(&mut self, request: Request) {
        if let Stage::Asked { owner, .. } | Stage::Waiting { owner } = self.stage
            && !self.engine.table.lock().pass_to(owner, &request, self.engine.runtime.now())
        {
            self.retract();
            self.ask_anew();
        }
        self.request = request;
    }

    /// Whether somebody else can go on with it.
    pub(crate) fn inheritable(&self) -> bool {
        self.waits && !matches!(self.stage, Stage::Done)
    }

    /// Runs until the lock is won, or (an attempt that does not queue) refused: `None`.
    pub(crate) async fn run(&mut self) -> Result<Option<Arc<Hold>>> {
        loop {
            match &mut self.stage {
                Stage::Ready if self.engine.is_closed() => {
                    self.stage = Stage::Done;
                    return Err(Error::closed());
                }
                Stage::Ready => self.send(),
                Stage::Asked { answers, .. } => {
                    let answers = answers.await;
                    if let Some(result) = self.answered(answers) {
                        return result;
                    }
                }
                Stage::Waiting { owner } => {
                    let owner = *owner;
                    let table = &self.engine.table;
                    match poll_fn(|context| table.lock().poll_turn(owner, context)).await {
                        TicketEnd::Won(hold) if is_behind(hold.token, self.floor) => {
                            self.clean_up(owner, None);
                            self.stage = Stage::Ready;
                            self.troubled(behind(hold.token, self.floor));
                            self.pause();
                        }
                        TicketEnd::Won(hold) if hold.is_held() => {
                            self.stage = Stage::Done;
                            return Ok(Some(hold));
                        }
                        TicketEnd::Won(hold) => {
                            // Pushed in time, but looked at only after its end: that is no grant.
                            self.engine.lose(&hold, false);
                            self.ask_anew();
                        }
                        TicketEnd::Lost => {
                            self.clean_up(owner, None);
                            self.ask_anew();
                        }
                        TicketEnd::Gone => self.ask_anew(),
                        TicketEnd::Late => self.troubled(too_late()),
                    }
                }
                Stage::Resting { until } => {
                    until.as_mut().await;
                    self.stage = Stage::Ready;
                }
                Stage::Done => return Err(Error::internal("an attempt was run after its end")),
            }
        }
    }

    /// The ticket is gone. Until the store answers again, nobody knows whether the lock is held.
    fn ask_anew(&mut self) {
        self.stage = Stage::Ready;
        if matches!(self.reason, Reason::Held) {
            self.learn(Reason::Unanswered);
        }
    }

    fn send(&mut self) {
        // That the client closes is told at the next look.
        let Some((owner, take)) = self.draw() else { return };
        let sent = self.engine.runtime.now();
        // In front of the Take, so that it does not find what the former one may have taken.
        let batch = match self.repeat {
            Repeat::Due(former, life) => {
                self.repeat = Repeat::Done;
                vec![self.lock.step(former, Action::Leave { tombstone: Some(life) }), take]
            }
            Repeat::NotYet | Repeat::Done => vec![take],
        };
        self.stage =
            Stage::Asked { owner, sent, answers: Either::Left(self.engine.store.step(batch)) };
    }

    /// Draws an owner id and its Take; from now on the table knows it. `None`: the client closes.
    fn draw(&mut self) -> Option<(OwnerId, Step)> {
        let (owner, now) = (OwnerId::draw(&*self.engine.runtime), self.engine.runtime.now());
        self.floor = self.engine.table.lock().ask(owner, &self.lock, &self.request, now)?;
        let take = self.request.take(self.waits, self.floor);
        Some((owner, self.lock.step(owner, Action::Take(take))))
    }

    /// Takes the answers in. `None`: go on.
    fn answered(&mut self, mut answers: Vec<Answer>) -> Option<Result<Option<Arc<Hold>>>> {
        let Stage::Asked { owner, sent, .. } = self.stage else { return None };
        match answers.pop() {
            Some(Ok(Outcome::Granted { token, left, drawn })) => {
                self.stage = Stage::Ready;
                if is_behind(token, self.floor) {
                    self.clean_up(owner, None);
                    return self.try_later(behind(token, self.floor));
                }
                let tokens = Tokens { first: token, count: drawn };
                let won = {
                    let mut table = self.engine.table.lock();
                    table.saw(&self.lock.key, token);
                    table.granted(owner, tokens, sent, left, self.engine.runtime.now())
                };
                if let Some(hold) = won {
                    self.stage = Stage::Done;
                    return Some(Ok(Some(hold)));
                }
                self.clean_up(owner, None);
                if self.engine.is_closed() {
                    self.stage = Stage::Done;
                    return Some(Err(Error::closed()));
                }
                // The reply took longer than the lease may be relied on.
                self.try_later(too_late())
            }
            Some(Ok(ref outcome @ Outcome::Queued { last, left, foreign, .. })) => {
                if foreign && left.is_none() {
                    let trouble = Event::trouble(self.lock.name(), &endless());
                    self.engine.events.warn(trouble);
                }
                {
                    let mut table = self.engine.table.lock();
                    table.saw(&self.lock.key, last);
                    table.queued(owner, sent, outcome, self.engine.runtime.now());
                }
                self.stage = Stage::Waiting { owner };
                self.held();
                None
            }
            // A store without a queue: who waits asks again.
            Some(Ok(Outcome::Held { .. })) if self.waits => {
                self.engine.table.lock().forget(owner);
                self.held();
                self.rest_for(LONGEST_POLL);
                None
            }
            Some(Ok(Outcome::Held { .. })) => {
                self.end(owner);
                // It may be held in this attempt's own former name, which was not taken back.
                match answers.pop() {
                    Some(Err(failure)) if matches!(self.repeat, Repeat::Done) => {
                        Some(Err(failure.error))
                    }
                    _ => Some(Ok(None)),
                }
            }
            Some(Ok(Outcome::Gone)) => {
                self.engine.table.lock().forget(owner);
                self.stage = Stage::Ready;
                let again = std::mem::replace(&mut self.gone, true);
                // Where sessions end sooner than answers come, a try would ask for ever.
                if again && !self.waits { self.try_later(too_late()) } else { None }
            }
            Some(Ok(Outcome::Conflict { kind })) => {
                self.end(owner);
                Some(Err(conflict(self.lock.kind, kind)))
            }
            Some(Ok(_)) | None => {
                self.end(owner);
                Some(Err(Error::internal("the store answered a Take with something else")))
            }
            Some(Err(failure)) => {
                let (is_unknown, tombstone) =
                    (failure.applied == Applied::Unknown, self.request.ttl.max(TOMBSTONE_LIFE));
                if is_unknown {
                    self.clean_up(owner, Some(tombstone));
                }
                self.end(owner);
                let is_stale = failure.error.retryable()
                    && self.engine.runtime.now().since(sent) < STALE
                    && matches!(self.repeat, Repeat::NotYet);
                if is_stale && !self.waits {
                    let undo = Repeat::Due(owner, tombstone);
                    self.repeat = if is_unknown { undo } else { Repeat::Done };
                    // Until the end of the connection is known everywhere.
                    self.pause();
                    return None;
                }
                if !self.waits || !failure.error.retryable() {
                    return Some(Err(failure.error));
                }
                self.troubled(failure.error);
                self.pause();
                None
            }
        }
    }

    /// A late or stale grant was given back. One who waits asks again, later each time.
    fn try_later(&mut self, error: Error) -> Option<Result<Option<Arc<Hold>>>> {
        if !self.waits {
            self.stage = Stage::Done;
            return Some(Err(error));
        }
        self.troubled(error);
        self.pause();
        None
    }

    /// Nothing of it is on the store, or that is seen to.
    fn end(&mut self, owner: OwnerId) {
        self.stage = Stage::Done;
        self.engine.table.lock().forget(owner);
    }

    /// The store cannot be asked now. Whoever waits here, also behind the one who asks, is to know why.
    fn troubled(&mut self, error: Error) {
        let known = self.reason.trouble().map(|known| (known.code(), known.message()));
        if known != Some((error.code(), error.message())) {
            self.engine.events.warn(Event::trouble(self.lock.name(), &error));
        }
        self.learn(Reason::Trouble(error.into()));
    }

    /// For this one, and for those in line behind it.
    fn learn(&mut self, reason: Reason) {
        self.engine.table.lock().lines.learn(&self.lock, reason.clone());
        self.reason = reason;
    }

    /// Somebody else has the lock: the store said so.
    fn held(&mut self) {
        self.learn(Reason::Held);
        if !std::mem::replace(&mut self.announced, true) {
            self.engine.events.emit(|| Event::waiting(self.lock.as_str(), self.number));
        }
    }

    /// Rests before asking a store again that could not be asked.
    fn pause(&mut self) {
        self.rest_for(Backoff::LONGEST);
    }

    /// Rests longer each time, never in step with others.
    fn rest_for(&mut self, longest: Duration) {
        let pause = Backoff::spread(self.rest.next_up_to(longest), &self.engine.runtime);
        self.stage = Stage::Resting { until: self.engine.retry_delays.rest(pause) };
    }

    /// Forgets the request or the ticket, and has it taken back.
    fn retract(&mut self) {
        // What is under way is dropped before it is taken back: the store then knows that it is never sent again.
        // A Take in one batch with the end of another hold may still be sent, by the release of that hold. The store refuses it then.
        let (owner, tombstone) = match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Asked { owner, .. } => (owner, Some(self.request.ttl.max(TOMBSTONE_LIFE))),
            Stage::Waiting { owner } => (owner, None),
            Stage::Ready | Stage::Resting { .. } | Stage::Done => return,
        };
        self.clean_up(owner, tombstone);
    }

    /// Takes back whatever the attempt won or queued.
    fn clean_up(&self, owner: OwnerId, tombstone: Option<Duration>) {
        self.engine.leave_later(&self.lock, owner, tombstone);
    }
}

/// The name is in use as something else.
pub(super) fn conflict(wanted: Kind, found: Kind) -> Error {
    let message = format!(
        "the name is in use as a {found}, so it cannot be taken as a {wanted}; use one kind for one name"
    );
    Error::new(Code::Conflict, message).with("wanted", wanted.word()).with("found", found.word())
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.retract();
    }
}
