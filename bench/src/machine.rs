//! The conditions of the figures: the machine, its load, and how much of it this process uses.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::time::{ClockId, clock_gettime};

/// Processor time this process has used, all threads, user and system: the same sum as `utime + stime` of
/// `/proc/self/stat`, without its rounding to hundredths of a second.
pub(crate) fn own_cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Resident memory of this process.
pub(crate) fn resident_mb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(0.0);
    kilobytes / 1024.0
}

/// The core a program is kept on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Core(pub usize);

/// Where the server runs.
pub(crate) const SERVER: Core = Core(0);
/// Where all that is measured runs.
pub(crate) const CLIENT: Core = Core(1);

/// `program`, kept on one core if there are two and `taskset` is installed.
pub(crate) fn pinned(core: Core, program: &Path) -> Command {
    let pinning = pinning(core);
    let Some((first, words)) = pinning.split_first() else { return Command::new(program) };
    let mut command = Command::new(first);
    command.args(words).arg(program);
    command
}

/// The words before a program that keep it on this core; none if that cannot be.
pub(crate) fn pinning(core: Core) -> Vec<String> {
    if !can_pin() {
        return Vec::new();
    }
    vec!["taskset".to_owned(), "-c".to_owned(), core.0.to_string()]
}

fn can_pin() -> bool {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    cores > 1 && Command::new("taskset").arg("-V").output().is_ok_and(|out| out.status.success())
}

/// One line that says what the figures were measured on.
pub(crate) fn line() -> String {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.and_then(|model| model.split(": ").nth(1)).unwrap_or("unknown processor");
    let cores = cpus.lines().filter(|line| line.starts_with("processor")).count();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("?").to_owned();
    let pinning = if can_pin() { "server on core 0, clients on core 1" } else { "not pinned" };
    format!("{model}, {cores} cores, Linux {}, load {load}, {pinning}", kernel.trim())
}
