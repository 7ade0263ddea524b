//! Whether the machine was quiet during a run: only then does it mean something that a part took too long.
//!
//! Two things make a run slow though nothing is wrong with it. Somebody else uses the processors: other programs, or the host of
//! a virtual machine. Or the processors themselves are slower than those the budgets were measured on.

use std::time::{Duration, Instant};

/// What others may use of the processors' time on a quiet machine.
const OTHERS: f64 = 0.10;
/// How much slower than where the budgets come from a machine may be.
const SLOWER: f64 = 1.4;
/// How long [`yardstick`] takes where the budgets come from.
const YARDSTICK: Duration = Duration::from_millis(105);
/// The unit of time in `/proc`.
pub(crate) const TICKS: f64 = 100.0;

/// Looks at the machine from the begin of a run on.
pub(crate) struct Watch {
    begin: Instant,
    used: Used,
    yardstick: Duration,
}

/// Seconds of processor time since the machine, or this program, began.
#[derive(Clone, Copy, Default)]
struct Used {
    all: f64,
    stolen: f64,
    ours: f64,
}

impl Watch {
    pub(crate) fn begin() -> Self {
        Self {
            begin: Instant::now(),
            used: Used::now().unwrap_or_default(),
            yardstick: yardstick(),
        }
    }

    /// How many times as slow as where the budgets come from the processors are; at least once.
    pub(crate) fn slower(&self) -> f64 {
        (self.yardstick.as_secs_f64() / YARDSTICK.as_secs_f64()).max(1.0)
    }

    /// Whether the machine was quiet since then, and in words how that is known.
    pub(crate) fn end(&self) -> (bool, String) {
        let Some(now) = Used::now() else {
            return (false, "no /proc to tell who used the processors".into());
        };
        let whole = self.begin.elapsed().as_secs_f64() * f64::from(processors());
        let stolen = (now.stolen - self.used.stolen) / whole;
        let ours = (now.ours - self.used.ours) / whole;
        let others = ((now.all - self.used.all) / whole - ours).max(0.0);
        let measured = self.yardstick.max(yardstick());
        if measured.is_zero() {
            return (false, "the system does not tell what a thread has run".into());
        }
        let slower = measured.as_secs_f64() / YARDSTICK.as_secs_f64();
        let quiet = stolen + others < OTHERS && slower < SLOWER;
        let words = format!(
            "processors: {:.0} % this run, {:.0} % other programs, {:.0} % taken by the host; \
             {slower:.2} times as slow as where the budgets were measured",
            ours * 100.0,
            others * 100.0,
            stolen * 100.0
        );
        (quiet, words)
    }
}

impl Used {
    /// From `/proc`; `None` where there is none.
    fn now() -> Option<Self> {
        let machine = std::fs::read_to_string("/proc/stat").ok()?;
        let own = std::fs::read_to_string("/proc/self/stat").ok()?;
        Self::read(&machine, &own)
    }

    fn read(machine: &str, own: &str) -> Option<Self> {
        // user nice system idle iowait irq softirq steal
        let of = numbers(machine.lines().next()?.strip_prefix("cpu ")?);
        let (busy, stolen) = (of.get(..3)?.iter().chain(of.get(5..7)?), of.get(7)?);
        Some(Self {
            all: busy.sum::<f64>() / TICKS,
            stolen: stolen / TICKS,
            ours: seconds_of(own)?,
        })
    }
}

/// The processor time of a process and of those it has waited for, by what `/proc` tells of it; none where there is no `/proc`.
/// A process that has ended tells it until it is waited for.
pub(crate) fn processor_time(process: u32) -> Duration {
    let told = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    Duration::from_secs_f64(seconds_of(&told).unwrap_or_default())
}

/// Fields 14 to 17 are user and system time, of the process and of those it has waited for.
fn seconds_of(stat: &str) -> Option<f64> {
    Some(fields_of(stat)?.get(10..14)?.iter().sum::<f64>() / TICKS)
}

/// What `/proc` says of a process behind its name, which may have blanks, and its state: field 4 of proc(5), and those that follow.
pub(crate) fn fields_of(stat: &str) -> Option<Vec<f64>> {
    Some(numbers(stat.rsplit_once(')')?.1))
}

/// How many processors there are for this program.
pub(crate) fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, usize::from) as u32
}

fn numbers(words: &str) -> Vec<f64> {
    words.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// A fixed piece of work, and the least processor time it took of three.
fn yardstick() -> Duration {
    // What this thread has run, in nanoseconds; waiting for a processor does not count.
    let ran = || {
        let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let nanos = told.split(' ').next().and_then(|nanos| nanos.parse().ok());
        Duration::from_nanos(nanos.unwrap_or_default())
    };
    let once = || {
        let begin = ran();
        let mixed = (0..20_000_000_u64).fold(1_u64, |mixed, n| mixed.rotate_left(5) ^ n);
        std::hint::black_box(mixed);
        ran().saturating_sub(begin)
    };
    (0..3).map(|_| once()).min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Used;

    #[test]
    fn the_fields_are_those_of_the_manual() {
        let machine = "cpu  100 200 300 9999 50 10 20 700 0 0\ncpu0 1";
        let own = "7 (x task) S 1 2 3 4 5 6 7 8 9 10 100 200 300 400 20 0";
        let used = Used::read(machine, own).expect("it can be read");
        assert!((used.all - 6.3).abs() < 1e-9, "{}", used.all);
        assert!((used.stolen - 7.0).abs() < 1e-9);
        assert!((used.ours - 10.0).abs() < 1e-9, "{}", used.ours);
    }
}
