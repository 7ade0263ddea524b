//! Scheduled jobs: at most one run for each scheduled instant, and never two at once.
//!
//! A run holds the lock of its job, and the job's cell remembers the last run. A run begins by taking the lock and
//! replacing what the cell says, if its own instant is later; it ends by marking the cell and freeing the lock, in this
//! order. So a run that is marked as in progress, and whose token no holder of the lock has, is dead. Each change of the
//! cell expects the version that the run made, so a run that was overtaken changes nothing.

#[cfg(feature = "cron")]
mod calendar;
mod keeper;
mod last;
mod record;
mod schedule;
mod skipped;

use std::sync::Arc;
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::{Either, select};

use crate::engine::{Attempt, Engine, Hold, InProgress, LockId, deadline, too_late};
use crate::error::{Code, Error, Result};
use crate::event::Event;
use crate::port::backoff::Backoff;
use crate::port::{CellKey, Change, Instant, Look, OwnerId, Swap};
use crate::released::Released;
use crate::runtime::sync::Mutex;

use self::keeper::Keeper;
pub(crate) use self::keeper::{Begun, Ending};
pub(crate) use self::record::JobRequest;
use self::record::Record;
pub use self::record::{JobState, Status};
use self::schedule::Due;
pub use self::schedule::Schedule;
#[cfg(test)]
pub(crate) use self::schedule::Times;
pub(crate) use self::schedule::{micros_of, moment};
pub use self::skipped::Skipped;

/// The record of a job that is not run any more is forgotten after this long, or ten periods.
const MEMORY: Duration = Duration::from_hours(30 * 24);

/// The result of a start.
pub(crate) type Start = Result<Begun, Skipped>;

/// How long somebody stays for a start.
struct Stay<'a> {
    /// Whom the answer is for.
    asker: &'a mut oneshot::Sender<Result<Start>>,
    /// When they give up.
    until: Instant,
    /// The reason that their error gives then.
    unheard: &'a Mutex<Unheard>,
}

/// Why a start was not answered while its caller stayed.
#[derive(Clone, Copy, Default)]
enum Unheard {
    /// The store was silent.
    #[default]
    Silent,
    /// An answer came after its lease.
    Late,
    /// Another client had the job's lock, and the cell told of no run of its.
    Taken,
}

/// The result of writing the mark that a run begins.
enum Marked {
    Begins(Box<Keeper>),
    Skipped(Skipped),
    /// The lease ended meanwhile, and nothing is left of the mark.
    Late,
}

impl Unheard {
    fn error(self) -> Error {
        let message = match self {
            Self::Silent => {
                "the store did not answer in time; a run that was started all the same is taken back, or counts as one that died if the store is away for its whole lease"
            }
            Self::Late => return too_late(),
            Self::Taken => {
                "another client has the job's lock, and no run of its has begun in this time: it is slow, or died while a run began or ended; its lease ends by itself, so start again later"
            }
        };
        Error::new(Code::Unavailable, message)
    }
}

/// The run that is due after the last one, or why none is.
fn due(look: &Look, last: Option<&Record>, request: &JobRequest) -> Result<Result<Due, Skipped>> {
    let due = request.due(look.clock)?;
    let skipped = last.and_then(|last| last.keeps_from(&due, look.clock, request));
    Ok(skipped.map_or(Ok(due), Err))
}

impl Engine {
    /// Starts the job's run that is due, or says why there is none.
    ///
    /// The request runs on by itself: if the caller does not stay for the run, it is taken back.
    pub(crate) async fn start_run(
        self: &Arc<Self>,
        key: CellKey,
        request: JobRequest,
    ) -> Result<Start> {
        self.check_open()?;
        let until = self.runtime.now() + request.patience;
        let mut patience = self.runtime.sleep_until(until);
        let unheard: Arc<Mutex<Unheard>> = Arc::default();
        loop {
            let Some(in_progress) = self.runs.begin() else { return Err(Error::closed()) };
            let (mut sender, receiver) = oneshot::channel();
            let (engine, asked, request) = (self.clone(), key.clone(), request.clone());
            let unheard_here = unheard.clone();
            self.runtime.spawn(Box::pin(async move {
                let stay = Stay { asker: &mut sender, until, unheard: &unheard_here };
                let begun = engine.begin_run(&asked, &request, in_progress, stay).await;
                // Whoever does not stay for it drops it, which takes it back.
                let _ = sender.send(begun);
            }));
            let begun = match select(receiver, &mut patience).await {
                Either::Left((begun, _)) => begun.map_err(|_| Error::closed())??,
                Either::Right(((), _)) => return Err(unheard.lock().error()),
            };
            let begun = match begun {
                Err(skipped) => {
                    self.events
                        .emit(|| Event::skipped(&key.name, skipped.last.token, skipped.reason));
                    return Ok(Err(skipped));
                }
                Ok(_) if self.is_closed() => return Err(Error::closed()),
                Ok(begun) if begun.take() => {
                    let hold = &begun.hold;
                    self.events.emit(|| Event::granted(hold.lock.name(), hold.token));
                    return Ok(Ok(begun));
                }
                Ok(begun) => begun,
            };
            // Answered in time, but looked at only after its end: that is no run.
            *unheard.lock() = Unheard::Late;
            let gone = begun.end(Ending::TakenBack);
            if let Either::Right(_) = select(Box::pin(gone), &mut patience).await {
                return Err(unheard.lock().error());
            }
        }
    }

