//! All that this process started, directly or not, in whatever process group or session it is.
//!
//! An orphan would become a child of the system's first process, and nobody could tell where it came from: supervisor and
//! guardian adopt it instead. So every remaining descendant has an unbroken line of living parents up to them.

use std::collections::HashSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::sync::LazyLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{self, Errno};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpgid, getpid, kill_process, pidfd_open,
    pidfd_send_signal, set_child_subreaper, waitid,
};

use super::group::Group;

/// Whether this process stays a parent of what it started.
pub(super) const ADOPTS: bool = true;
/// Between two looks at those that were killed.
const REST: Duration = Duration::from_millis(1);
/// One that was killed and is there still after so long waits for the system, as on a disk that is gone: nothing ends it.
const STUCK: Duration = Duration::from_secs(5);

/// From now on this process is the parent of every orphan that descends from it.
pub(super) fn adopt() -> io::Result<()> {
    // Not a cgroup: a user has none without delegation, and the command would leave its unit and limits.
    set_child_subreaper(Some(getpid()))
}

/// A process by a handle that never means another one, also when its number does.
struct Process {
    pid: Pid,
    /// `None` where the system has no such handles to give.
    handle: Option<OwnedFd>,
}

impl Process {
    /// The process that has this number now.
    fn of(pid: Pid) -> Self {
        Self { pid, handle: pidfd_open(pid, PidfdFlags::empty()).ok() }
    }

    /// A living child of `parent`, or of this process.
    fn child(pid: Pid, parent: Option<&Self>) -> Option<Self> {
        let child = Self::of(pid);
        let parent_pid = parent.map_or_else(getpid, |parent| parent.pid);
        // If both live on after the look, the numbers were theirs.
        let is_child = Stat::of(pid)?.parent == parent_pid.as_raw_pid();
        let alive = !child.has_ended() && !parent.is_some_and(Self::has_ended);
        (is_child && alive).then_some(child)
    }

    /// The same process once more.
    fn again(&self) -> Self {
        Self { pid: self.pid, handle: self.handle.as_ref().and_then(|it| it.try_clone().ok()) }
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        match &self.handle {
            Some(handle) => pidfd_send_signal(handle, signal),
            None => kill_process(self.pid, signal),
        }
    }

    /// Whether it runs no more; it may be a zombie still.
    fn has_ended(&self) -> bool {
        let Some(handle) = &self.handle else {
            return Stat::of(self.pid).is_none_or(|it| it.ended);
        };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&now)), Ok(1))
    }
}

/// Visits every living descendant of this process, or of `root`; one that is `spared` is not visited, but those that
/// descend from it are.
fn visit(root: Option<&Process>, spared: Option<Pid>, act: &mut dyn FnMut(&Process)) {
    for pid in children(root.map_or_else(getpid, |root| root.pid)) {
        if let Some(child) = Process::child(pid, root) {
            if Some(pid) != spared {
                act(&child);
            }
            visit(Some(&child), spared, act);
        }
    }
}

/// Sends a signal to every living descendant of this process but `spared` that is not in `group`; to that with the others.
/// A stopped process hears nothing before it is continued.
pub(super) fn tell(signal: Signal, group: &Group, spared: Pid) {
    // All are found before the first one gets a signal: a process that ends at once leaves children that were looked for below it.
    let mut others = Vec::new();
    visit(None, Some(spared), &mut |process| {
        if getpgid(Some(process.pid)) != Ok(group.id()) {
            others.push(process.again());
        }
    });
    group.signal(signal);
    group.signal(Signal::CONT);
    for one in others {
        let _ = one.signal(signal);
        let _ = one.signal(Signal::CONT);
    }
}

/// Whether this process and its child `guardian` are the parents of nobody but those in `kept`.
pub(super) fn is_alone(kept: &[Pid], guardian: Pid) -> bool {
    let parents = [getpid(), guardian];
    // Twice: a list can lack somebody while the guardian takes note of another one's end.
    (0..2).all(|_| {
        parents.iter().all(|parent| children(*parent).iter().all(|pid| kept.contains(pid)))
    })
}

