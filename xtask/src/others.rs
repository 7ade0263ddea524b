//! What other programs take of the processors while the parts run. Where this one may not use all of them (affinity, a quota), it
//! takes what they use of any processor for what is missing here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::quiet::{TICKS, fields_of, processors};

/// How often is looked.
const LOOK: Duration = Duration::from_secs(1);
/// What a look counts for, beside all that came before.
const NEWEST: f64 = 0.1;
/// Less than this is not minded, in hundredths of a processor.
const LITTLE: f64 = 20.0;

/// Watches them.
pub(crate) struct Others(Arc<AtomicU32>);

/// A process: its number, and when it began. Numbers are given again.
type Process = (u32, u64);

/// What is known of a process.
#[derive(Clone, Copy)]
struct Known {
    parent: u32,
    began: u64,
    /// Whether it is a thread of the kernel, which works for all.
    is_kernel: bool,
    /// The seconds it has run, without its children.
    ran: f64,
}

/// A process, as one look has seen it.
#[derive(Clone, Copy)]
struct Seen {
    is_other: bool,
    /// The seconds it has run, without its children.
    ran: f64,
}

impl Others {
    /// Begins to watch, until this program ends. `inside` is a variable with its value that this program's descendants have in
    /// their environment, and nobody else.
    pub(crate) fn watch(inside: String) -> Self {
        let share = Arc::new(AtomicU32::new(0));
        let told = share.clone();
        thread::spawn(move || {
            let (mut before, mut then) = (look(&inside), Instant::now());
            let mut smooth: Option<f64> = None;
            loop {
                thread::sleep(LOOK);
                let (now, time) = (look(&inside), Instant::now());
                let newest = ran_since(&before, &now) * 100.0 / (time - then).as_secs_f64();
                let value = smooth.map_or(newest, |old| old + (newest - old) * NEWEST);
                told.store(if value < LITTLE { 0 } else { value as u32 }, Ordering::Relaxed);
                (before, then, smooth) = (now, time, Some(value));
            }
        });
        Self(share)
    }

    /// How much they took in the last ten seconds or so, in hundredths of a processor. What began and ended between two looks is not in it.
    /// Where there is no `/proc` it is nothing.
    pub(crate) fn share(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// How many times as slow the processors are for us.
    pub(crate) fn slower(&self) -> f64 {
        slowdown(processors(), self.share())
    }
}

/// How many times as slow so many processors are for us, when others take that much of them.
fn slowdown(processors: u32, share: u32) -> f64 {
    let all = f64::from(processors) * 100.0;
    all / (all - f64::from(share)).max(all / 4.0)
}

/// How many seconds those that are others now ran since all were looked at before.
fn ran_since(before: &BTreeMap<Process, Seen>, now: &BTreeMap<Process, Seen>) -> f64 {
    let others = now.iter().filter(|(_, seen)| seen.is_other);
    others.map(|(process, seen)| seen.ran - before.get(process).map_or(0.0, |seen| seen.ran)).sum()
}

/// All processes. The others are those that neither descend from this one nor were started by one that did.
fn look(inside: &str) -> BTreeMap<Process, Seen> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbered = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let known: BTreeMap<u32, Known> = numbered
        .filter_map(|process| {
            let told = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
            Some((process, Known::read(&told)?))
        })
        .collect();
    let is_marked = |process: u32| {
        let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|word| word == inside.as_bytes())
    };
    let seen = |(process, of): (&u32, &Known)| {
        let is_ours = of.is_kernel || descends(*process, &known) || is_marked(*process);
        ((*process, of.began), Seen { is_other: !is_ours, ran: of.ran })
    };
    known.iter().map(seen).collect()
}

/// Whether a process is this one, or one of its descendants.
fn descends(mut process: u32, known: &BTreeMap<u32, Known>) -> bool {
    // A number that was given again while all were read could close a circle.
    for _ in 0..known.len() {
        if process == std::process::id() {
            return true;
        }
        let Some(of) = known.get(&process) else { return false };
        process = of.parent;
    }
    false
}

