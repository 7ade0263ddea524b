//! Runs parts beside each other, as far as the processors reach.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::part::{Part, Report};

/// How often is looked whether there is more room.
const LOOK: Duration = Duration::from_millis(500);

/// What is told while the parts run.
pub(crate) enum News<'a> {
    Begins(&'a Part),
    Ended(&'a Part, &'a Report),
}

/// Runs all parts, each by `run` on a thread of its own. The next one begins when the processors have room for its load: those
/// that wait run beside those that compute a little. One that alone is too much for the machine runs without those. The parts that
/// compute and nothing else have the lowest priority, so one of them always runs beside the others, and more where there is room. `room` tells
/// how much there is now, in hundredths of a processor; without it one part runs after the other. The processors are `slower` than those on
/// which loads were measured. The reports are in the order of the parts.
pub(crate) fn run(
    parts: &[&Part],
    room: Option<&dyn Fn() -> u32>,
    slower: f64,
    run: impl Fn(&Part) -> Report + Sync,
    mut tell: impl FnMut(News<'_>),
) -> Vec<Report> {
    let mut waiting: Vec<usize> = (0..parts.len()).collect();
    let mut reports: Vec<Option<Report>> = parts.iter().map(|_| None).collect();
    let mut running: Vec<&Part> = Vec::new();
    let (sender, ends) = channel();
    thread::scope(|scope| {
        loop {
            let room = room.map(|room| room());
            if let Some(next) =
                waiting.iter().position(|at| fits(parts[*at], &running, room, slower))
            {
                let at = waiting.remove(next);
                let (part, run, sender) = (parts[at], &run, sender.clone());
                running.push(part);
                tell(News::Begins(part));
                scope.spawn(move || sender.send((at, run(part))));
                continue;
            }
            if running.is_empty() {
                break;
            }
            let (at, report) = match ends.recv_timeout(LOOK) {
                Ok(end) => end,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            running.retain(|part| part.name != parts[at].name);
            tell(News::Ended(parts[at], &report));
            reports[at] = Some(report);
        }
    });
    reports.into_iter().flatten().collect()
}

/// Whether a part may begin beside these.
fn fits(part: &Part, running: &[&Part], room: Option<u32>, slower: f64) -> bool {
    let Some(room) = room else { return running.is_empty() };
    let mut alike = running.iter().filter(|other| other.computes() == part.computes());
    let counts = |other: &&&Part| part.computes() || !other.computes();
    let load = |part: &Part| part.budget.load_at(slower);
    let taken: u32 = running.iter().filter(counts).map(|other| load(other)).sum();
    alike.next().is_none() || taken + load(part) <= room
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use super::{News, run};
    use crate::part::{Budget, COMPUTES, Part, Report, Verdict};

    /// Longer than all parts here take.
    const LONGEST: Duration = Duration::from_secs(30);

    fn part(name: &'static str, load: u32) -> Part {
        let budget = Budget { seconds: 1, load };
        Part { name, tags: &[], shows: "", budget, steps: &[], full: &[] }
    }

    /// The parts by turns of when they began and ended, `+a -a`. They end in this order.
    fn course(parts: &[Part], room: Option<u32>, ends: &str) -> String {
        let room = room.map(|room| move || room);
        course_in(parts, room.as_ref().map(|room| room as &dyn Fn() -> u32), 1.0, ends)
    }

    /// The same, with room that changes, on slower processors.
    fn course_in(
        parts: &[Part],
        room: Option<&dyn Fn() -> u32>,
        slower: f64,
        ends: &str,
    ) -> String {
        let parts: Vec<&Part> = parts.iter().collect();
        let (ended, mut course) = (AtomicUsize::new(0), Vec::new());
        let reports = run(
            &parts,
            room,
            slower,
            |part| {
                let began = Instant::now();
                while ends.find(part.name) > Some(ended.load(Ordering::SeqCst)) {
                    assert!(
                        began.elapsed() < LONGEST,
                        "{} waits for one that does not begin",
                        part.name
                    );
                    std::thread::sleep(Duration::from_millis(1));
                }
                let verdict = Verdict::Passed(String::new());
                let (took, used) = (Duration::ZERO, Duration::ZERO);
                Report { name: part.name, verdict, took, used, budget: part.budget }
            },
            |news| {
                course.push(match news {
                    News::Begins(part) => format!("+{}", part.name),
                    News::Ended(part, _) => format!("-{}", part.name),
                });
                if let News::Ended(..) = news {
                    ended.fetch_add(1, Ordering::SeqCst);
                }
            },
        );
        let back: Vec<_> = reports.iter().map(|report| report.name).collect();
        assert_eq!(back, parts.iter().map(|part| part.name).collect::<Vec<_>>());
        course.join(" ")
    }

    #[test]
    fn parts_share_the_room_and_come_back_in_order() {
        let parts = [part("a", 150), part("b", 100), part("c", 50), part("d", 300)];
        // `c` fits beside `a` and then beside `b`; `d` is more than there is room for, and runs alone.
        assert_eq!(course(&parts, Some(200), "abcd"), "+a +c -a +b -b -c +d -d");
        assert_eq!(course(&parts, None, "abcd"), "+a -a +b -b +c -c +d -d");
    }

    /// What other programs leave may grow while a long part runs: `a` ends when `b` has.
    #[test]
    fn a_part_begins_as_soon_as_there_is_room() {
        let (parts, asked) = ([part("a", 100), part("b", 100)], AtomicUsize::new(0));
        let room = || if asked.fetch_add(1, Ordering::SeqCst) < 3 { 100 } else { 200 };
        assert_eq!(course_in(&parts, Some(&room), 1.0, "ba"), "+a +b -b -a");
    }

    #[test]
    fn what_waits_needs_more_of_slow_processors() {
        let loads = |load| [1.0, 2.0, 3.0].map(|slower| part("a", load).budget.load_at(slower));
        assert_eq!(loads(0), [0, 0, 0]);
        assert_eq!(loads(50), [50, 66, 75]);
        assert_eq!(loads(100), [100, 100, 100]);
        assert_eq!(loads(150), [150, 150, 150]);
        let (parts, room) = ([part("a", 50), part("b", 50)], || 100);
        assert_eq!(course_in(&parts, Some(&room), 1.0, "ba"), "+a +b -b -a");
        assert_eq!(course_in(&parts, Some(&room), 2.0, "ab"), "+a -a +b -b");
    }

    #[test]
    fn one_part_that_computes_runs_beside_all_others() {
        let computes = |name| Part { tags: &[COMPUTES], ..part(name, 200) };
        let parts = [part("a", 300), computes("b"), computes("c")];
        assert_eq!(course(&parts, Some(200), "bca"), "+a +b -b +c -c -a");
        assert_eq!(course(&parts, Some(700), "bca"), "+a +b +c -b -c -a");
        assert_eq!(course(&parts, None, "abc"), "+a -a +b -b +c -c");
    }
}
