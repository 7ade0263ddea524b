//! The instant that is due, with tolerance for clocks and timers that are a little off.

#[cfg(feature = "cron")]
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[cfg(feature = "cron")]
use super::calendar::Calendar;
use crate::error::{Error, Result};

pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// So many µs after the beginning of 1970 (UTC). A number that is too large for this system's clock, which no clock wrote, counts as 1970.
pub(crate) fn moment(micros: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_micros(micros)).unwrap_or(UNIX_EPOCH)
}

/// The µs since 1970 (UTC). A moment before that counts as its beginning.
pub(crate) fn micros_of(moment: SystemTime) -> u64 {
    micros(moment.duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// A timer may fire this long before its instant, if that is no more than a tenth of the period.
const EARLY: Duration = Duration::from_secs(30);
/// Clocks may disagree by this much, or by half of a long period.
const AHEAD: Duration = Duration::from_mins(1);

/// The shortest and longest period.
const PERIODS: (Duration, Duration) =
    (Duration::from_millis(10), Duration::from_hours(24 * 366 * 10));

/// The times at which a job is due: once in a period, or by a cron expression. A `Duration` is a period, counted from 1970 (UTC).
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
/// # runtime.block_on(async {
/// use fencelock::Schedule;
/// use std::time::Duration;
/// let client = fencelock::connect("memory:schedule").await?;
/// let hourly = client.job("import", Duration::from_hours(1));
/// let nightly = client.job("cleanup", Schedule::cron("0 3 * * *").timezone("Europe/Berlin"));
/// # Ok::<(), fencelock::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Schedule(Result<Times>);

/// The contents of a valid [`Schedule`].
#[derive(Clone, Debug)]
pub(crate) enum Times {
    /// The multiples of this period.
    Every(Duration),
    #[cfg(feature = "cron")]
    Cron(Arc<Calendar>),
}

/// The run that is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    /// Its scheduled instant, in µs since 1970.
    pub instant: u64,
    /// The time from this instant to the following one.
    pub period: Duration,
    /// The shortest time between two starts.
    pub rest: Duration,
}

impl From<Duration> for Schedule {
    fn from(period: Duration) -> Self {
        if period < PERIODS.0 || period > PERIODS.1 {
            let shown = humantime::format_duration(period);
            let message = format!("a job's period must be between 10 ms and 10 years, not {shown}");
            return Self(Err(Error::invalid("period", message)));
        }
        Self(Ok(Times::Every(period)))
    }
}

impl Schedule {
    /// The times of a cron expression, in UTC unless [`Schedule::timezone`] names another zone. Its five fields are minute, hour,
    /// day of month, month and day of week, as in a crontab; `@daily` and the like, names (`MON-FRI`) and `L` (the last day of
    /// the month) are known too.
    ///
    /// A time of day that summer time skips comes when the gap ends, and one that it repeats comes once, the first time. An
    /// expression with `*` or a step in its minutes or hours follows the clock instead, through the repeated hour too.
    ///
    /// Needs the cargo feature `cron`. A start fails with `invalid` if this is no cron expression or one that never comes.
    pub fn cron(expression: &str) -> Self {
        #[cfg(feature = "cron")]
        return Self(Calendar::new(expression).map(|calendar| Times::Cron(Arc::new(calendar))));
        #[cfg(not(feature = "cron"))]
        {
            let _ = expression;
            let message = "this build knows no cron expressions, nor time zones; use a period, or name the instant with `at`, or enable the cargo feature `cron`";
            Self(Err(Error::new(crate::error::Code::Unsupported, message)))
        }
    }

    /// The time zone of the cron expression, by its name in the IANA database: that of the system, or the one that is compiled in
    /// where the system has none. A start fails with `invalid` if there is no such zone.
    pub fn timezone(self, zone: &str) -> Self {
        Self(self.0.and_then(|times| times.in_zone(zone)))
    }

    pub(crate) fn into_times(self) -> Result<Times> {
        self.0
    }
}

impl Due {
    /// The run of an instant that the scheduler names. One that lies far ahead of the clock is refused.
    pub(super) fn named(self, instant: u64, clock: u64) -> Result<Self> {
        if instant <= self.furthest(clock) {
            return Ok(Self { instant, ..self });
        }
        let message = "the instant lies far ahead of the store's clock, and no run would be due until then; name the one that is due, and compare the clocks";
        let shown = |at| humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_micros(at));
        Err(Error::invalid("at", message)
            .with("at", shown(instant).to_string())
            .with("clock", shown(clock).to_string()))
    }

    /// The furthest that something right may lie ahead of a clock that shows `clock`.
    pub(super) fn furthest(&self, clock: u64) -> u64 {
        clock.saturating_add(micros((self.period / 2).max(AHEAD)))
    }
}

fn early(period: Duration) -> u64 {
    micros((period / 10).min(EARLY))
}

impl Times {
    fn in_zone(self, zone: &str) -> Result<Self> {
        match self {
            Self::Every(_) => {
                let message = format!(
                    "a period is counted in UTC and has no time zone; leave `{zone:.40}` out, or use a cron expression: `0 3 * * *` is every day at 03:00"
                );
                Err(Error::invalid("timezone", message))
            }
            #[cfg(feature = "cron")]
            Self::Cron(calendar) => Ok(Self::Cron(Arc::new(calendar.in_zone(zone)?))),
        }
    }

    /// The run that is due when the store's clock shows `clock`.
    #[cfg_attr(
        not(feature = "cron"),
        expect(clippy::unnecessary_wraps, reason = "a calendar may have no instant")
    )]
    pub(super) fn due(&self, clock: u64) -> Result<Due> {
        match self {
            Self::Every(period) => {
                let whole = micros(*period).max(1);
                let instant = clock.saturating_add(early(*period)) / whole * whole;
                Ok(Due { instant, period: *period, rest: *period / 2 })
            }
            #[cfg(feature = "cron")]
            Self::Cron(calendar) => {
                let mut around = calendar.around(clock)?;
                if clock >= around.due_from() {
                    around = calendar.around(around.next)?;
                }
                // Its instants are far enough apart by themselves: a late start keeps none from the next one.
                Ok(Due { instant: around.last, period: around.period(), rest: Duration::ZERO })
            }
        }
    }

    /// The earliest time by the store's clock at which a later instant than this is due.
    #[cfg_attr(
        not(feature = "cron"),
        expect(clippy::unnecessary_wraps, reason = "a calendar may have no instant")
    )]
    pub(super) fn after(&self, instant: u64) -> Option<u64> {
        match self {
            Self::Every(period) => {
                let whole = micros(*period).max(1);
                Some((instant / whole + 1).saturating_mul(whole).saturating_sub(early(*period)))
            }
            #[cfg(feature = "cron")]
            Self::Cron(calendar) => calendar.around(instant).ok().map(Around::due_from),
        }
    }
}

/// The last instant of a calendar at some time, and the next one. In µs.
#[cfg(feature = "cron")]
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    pub last: u64,
    pub next: u64,
}

#[cfg(feature = "cron")]
impl Around {
    fn period(self) -> Duration {
        Duration::from_micros(self.next - self.last)
    }

    /// The earliest time at which a timer means the next instant.
    fn due_from(self) -> u64 {
        self.next - early(self.period())
    }
}
