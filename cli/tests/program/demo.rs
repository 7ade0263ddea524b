//! The demo, played for real.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use fencelock_tests::ended;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A demo with a directory for temporary files of its own.
struct Show {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    folder: PathBuf,
}

impl Show {
    fn start(name: &str) -> Self {
        Self::start_with(name, &[])
    }

    fn start_with(name: &str, more: &[&str]) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("demo-{name}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_fencelock"))
            // As `cargo demo -- --json --seed 7` hands it on.
            .args(["demo", "--", "--json", "--seed", "7"])
            .args(more)
            .env("TMPDIR", &folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, folder }
    }

    /// The next event; every line has to be one.
    fn event(&mut self) -> Option<Value> {
        let line = self.lines.next()?.unwrap();
        let event: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        assert!(event["event"].is_string() && event["at_ms"].is_u64(), "no event: {line}");
        Some(event)
    }

    fn wait_for(&mut self, name: &str) -> Value {
        loop {
            let event = self.event().unwrap_or_else(|| panic!("the show ended before {name}"));
            if event["event"] == name {
                return event;
            }
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn temporary_files(&self) -> usize {
        std::fs::read_dir(&self.folder).unwrap().count()
    }

    fn wait(&mut self) -> ExitStatus {
        ended::status(&mut self.child)
    }
}

impl Drop for Show {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The state and the parent of a process, if there is one of that number.
fn stat(pid: i32) -> Option<(String, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

fn children(pid: Pid) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").unwrap();
    let numbers = all.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let parent = pid.as_raw_nonzero().get();
    numbers.filter(|&number| stat(number).is_some_and(|stat| stat.1 == parent)).collect()
}

/// Waits until none of the processes runs; those that nobody has reaped yet do not.
fn all_gone(pids: &[i32]) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    let runs = |pid: &i32| stat(*pid).is_some_and(|stat| stat.0 != "Z" && stat.0 != "X");
    while pids.iter().any(runs) {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

#[test]
fn everything_holds() {
    let mut show = Show::start("whole");
    let (mut names, mut last) = (Vec::new(), Value::Null);
    while let Some(event) = show.event() {
        names.push(event["event"].as_str().unwrap().to_owned());
        last = event;
    }
    assert!(show.wait().success(), "{last}");
    assert_eq!((&last["event"], &last["held"]), (&"verdict".into(), &true.into()), "{last}");
    assert!(last["oversold_without_lock"].as_u64().unwrap() > 0, "{last}");
    assert_eq!((&last["sold"], &last["oversold"]), (&1000.into(), &0.into()), "{last}");
    assert!(last["stale_writes_refused"].as_u64().unwrap() >= 1, "{last}");
    assert_eq!(last["frozen_write_refused"], true, "{last}");
    assert_eq!(
        (&last["refused_while_held"], &last["stale_writes_accepted"]),
        (&0.into(), &0.into())
    );
    assert!(last["hand_overs"].as_u64().unwrap() >= 100, "{last}");
    assert_eq!(last["counter"], 1000, "{last}");
    assert_eq!(last["store_stall"], "survived", "{last}");
    assert!(last["p50_wait_ms"].as_f64().unwrap() <= last["p99_wait_ms"].as_f64().unwrap());
    let seen = |name: &str| names.iter().filter(|seen| *seen == name).count();
    for once in ["opened", "killed", "replaced", "stalled", "stall_ended", "frozen", "thawed"] {
        assert_eq!(seen(once), 1, "{once}");
    }
    assert_eq!((seen("sold"), seen("took_over")), (1000, 2));
    assert_eq!(show.temporary_files(), 0);
}

/// The shop's own condition makes the sums come out even where the lock lets two in: the verdict must not believe them.
#[test]
fn a_lock_that_lets_another_one_in_does_not_pass() {
    let mut show = Show::start_with("sabotaged", &["--sabotage"]);
    let last = show.wait_for("verdict");
    assert_eq!(show.wait().code(), Some(1), "{last}");
    assert_eq!((&last["sold"], &last["oversold"]), (&1000.into(), &0.into()), "{last}");
    assert_eq!((&last["counter"], &last["stale_writes_accepted"]), (&1000.into(), &0.into()));
    assert!(last["refused_while_held"].as_u64().unwrap() > 0, "{last}");
    let complaints = last["complaints"].as_array().unwrap();
    let told = complaints.iter().any(|told| told.as_str().unwrap().contains("at once"));
    assert!(told && last["held"] == false, "{last}");
}

#[test]
fn where_there_is_no_terminal_the_show_is_plain_lines() {
    for options in [&["--seed", "7"][..], &["--seed", "7", "--plain"]] {
        let program = env!("CARGO_BIN_EXE_fencelock");
        let show = ended::output(Command::new(program).arg("demo").args(options));
        let said = String::from_utf8(show.stdout).unwrap();
        assert!(show.status.success() && show.stderr.is_empty(), "{said}");
        assert!(!said.contains(|c: char| c.is_control() && c != '\n'), "{said:?}");
        assert!(said.starts_with("   A shop sells 1,000 pieces to 1,400 customers"), "{said}");
        let wide = said.lines().find(|line| line.chars().count() > 100);
        assert_eq!(wide, None);
        for told in
            ["\n1. Without", "\n2. With", "kill -9", "SIGSTOP", "Refused!", "\n3. A counter"]
        {
            assert!(said.contains(told), "no `{told}`: {said}");
        }
        let verdict: Vec<&str> = said.lines().rev().take(9).collect();
        assert!(verdict[8].starts_with("Everything held ("), "{said}");
        assert!(verdict[0].ends_with("1,000 of 1,000"), "{said}");
    }
}

#[test]
fn a_show_that_is_ended_leaves_nothing_behind() {
    let mut show = Show::start("ended");
    show.wait_for("granted");
    let workers = children(show.pid());
    assert_eq!(workers.len(), 12);
    kill_process(show.pid(), Signal::TERM).unwrap();
    while show.event().is_some() {}
    assert_eq!(show.wait().code(), Some(130));
    assert!(all_gone(&workers));
    assert_eq!(show.temporary_files(), 0);
}

#[test]
fn workers_die_with_a_killed_conductor_even_when_frozen() {
    let mut show = Show::start("killed");
    let frozen = show.wait_for("frozen")["pid"].as_i64().unwrap() as i32;
    let workers = children(show.pid());
    assert!(workers.contains(&frozen) && workers.len() == 12, "{frozen} of {workers:?}");
    kill_process(show.pid(), Signal::KILL).unwrap();
    show.wait();
    assert!(all_gone(&workers));
}

#[test]
fn a_store_of_one_process_is_refused() {
    for (url, says) in [("memory:", "twelve"), ("nonsense", "URL"), ("ftp://a", "scheme")] {
        let program = env!("CARGO_BIN_EXE_fencelock");
        let ended = ended::output(Command::new(program).args(["demo", "--url", url]));
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(78), "{url}: {said}");
        assert!(said.contains(says) && ended.stdout.is_empty(), "{url}: {said}");
    }
}
