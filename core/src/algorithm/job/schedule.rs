//! Which instant is due, and what becomes of clocks and timers that are not quite right.

use std::time::Duration;

use super::micros;
use crate::error::{Error, Result};

/// So much before its instant a timer may fire, if that is no more than a tenth of the period.
const EARLY: Duration = Duration::from_secs(30);
/// So far clocks may disagree, and half of a long period.
const AHEAD: Duration = Duration::from_mins(1);

/// What names a run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Schedule {
    /// The last multiple of this period, counted from 1970, by the store's clock.
    Every(Duration),
    /// A moment the scheduler knows, in µs since 1970.
    At(u64),
}

fn early(period: Duration) -> u64 {
    micros((period / 10).min(EARLY))
}

/// The furthest that something right may lie ahead of a clock that shows `clock`.
pub(super) fn furthest(clock: u64, period: Duration) -> u64 {
    clock.saturating_add(micros((period / 2).max(AHEAD)))
}

impl Schedule {
    /// The instant that is due when the store's clock shows `clock`.
    pub(super) fn instant(self, clock: u64, period: Duration) -> Result<u64> {
        match self {
            Self::Every(period) => {
                let early = early(period);
                let period = micros(period).max(1);
                Ok(clock.saturating_add(early) / period * period)
            }
            Self::At(instant) if instant > furthest(clock, period) => {
                let message = "the instant lies far ahead of the store's clock, and no run would be due until then; name the one that is due, and compare the clocks";
                let shown = |at| {
                    humantime::format_rfc3339_millis(
                        std::time::UNIX_EPOCH + Duration::from_micros(at),
                    )
                };
                Err(Error::invalid("at", message)
                    .with("at", shown(instant).to_string())
                    .with("clock", shown(clock).to_string()))
            }
            Self::At(instant) => Ok(instant),
        }
    }

    /// From when on by the store's clock a later instant than this is due; `None` if only the scheduler knows.
    pub(super) fn after(self, instant: u64) -> Option<u64> {
        match self {
            Self::Every(period) => {
                let whole = micros(period).max(1);
                Some((instant / whole + 1).saturating_mul(whole).saturating_sub(early(period)))
            }
            Self::At(_) => None,
        }
    }
}
