//! Scheduled jobs: at most one run for each scheduled instant, and never two at once.
//!
//! The job's cell remembers its last run. A run starts by replacing that, if its own instant is later; while it lasts,
//! it pushes its end by replacing what it wrote; and so it ends. Every one of these expects the version the last one
//! made, so whoever was overtaken changes nothing. Moments in the cell are the store's own.

mod record;
mod tend;
mod tending;

use std::sync::Arc;
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::{Either, select};

use super::core::Core;
use super::hold::{Hold, Terms, deadline};
use super::target::Target;
use crate::error::{Code, Error, Result};
use crate::event::Event;
use crate::fence::Token;
use crate::port::{CellKey, Change, Instant, Kind, LockKey, Mode, OwnerId, Swap};

use self::record::Record;
pub use self::record::{JobState, Status};
use self::tend::Tender;
pub(crate) use self::tend::{Begun, Ending};
use self::tending::Busy;
pub(crate) use self::tending::Tending;

/// The record of a job that is not run any more is forgotten after this long, or ten periods.
const MEMORY: Duration = Duration::from_hours(30 * 24);

/// What names a run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Schedule {
    /// The multiple of this period, counted from 1970, that is nearest to the store's clock.
    Every(Duration),
    /// A moment the scheduler knows, in µs since 1970.
    At(u64),
}

/// What a start asks for.
#[derive(Clone, Debug)]
pub(crate) struct JobTerms {
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

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Schedule {
    /// The instant that is due when the store's clock shows `clock`.
    fn instant(self, clock: u64, core: &Core) -> u64 {
        let clock = if mutant!(JobByLocalClock) { core.runtime.wall() } else { clock };
        match self {
            Self::Every(_) if mutant!(JobByAskingTime) => clock,
            Self::Every(period) => {
                let period = micros(period).max(1);
                clock.saturating_add(period / 2) / period * period
            }
            Self::At(instant) => instant,
        }
    }
}

impl Core {
    /// Starts the job's run that is due, unless it was started before, or the last one still lasts.
    ///
    /// The request runs on by itself: if the caller does not stay for the run, it is taken back.
    pub(crate) async fn start_run(
        self: &Arc<Self>,
        key: CellKey,
        terms: JobTerms,
    ) -> Result<Option<Begun>> {
        let Some(busy) = self.tending.begin() else { return Err(Error::closed()) };
        let (sender, receiver) = oneshot::channel();
        let patience = self.runtime.sleep_until(self.runtime.now() + terms.patience);
        let core = self.clone();
        self.runtime.spawn(Box::pin(async move {
            let begun = core.begin_run(&key, &terms, busy).await;
            // Whoever does not stay for it drops it, which takes it back.
            let _ = sender.send(begun);
        }));
        match select(receiver, patience).await {
            Either::Left((begun, _)) => {
                let mut begun = begun.map_err(|_| Error::closed())??;
                if let Some(begun) = &mut begun {
                    if self.is_closed() {
                        return Err(Error::closed());
                    }
                    begun.take();
                    let hold = &begun.hold;
                    self.events.emit(|| Event::granted(hold.lock.as_str(), hold.token));
                }
                Ok(begun)
            }
            Either::Right(((), _)) => {
                let message =
                    "the store did not answer in time; if the run was started, it is taken back";
                Err(Error::new(Code::Unavailable, message))
            }
        }
    }

    async fn begin_run(
        self: &Arc<Self>,
        key: &CellKey,
        terms: &JobTerms,
        busy: Busy,
    ) -> Result<Option<Begun>> {
        let mut look = self.look(key).await?;
        let owner = OwnerId::draw(&*self.runtime);
        let lease = terms.at_most.map_or(terms.ttl, |most| most.min(terms.ttl));
        loop {
            let instant = terms.schedule.instant(look.clock, self);
            let last = Record::of(&look, key)?;
            if last.as_ref().is_some_and(|last| !last.lets_start(instant, look.clock, terms)) {
                return Ok(None);
            }
            let record = Record::begun(instant, lease, terms);
            let change = Change {
                key: key.clone(),
                expected: look.version(),
                writer: owner,
                value: Some(record.text()?),
                keep: Some(keep(terms.period)),
            };
            let sent = self.runtime.now();
            let swap = self.swap(&change, deadline(sent, lease)).await;
            match swap.map_err(|failure| failure.error)? {
                Swap::Other(other) => look = other,
                Swap::Done { version, since } => {
                    let sent = if mutant!(RunCountedFromReply) { self.runtime.now() } else { sent };
                    let token = Token::new(version.get());
                    let hold = self.hold_of(key, owner, token, terms, deadline(sent, lease));
                    let tender = Tender {
                        core: self.clone(),
                        hold: hold.clone(),
                        change: Change { expected: Some(version), ..change },
                        record: Record { token: Some(token), started: Some(since), ..record },
                        before: last,
                        sent,
                        cap: terms.at_most.map_or(Instant::FAR, |most| sent + most),
                    };
                    return Ok(Some(tender.begin(instant, busy)));
                }
            }
        }
    }

    fn hold_of(
        &self,
        key: &CellKey,
        owner: OwnerId,
        token: Token,
        terms: &JobTerms,
        deadline: Instant,
    ) -> Arc<Hold> {
        let terms = Terms {
            mode: Mode::Exclusive,
            limit: 1,
            ttl: terms.ttl,
            renew: true,
            max_hold: None,
            open: false,
            local: 0,
            info: terms.info.clone(),
        };
        let name = Target { key: LockKey::new(key.name.clone()), kind: Kind::Mutex };
        let hold = Hold::new(name, owner, token, 1, &terms, deadline, &self.runtime);
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