impl Known {
    /// What `/proc` says of a process. Field 4 of proc(5) is the parent, 9 are flags, 14 and 15 are user and system time, 22 is when
    /// it began.
    fn read(stat: &str) -> Option<Self> {
        /// `PF_KTHREAD` of the kernel.
        const KERNEL: u32 = 0x0020_0000;
        let fields = fields_of(stat)?;
        let field = |number: usize| fields.get(number - 4).copied();
        let ran = (field(14)? + field(15)?) / TICKS;
        let is_kernel = field(9)? as u32 & KERNEL != 0;
        Some(Self { parent: field(4)? as u32, began: field(22)? as u64, is_kernel, ran })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::process::{Child, Command};
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use super::{Known, Others, Seen, look, ran_since, slowdown};

    #[test]
    fn the_fields_are_those_of_the_manual() {
        let stat = "7 (x task) S 1 5 6 7 8 9 10 11 12 13 140 150 16 17 18 19 20 21 22 23";
        let Known { parent, began, is_kernel, ran } = Known::read(stat).expect("it can be read");
        assert!(parent == 1 && began == 22 && !is_kernel && (ran - 2.9).abs() < 1e-9, "{ran}");
        let kernel = stat.replace(" 9 ", " 69238880 ");
        assert!(Known::read(&kernel).expect("it can be read").is_kernel);
    }

    #[test]
    fn new_ones_count_whole_and_those_that_ended_not() {
        let (ours, other) =
            (|ran| Seen { is_other: false, ran }, |ran| Seen { is_other: true, ran });
        let before = [((1, 10), other(5.0)), ((2, 10), other(7.0)), ((3, 10), ours(40.0))].into();
        // One that was ours, and is not to be known as that any more, counts from then on.
        let now = [((1, 10), other(5.5)), ((2, 20), other(0.25)), ((3, 10), other(40.5))].into();
        assert!((ran_since(&before, &now) - 1.25).abs() < 1e-9);
        let now = [((3, 10), ours(41.0)), ((4, 10), ours(1.0))].into();
        assert!(ran_since(&before, &now).abs() < 1e-9);
    }

    #[test]
    fn one_of_two_processors_is_half_as_much() {
        let times = |share| format!("{:.2}", slowdown(2, share));
        assert_eq!([0, 100, 160, 200].map(times), ["1.00", "2.00", "4.00", "4.00"]);
    }

    /// Three that compute, and the one of them that is a child. They end with this.
    struct Running([u32; 3], Child);

    impl Drop for Running {
        fn drop(&mut self) {
            for process in self.0 {
                let _ = Command::new("kill").arg(process.to_string()).status();
            }
            let _ = self.1.wait();
        }
    }

    /// A program that computes and is not ours is seen; one that is ours, by descent or by its environment, is not.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_descends_from_here_is_none_of_the_others() {
        // It ends by itself at some time.
        const LONG: &str = "exec sh -c 'n=200000000; while [ $n -gt 0 ]; do n=$((n - 1)); done'";
        let ours = Command::new("sh").args(["-c", LONG]).spawn().expect("there is a shell");
        // A shell that ends leaves its child to the first process.
        let orphan = |value: &str| {
            let line = format!("({LONG}) </dev/null >/dev/null 2>&1 & echo $!");
            let mut shell = Command::new("sh");
            let told = shell.args(["-c", &line]).env("FENCELOCK_OTHERS_TEST", value).output();
            let told = String::from_utf8(told.expect("there is a shell").stdout);
            told.expect("a number").trim().parse::<u32>().expect("a number")
        };
        // The strange one is of another run.
        let (marked, strange) = (orphan("1"), orphan("11"));
        let three = Running([ours.id(), marked, strange], ours);
        let share = Others::watch("FENCELOCK_OTHERS_TEST=1".into());
        let look_at_three = || -> BTreeMap<_, _> {
            let seen = look("FENCELOCK_OTHERS_TEST=1").into_iter();
            seen.filter(|((process, _), _)| three.0.contains(process)).collect()
        };
        let (before, began) = (look_at_three(), Instant::now());
        let mut ran = 0.0;
        while (ran == 0.0 || share.share() == 0) && began.elapsed() < Duration::from_secs(20) {
            sleep(Duration::from_millis(100));
            ran = ran_since(&before, &look_at_three());
        }
        assert!(ran > 0.0 && share.share() > 0, "it computes");
        let now = look_at_three();
        let is_other = |wanted: u32| {
            let found = now.iter().find(|((process, _), _)| *process == wanted);
            found.expect("it runs").1.is_other
        };
        let others = three.0.map(is_other);
        assert_eq!(others, [false, false, true], "two are ours");
    }
}
