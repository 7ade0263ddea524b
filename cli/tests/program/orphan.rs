//! A supervisor killed with `kill -9` takes the command with it.

#![cfg(target_os = "linux")] // The tests look at processes through /proc.

use crate::scene;

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use scene::{Running, Scene, children_with, end_of, is_alive};

/// A command with a child of its own; neither heeds TERM.
const FAMILY: &str = "trap '' TERM; sleep 1000 & echo $$ $!; wait";

fn pids(line: &str) -> Vec<u32> {
    line.split(' ').map(|pid| pid.parse().unwrap()).collect()
}

#[test]
fn command_and_grandchildren_die_and_the_lock_is_free_after_the_ttl() {
    let scene = Scene::new();
    let (run, family) = scene.hold(&["--ttl", "6s"], FAMILY);
    let guardians = children_with(run.pid(), "__guard");
    assert_eq!(guardians.len(), 1);
    let killed = Instant::now();
    run.signal(Signal::KILL);
    run.silence();
    assert!(killed.elapsed() < Duration::from_secs(3), "{:?}", killed.elapsed());
    for pid in pids(&family).into_iter().chain(guardians) {
        end_of(pid);
    }
    assert_eq!(scene.inspect("it")["state"], "held");
    let next = scene.run(&["run", "it", "--wait", "20s", "--", "true"]);
    assert_eq!(next.code, Some(0));
    assert!(killed.elapsed() < Duration::from_secs(9), "{:?}", killed.elapsed());
    assert_eq!(run.finish().signal, Some(9));
}

/// At whatever moment of its start the supervisor is killed, nobody goes on to hold its output.
#[test]
fn there_is_no_moment_without_a_guardian() {
    let scene = Scene::new();
    scene.run(&["ls"]);
    for moment in 0..24 {
        let name = format!("it-{moment}");
        let run = scene.start(&["run", &name, "--", "sh", "-c", FAMILY]);
        std::thread::sleep(Duration::from_micros(moment * 500));
        run.signal(Signal::KILL);
        run.silence();
    }
}

#[test]
fn a_killed_guardian_is_replaced() {
    let scene = Scene::new();
    let (run, family) = scene.hold(&[], FAMILY);
    run.kill_guardian();
    run.signal(Signal::KILL);
    run.silence();
    for pid in pids(&family) {
        end_of(pid);
    }
}

#[test]
fn the_guardian_heeds_no_signal_and_holds_nothing_open() {
    let scene = Scene::new();
    // The shell gives it a descriptor more, as job servers do.
    let start = |command: &str| {
        let script = format!("exec 7>&1; exec {command} sh -c 'echo $$; exec sleep 1000'");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &script]).env("FENCELOCK_URL", scene.url());
        shell.env("FENCELOCK", env!("CARGO_BIN_EXE_fencelock"));
        let running = Running::start(&mut shell);
        let pid: u32 = running.line().parse().unwrap();
        (running, pid)
    };
    let (_without, alone) = start("");
    let (run, command) = start("\"$FENCELOCK\" run it --");
    let guardian = children_with(run.pid(), "__guard")[0];
    let pid = Pid::from_raw(i32::try_from(guardian).unwrap()).unwrap();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::TSTP] {
        kill_process(pid, signal).unwrap();
    }
    assert!(is_alive(guardian));
    let open = |pid: u32| {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        let mut open: Vec<_> = open.map(|entry| entry.unwrap().file_name()).collect();
        open.sort();
        open
    };
    // What it has open is its own: pipes and what it waits with.
    let of = |pid: u32, descriptor: &str| {
        std::fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).unwrap()
    };
    let inherited = of(command, "7");
    let own = |descriptor: &std::ffi::OsString| of(guardian, descriptor.to_str().unwrap());
    assert!(open(guardian).iter().all(|descriptor| own(descriptor) != inherited));
    for descriptor in ["0", "1", "2"] {
        assert_eq!(of(guardian, descriptor).to_str(), Some("/dev/null"));
    }
    // And the command has what it was given, nothing more.
    assert!(open(alone).contains(&"7".into()));
    assert_eq!(open(command), open(alone));
    run.signal(Signal::KILL);
    run.silence();
}

#[test]
fn no_guardian_is_left_behind() {
    let scene = Scene::new();
    let (mut run, _) = scene.hold(&[], "echo ready; cat");
    let guardian = children_with(run.pid(), "__guard")[0];
    drop(run.input());
    assert_eq!(run.finish().code, Some(0));
    assert!(!is_alive(guardian));
}