/// Kills every descendant of this process but `spared`, until there is none left; answers those that the system does not
/// let this user kill, or does not end. Those in `kept` stay zombies.
pub(super) fn end(kept: &[Pid], spared: Option<Pid>) -> HashSet<Pid> {
    let (mut zombies, begin) = (HashSet::new(), Instant::now());
    loop {
        let before = children(getpid());
        let (mut killed, mut refused) = (false, HashSet::new());
        visit(None, spared, &mut |process| match process.signal(Signal::KILL) {
            Err(Errno::PERM) => drop(refused.insert(process.pid)),
            _ if begin.elapsed() > STUCK => drop(refused.insert(process.pid)),
            _ => killed = true,
        });
        // One that was killed may have left a child, which is ours by now, and so in the next list. Whoever was a zombie
        // before this list was made has none.
        let over =
            |pid: &Pid| zombies.contains(pid) || refused.contains(pid) || Some(*pid) == spared;
        if !killed && before.iter().all(over) {
            return refused;
        }
        sleep(REST);
        reap(kept);
        zombies =
            children(getpid()).into_iter().filter(|pid| Process::of(*pid).has_ended()).collect();
    }
}

/// Takes note of the end of adopted orphans, so that they do not stay zombies; those in `kept` do.
pub(super) fn reap(kept: &[Pid]) {
    for pid in children(getpid()).into_iter().filter(|pid| !kept.contains(pid)) {
        let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }
}

/// The descendants of another process, who are orphans once that is killed: they are remembered.
pub(super) struct Remembered {
    ancestor: Process,
    descendants: Vec<Process>,
}

impl Remembered {
    /// Those of this process's parent, if that is still the one with this number.
    pub(super) fn of_parent(pid: Pid) -> Option<Self> {
        let ancestor = Process::of(pid);
        let is_parent = rustix::process::getppid() == Some(pid) && !ancestor.has_ended();
        let mut parents = Self { ancestor, descendants: Vec::new() };
        parents.look();
        is_parent.then_some(parents)
    }

    /// Looks who is there now.
    pub(super) fn look(&mut self) {
        self.descendants.retain(|one| !one.has_ended());
        let mut known: HashSet<Pid> = self.descendants.iter().map(|one| one.pid).collect();
        let mut new = Vec::new();
        let mut remember = |process: &Process| {
            if known.insert(process.pid) {
                new.push(process.again());
            }
        };
        visit(Some(&self.ancestor), Some(getpid()), &mut remember);
        // Those of them that are orphans by now have children, too.
        for one in &self.descendants {
            visit(Some(one), None, &mut remember);
        }
        self.descendants.extend(new);
    }

    /// Kills them and all that descends from them, until none is left but those that the system does not let this user kill.
    pub(super) fn end(&mut self) {
        loop {
            self.look();
            self.descendants.retain(|one| one.signal(Signal::KILL).is_ok() && !one.has_ended());
            if self.descendants.is_empty() {
                return;
            }
            sleep(REST);
        }
    }
}

/// The state of a process, as the system reports it.
struct Stat {
    parent: i32,
    ended: bool,
}

impl Stat {
    fn of(pid: Pid) -> Option<Self> {
        let text = fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
        // The program's name stands in parentheses and may have any character.
        let end = text.iter().rposition(|byte| *byte == b')')?;
        let mut fields = str::from_utf8(&text[end + 1..]).ok()?.split_ascii_whitespace();
        let ended = matches!(fields.next()?, "Z" | "X");
        Some(Self { parent: fields.next()?.parse().ok()?, ended })
    }
}

/// The children of a process, ended ones that nobody has waited for too.
fn children(parent: Pid) -> Vec<Pid> {
    /// Whether the system lists them itself.
    static LISTED: LazyLock<bool> =
        LazyLock::new(|| fs::exists("/proc/thread-self/children").unwrap_or(false));
    if !*LISTED {
        let all = numbers("/proc").into_iter();
        let parent = parent.as_raw_pid();
        return all
            .filter(|pid| Stat::of(*pid).is_some_and(|stat| stat.parent == parent))
            .collect();
    }
    let tasks = format!("/proc/{}/task", parent.as_raw_pid());
    let lists = numbers(&tasks).into_iter().filter_map(|task| {
        fs::read_to_string(format!("{tasks}/{}/children", task.as_raw_pid())).ok()
    });
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(number).collect::<Vec<_>>())
        .collect()
}

/// The entries of a directory that are numbers.
fn numbers(directory: &str) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    entries.filter_map(|entry| number(entry.ok()?.file_name().to_str()?)).collect()
}

fn number(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}
