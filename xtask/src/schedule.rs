//! Runs parts beside each other, as far as the processors reach.

use std::sync::mpsc::channel;
use std::thread;

use crate::part::{Part, Report};

/// What is told while the parts run.
pub(crate) enum News<'a> {
    Begins(&'a Part),
    Ended(&'a Part, &'a Report),
}

/// Runs all parts, each by `run` on a thread of its own. The next one begins when the processors have room for its load: those that wait run
/// beside those that compute. One that alone is too much for the machine runs alone. The reports are in the order of the parts.
pub(crate) fn run(
    parts: &[&Part],
    room: u32,
    run: impl Fn(&Part) -> Report + Sync,
    mut tell: impl FnMut(News<'_>),
) -> Vec<Report> {
    let mut waiting: Vec<usize> = (0..parts.len()).collect();
    let mut reports: Vec<Option<Report>> = parts.iter().map(|_| None).collect();
    let (mut load, mut running) = (0, 0);
    let (sender, ends) = channel();
    thread::scope(|scope| {
        loop {
            let fits = |at: &usize| running == 0 || load + parts[*at].budget.load <= room;
            if let Some(next) = waiting.iter().position(fits) {
                let at = waiting.remove(next);
                let (part, run, sender) = (parts[at], &run, sender.clone());
                load += part.budget.load;
                running += 1;
                tell(News::Begins(part));
                scope.spawn(move || sender.send((at, run(part))));
                continue;
            }
            if running == 0 {
                break;
            }
            let Ok((at, report)) = ends.recv() else { break };
            load -= parts[at].budget.load;
            running -= 1;
            tell(News::Ended(parts[at], &report));
            reports[at] = Some(report);
        }
    });
    reports.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::run;
    use crate::part::{Budget, Part, Report, Verdict};

    fn part(name: &'static str, load: u32) -> Part {
        let budget = Budget { seconds: 1, load };
        Part { name, tags: &[], shows: "", budget, steps: &[], full: &[] }
    }

    #[test]
    fn parts_share_the_room_and_come_back_in_order() {
        let parts = [part("a", 150), part("b", 100), part("c", 50), part("d", 300)];
        let parts: Vec<&Part> = parts.iter().collect();
        let (load, most) = (AtomicU32::new(0), AtomicU32::new(0));
        let mut begun = Vec::new();
        let reports = run(
            &parts,
            200,
            |part| {
                let now = load.fetch_add(part.budget.load, Ordering::SeqCst) + part.budget.load;
                most.fetch_max(now, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(20));
                load.fetch_sub(part.budget.load, Ordering::SeqCst);
                let verdict = Verdict::Passed(String::new());
                let (took, used) = (Duration::ZERO, Duration::ZERO);
                Report { name: part.name, verdict, took, used, budget: part.budget }
            },
            |news| {
                if let super::News::Begins(part) = news {
                    begun.push(part.name);
                }
            },
        );
        let names: Vec<_> = reports.iter().map(|report| report.name).collect();
        assert_eq!(names, ["a", "b", "c", "d"]);
        // `c` fits beside `a`; `d` is more than there is room for, and runs alone.
        assert_eq!(begun, ["a", "c", "b", "d"]);
        assert_eq!(most.load(Ordering::SeqCst), 300);
    }
}