    /// Starts until it is answered in time, or nobody stays for it.
    async fn begin_run(
        self: &Arc<Self>,
        key: &CellKey,
        request: &JobRequest,
        in_progress: InProgress,
        Stay { asker, until, unheard }: Stay<'_>,
    ) -> Result<Start> {
        let mut backoff = Backoff::new();
        loop {
            let (look, last) = self.last_run(key).await?;
            if let Err(skipped) = due(&look, last.as_ref(), request)? {
                return Ok(Err(skipped));
            }
            let sent = self.runtime.now();
            match self.take_job_lock(key, request).await {
                Ok(Some(hold)) => {
                    let marked = self.mark_start(key, request, &hold, look).await;
                    if let Ok(Marked::Begins(keeper)) = marked {
                        return Ok(Ok(keeper.begin(in_progress)));
                    }
                    self.free_run(&hold).await;
                    if let Marked::Skipped(skipped) = marked? {
                        return Ok(Err(skipped));
                    }
                    *unheard.lock() = Unheard::Late;
                }
                // Somebody starts a run, or has just ended one: what the cell says tells soon.
                Ok(None) => *unheard.lock() = Unheard::Taken,
                // The grant came after its lease, and was given back.
                Err(_) if self.runtime.now() >= deadline(sent, request.lease()) => {
                    *unheard.lock() = Unheard::Late;
                }
                Err(error) => return Err(error),
            }
            if asker.is_canceled() {
                return Err(too_late());
            }
            let now = self.runtime.now();
            // It looks again before nobody waits any more for what that tells.
            let soon = (until.since(now) / 2).max(Backoff::FIRST);
            let rest = self.runtime.sleep_until(now + backoff.next().min(soon));
            select(asker.cancellation(), select(self.runs.closing(), rest)).await;
        }
    }

    /// Takes the job's lock if it is free. It has no line: a run is never handed on.
    async fn take_job_lock(
        self: &Arc<Self>,
        key: &CellKey,
        request: &JobRequest,
    ) -> Result<Option<Arc<Hold>>> {
        let lock = LockId::of_job(&key.name);
        Attempt::new(self.clone(), lock, request.of_lock(), false).run().await
    }

    /// Marks in the cell that the run of this hold begins, if one is still due.
    async fn mark_start(
        self: &Arc<Self>,
        key: &CellKey,
        request: &JobRequest,
        hold: &Arc<Hold>,
        mut look: Look,
    ) -> Result<Marked> {
        // While it has the lock, no other run has it.
        while hold.is_held() {
            let last = Record::of(&look, key)?;
            let due = match due(&look, last.as_ref(), request)? {
                Ok(due) => due,
                Err(skipped) => return Ok(Marked::Skipped(skipped)),
            };
            let record = Record::begun(due.instant, hold.token, request);
            let change = Change {
                key: key.clone(),
                expected: look.version(),
                writer: OwnerId::draw(&*self.runtime),
                value: Some(record.text()?),
                keep: Some(keep(due.period)),
            };
            let swap = self.swap(&change, hold.deadline()).await;
            let (version, since) = match swap.map_err(|failure| failure.error)? {
                Swap::Done { version, since } => (version, since),
                Swap::Other(other) => {
                    look = other;
                    continue;
                }
            };
            let mut keeper = Box::new(Keeper {
                engine: self.clone(),
                hold: hold.clone(),
                change: Change { expected: Some(version), ..change },
                record: Record { started: Some(since), ..record },
                before: last,
            });
            if hold.is_held() {
                return Ok(Marked::Begins(keeper));
            }
            // The answer took longer than the lease may be relied on: nobody is handed that.
            if keeper.end(Ending::TakenBack).await == Released::Unconfirmed {
                return Err(too_late());
            }
        }
        Ok(Marked::Late)
    }

    /// Frees the lock of a run.
    async fn free_run(self: &Arc<Self>, hold: &Arc<Hold>) {
        if hold.is_held() {
            hold.retire();
            // Unless it is confirmed, the cleanup task goes on.
            let _ = self.free(hold.clone()).await;
            return;
        }
        self.lose(hold, false);
        if !hold.is_gone() {
            self.free_later(hold);
        }
    }

    /// The last run of a job.
    pub(crate) async fn job_state(&self, key: &CellKey) -> Result<Option<JobState>> {
        let (look, last) = self.last_run(key).await?;
        Ok(last.map(|record| record.state(look.clock)))
    }
}

fn keep(period: Duration) -> Duration {
    MEMORY.max(period.saturating_mul(10))
}
