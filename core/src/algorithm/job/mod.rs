//! Scheduled jobs: at most one run for each scheduled instant, and never two at once.
//!
//! The job's cell remembers its last run. A run starts by replacing that, if its own instant is later; while it lasts,
//! it pushes its end by replacing what it wrote; and so it ends. Every one of these expects the version the last one
//! made, so whoever was overtaken changes nothing. Moments in the cell are the store's own.

mod keeper;
mod record;
mod runs;
mod schedule;
mod skipped;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::{Either, select};

use super::core::Core;
use super::hold::{Hold, Request, Tokens, deadline};
use super::lock_id::LockId;
use super::reason::too_late;
use crate::error::{Code, Error, Result};
use crate::event::Event;
use crate::fence::Token;
use crate::port::backoff::Backoff;
use crate::port::{CellKey, Change, Instant, Kind, LockKey, Mode, OwnerId, Swap};
use crate::released::Released;

use self::keeper::Keeper;
pub(crate) use self::keeper::{Begun, Ending};
use self::record::Record;
pub use self::record::{JobState, Status};
use self::runs::InProgress;
pub(crate) use self::runs::Runs;
pub(crate) use self::schedule::Schedule;
pub use self::skipped::Skipped;

/// The record of a job that is not run any more is forgotten after this long, or ten periods.
const MEMORY: Duration = Duration::from_hours(30 * 24);

/// What a start asks for.
#[derive(Clone, Debug)]
pub(crate) struct JobRequest {
    pub schedule: Schedule,
    pub period: Duration,
    pub ttl: Duration,
    pub at_least: Duration,
    pub at_most: Option<Duration>,
    pub retry_dead: bool,
    /// How long the caller stays for an answer.
    pub patience: Duration,
    /// Who asks, as JSON.
    pub info: Arc<str>,
}

/// What a start comes to.
pub(crate) type Start = Result<Begun, Skipped>;

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn unanswered() -> Error {
    let message = "the store did not answer in time; a run that was started all the same is taken back, or counts as one that died if the store is away for its whole lease";
    Error::new(Code::Unavailable, message)
}

impl Core {
    /// Starts the job's run that is due, or says why there is none.
    ///
    /// The request runs on by itself: if the caller does not stay for the run, it is taken back.
    pub(crate) async fn start_run(
        self: &Arc<Self>,
        key: CellKey,
        request: JobRequest,
    ) -> Result<Start> {
        self.check_open()?;
        let mut patience = self.runtime.sleep_until(self.runtime.now() + request.patience);
        let late = Arc::new(AtomicBool::new(false));
        let unheard = || if late.load(Ordering::Acquire) { too_late() } else { unanswered() };
        loop {
            let Some(in_progress) = self.runs.begin() else { return Err(Error::closed()) };
            let (mut sender, receiver) = oneshot::channel();
            let (core, asked, request) = (self.clone(), key.clone(), request.clone());
            let lateness = late.clone();
            self.runtime.spawn(Box::pin(async move {
                let begun =
                    core.begin_run(&asked, &request, in_progress, &mut sender, &lateness).await;
                // Whoever does not stay for it drops it, which takes it back.
                let _ = sender.send(begun);
            }));
            let begun = match select(receiver, &mut patience).await {
                Either::Left((begun, _)) => begun.map_err(|_| Error::closed())??,
                Either::Right(((), _)) => return Err(unheard()),
            };
            let begun = match begun {
                Err(skipped) => {
                    self.events.emit(|| Event::skipped(&key.name, skipped.last.token, skipped.why));
                    return Ok(Err(skipped));
                }
                Ok(_) if self.is_closed() => return Err(Error::closed()),
                Ok(begun) if begun.take() => {
                    let hold = &begun.hold;
                    self.events.emit(|| Event::granted(hold.lock.as_str(), hold.token));
                    return Ok(Ok(begun));
                }
                Ok(begun) => begun,
            };
            // Answered in time, but looked at only after its end: that is no run.
            late.store(true, Ordering::Release);
            let gone = begun.end(Ending::TakenBack);
            if let Either::Right(_) = select(Box::pin(gone), &mut patience).await {
                return Err(unheard());
            }
        }
    }

    /// Starts until it is answered in time, or nobody stays for it.
    async fn begin_run(
        self: &Arc<Self>,
        key: &CellKey,
        request: &JobRequest,
        in_progress: InProgress,
        asker: &mut oneshot::Sender<Result<Start>>,
        late: &AtomicBool,
    ) -> Result<Start> {
        let mut look = self.look(key).await?;
        let lease = request.at_most.map_or(request.ttl, |most| most.min(request.ttl));
        let mut backoff = Backoff::new();
        loop {
            let instant = request.schedule.instant(look.clock, request.period, self)?;
            let last = Record::of(&look, key)?;
            let skipped =
                last.as_ref().and_then(|last| last.keeps_from(instant, look.clock, request));
            if let Some(skipped) = skipped {
                return Ok(Err(skipped));
            }
            let record = Record::begun(instant, lease, request);
            let owner = OwnerId::draw(&*self.runtime);
            let change = Change {
                key: key.clone(),
                expected: look.version(),
                writer: owner,
                value: Some(record.text()?),
                keep: Some(keep(request.period)),
            };
            let sent = self.runtime.now();
            let swap = self.swap(&change, deadline(sent, lease)).await;
            let (version, since) = match swap.map_err(|failure| failure.error)? {
                Swap::Done { version, since } => (version, since),
                Swap::Other(other) => {
                    look = other;
                    continue;
                }
            };
            let sent = if mutant!(RunCountedFromReply) { self.runtime.now() } else { sent };
            let token = Token::new(version.get());
            let mut keeper = Keeper {
                core: self.clone(),
                hold: self.hold_of(key, owner, token, request, deadline(sent, lease)),
                change: Change { expected: Some(version), ..change },
                record: Record { token: Some(token), started: Some(since), ..record },
                before: last,
                sent,
                cap: request.at_most.map_or(Instant::FAR, |most| sent + most),
            };
            if keeper.hold.is_held() || mutant!(LateStartBelieved) {
                return Ok(Ok(keeper.begin(instant, in_progress)));
            }
            // The answer took longer than the lease may be relied on: nobody is handed that.
            late.store(true, Ordering::Release);
            if keeper.end(Ending::TakenBack).await == Released::Unconfirmed || asker.is_canceled() {
                return Err(too_late());
            }
            let rest = self.runtime.sleep_until(self.runtime.now() + backoff.next());
            select(asker.cancellation(), rest).await;
            look = self.look(key).await?;
        }
    }

    fn hold_of(
        &self,
        key: &CellKey,
        owner: OwnerId,
        token: Token,
        request: &JobRequest,
        deadline: Instant,
    ) -> Arc<Hold> {
        let request = Request {
            mode: Mode::Exclusive,
            limit: 1,
            ttl: request.ttl,
            renew: true,
            max_hold: None,
            open: false,
            local: 0,
            info: request.info.clone(),
        };
        let name = LockId { key: LockKey::new(key.name.clone()), kind: Kind::Mutex };
        let tokens = Tokens { first: token, count: 1 };
        let hold = Hold::new(name, owner, tokens, &request, deadline, &self.runtime);
        hold.serve(1);
        Arc::new(hold)
    }

    /// The last run of a job.
    pub(crate) async fn job_state(&self, key: &CellKey) -> Result<Option<JobState>> {
        let look = self.look(key).await?;
        Ok(Record::of(&look, key)?.map(|record| record.state(look.clock)))
    }
}

fn keep(period: Duration) -> Duration {
    MEMORY.max(period.saturating_mul(10))
}
