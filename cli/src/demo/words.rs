//! The show in plain words, for people who have never seen a lock.

use super::event::Event;
use super::verdict::{StoreStall, Verdict};

/// How a line is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// The headline of an act.
    Head,
    Plain,
    Good,
    Bad,
}

/// How often the show tells what happens over and over again: how far the sale has come, or how often two held a broken lock.
const MILESTONE: u32 = 250;

/// What an event says to people. Most sales say nothing.
pub(super) fn line(event: &Event) -> Option<(Tone, String)> {
    let said = match event {
        Event::Opened { pieces, buyers, workers, seed, .. } => (
            Tone::Plain,
            format!(
                "A shop sells {} pieces to {} customers through {workers} worker processes (seed {seed}).",
                grouped(*pieces),
                grouped(*buyers)
            ),
        ),
        Event::WithoutLock { think_us } => (
            Tone::Head,
            format!(
                "1. Without a lock: each worker reads the stock, thinks for about {}\u{a0}ms, and writes the stock less one.",
                *think_us as f64 / 1000.0
            ),
        ),
        Event::RaceEnded { sold, pieces, oversold: 0 } => (
            Tone::Plain,
            format!(
                "{} sold of {}: the workers never met this time. Once more, with longer thinking.",
                grouped(*sold),
                grouped(*pieces)
            ),
        ),
        Event::RaceEnded { sold, pieces, oversold } => (
            Tone::Bad,
            format!(
                "Without a lock: {} sold of {}: {} customers got nothing. Workers who read the stock at the same moment sold the same piece.",
                grouped(*sold),
                grouped(*pieces),
                grouped(*oversold)
            ),
        ),
        Event::WithLock { store, ttl_ms } => (
            Tone::Head,
            format!(
                "2. With a lock on {store}: a worker sells only while it holds the lock. A hold ends by itself after {}, unless its holder renews it. Each hold has a number, its token, higher than all before.",
                seconds(*ttl_ms)
            ),
        ),
        Event::Sold { sold, .. } if sold.is_multiple_of(MILESTONE) => {
            (Tone::Plain, format!("{} sold.", grouped(*sold)))
        }
        Event::Counting { tasks, times, workers } => (
            Tone::Head,
            format!(
                "3. A counter: {tasks} tasks in {workers} processes each add one, {times} times, by reading, letting the others run, and writing."
            ),
        ),
        Event::Counted { counter, target } if counter == target => (
            Tone::Good,
            format!("The counter stands at {}: not one step was lost.", grouped(*counter)),
        ),
        Event::Counted { counter, target } => (
            Tone::Bad,
            format!("The counter stands at {} instead of {}.", grouped(*counter), grouped(*target)),
        ),
        _ => return misfortune(event),
    };
    Some(said)
}

fn misfortune(event: &Event) -> Option<(Tone, String)> {
    let said = match event {
        Event::Killed { worker, .. } => (
            Tone::Bad,
            format!(
                "Worker {worker} is killed (kill -9) while it holds the lock, and can give nothing back. The others wait for its hold to end."
            ),
        ),
        Event::TookOver { worker, from, after_ms, .. } => (
            Tone::Good,
            format!(
                "{} later worker {worker} has the lock: the hold of worker {from} ended by itself.",
                seconds(*after_ms)
            ),
        ),
        Event::Replaced { worker, .. } => (
            Tone::Plain,
            format!(
                "A new worker {worker} starts, and the customer of the dead one is served again."
            ),
        ),
        Event::Stalled { worker, for_ms, how } => (
            Tone::Bad,
            format!(
                "The store of the locks answers nobody for {} ({how}). Worker {worker} holds the lock and cannot renew it.",
                seconds(*for_ms)
            ),
        ),
        Event::StallEnded { worker, held: true } => (
            Tone::Good,
            format!(
                "The store answers again. That was shorter than a hold: worker {worker} still has the lock, and sells."
            ),
        ),
        Event::StallEnded { worker, held: false } => {
            (Tone::Bad, format!("The store answers again, but worker {worker} has lost the lock."))
        }
        Event::Skipped { what, why } => (Tone::Plain, format!("Skipped: {what}, because {why}.")),
        Event::Frozen { worker, .. } => (
            Tone::Bad,
            format!(
                "Worker {worker} checked that it holds the lock, and is frozen (SIGSTOP) just before it writes. It does not notice that time goes on."
            ),
        ),
        Event::Thawed { worker, token } => (
            Tone::Bad,
            format!(
                "Others have sold since. Worker {worker} wakes up (SIGCONT) and writes at once, with its old token {token}."
            ),
        ),
        Event::Refused { knew: false, refused, .. }
            if *refused > 1 && !refused.is_multiple_of(MILESTONE) =>
        {
            return None;
        }
        Event::Refused { worker, token, newest, knew: false, .. } => (
            Tone::Bad,
            format!(
                "Two at once! Worker {worker} holds the lock with token {token}, and the shop has seen {newest}: it takes nothing from {token}."
            ),
        ),
        Event::Refused { worker, token, newest, .. } => (
            Tone::Good,
            format!(
                "Refused! The shop has seen token {newest} and takes nothing from {token}: worker {worker} changed nothing. Its customer is served again."
            ),
        ),
        Event::GaveUp { worker, .. } => (
            Tone::Plain,
            format!("Worker {worker} saw in time that it had lost the lock, and wrote nothing."),
        ),
        _ => return None,
    };
    Some(said)
}

/// The verdict, one fact a line.
pub(super) fn verdict(verdict: &Verdict) -> Vec<(Tone, String)> {
    let facts = [
        (
            "without the lock",
            format!(
                "{} sold of {}, {} too many",
                grouped(verdict.sold_without_lock),
                grouped(verdict.pieces),
                grouped(verdict.oversold_without_lock)
            ),
        ),
        (
            "with the lock",
            format!(
                "{} sold of {}, {} too many, {} turned away",
                grouped(verdict.sold),
                grouped(verdict.pieces),
                grouped(verdict.oversold),
                grouped(verdict.turned_away)
            ),
        ),
        (
            "stale writes",
            format!(
                "{} refused, {} of them while the lock was held, {} accepted",
                verdict.stale_writes_refused,
                verdict.refused_while_held,
                verdict.stale_writes_accepted
            ),
        ),
        ("next holder", next_holder(verdict)),
        (
            "stalled store",
            match &verdict.store_stall {
                StoreStall::Survived => "the holder kept its lock".to_owned(),
                StoreStall::Lost => "the holder lost its lock".to_owned(),
                StoreStall::Missing => "never came".to_owned(),
                StoreStall::Skipped(why) => format!("skipped: {why}"),
            },
        ),
        (
            "waiting",
            format!(
                "half under {}, 99 of 100 under {} ({} in calm)",
                millis(verdict.p50_wait_ms),
                millis(verdict.p99_wait_ms),
                millis(verdict.p99_calm_wait_ms)
            ),
        ),
        ("hand-overs", format!("{} from one process to another", grouped(verdict.hand_overs))),
        ("counter", format!("{} of {}", grouped(verdict.counter), grouped(verdict.counter_target))),
    ];
    let head = if verdict.held {
        (Tone::Good, format!("Everything held ({:.1} s, seed {}).", verdict.seconds, verdict.seed))
    } else {
        (Tone::Bad, format!("Not everything held (seed {}):", verdict.seed))
    };
    let complaints = verdict.complaints.iter().map(|what| (Tone::Bad, format!("  ! {what}")));
    let facts = facts.map(|(what, how)| (Tone::Plain, format!("  {what:<17} {how}")));
    std::iter::once(head).chain(complaints).chain(facts).collect()
}

fn next_holder(verdict: &Verdict) -> String {
    let after = |after: Option<u64>| after.map_or_else(|| "never".to_owned(), seconds);
    format!(
        "{} after the kill, {} after the freeze (a hold lasts {})",
        after(verdict.after_kill_ms),
        after(verdict.after_freeze_ms),
        seconds(verdict.lease.ttl_ms)
    )
}

/// A number as people write it: 1,400.
pub(super) fn grouped(number: impl Into<i64>) -> String {
    let number: i64 = number.into();
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0 { format!("-{text}") } else { text }
}

/// 2 s, 1.98 s; number and unit stay together.
fn seconds(millis: u64) -> String {
    let text = format!("{:.2}", millis as f64 / 1000.0);
    format!("{}\u{a0}s", text.trim_end_matches('0').trim_end_matches('.'))
}

fn millis(millis: f64) -> String {
    if millis < 1000.0 { format!("{millis:.0}\u{a0}ms") } else { seconds(millis as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_lock_is_told_but_not_every_time() {
        let refused = |refused, knew| {
            let (worker, buyer, token, newest) = (3, 9, 1, 2);
            let event = Event::Refused { worker, buyer, token, newest, knew, refused };
            line(&event).map(|(tone, _)| tone)
        };
        let told = [1, 2, 249, 250].map(|times| refused(times, false));
        assert_eq!(told, [Some(Tone::Bad), None, None, Some(Tone::Bad)]);
        assert_eq!(refused(2, true), Some(Tone::Good));
    }

    #[test]
    fn numbers_read_as_people_write_them() {
        assert_eq!(grouped(1_400_000), "1,400,000");
        assert_eq!(
            (grouped(-87), grouped(1000), grouped(0)),
            ("-87".into(), "1,000".into(), "0".into())
        );
        assert_eq!(
            (seconds(2000), seconds(1984), seconds(10)),
            ("2\u{a0}s".into(), "1.98\u{a0}s".into(), "0.01\u{a0}s".into())
        );
    }
}
