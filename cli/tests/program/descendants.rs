//! Whatever the command started ends with the lock, in whatever process group or session it is.

#![cfg(target_os = "linux")] // The tests look at processes through /proc.

use crate::scene;

use std::fs;
use std::time::SystemTime;

use rustix::process::{Pid, Signal, kill_process};
use scene::{Running, Scene, is_alive, lease_end, process_state, until};

/// Says that it works, and goes on for a minute, whatever it is told.
const STUBBORN: &str = "trap '' TERM HUP INT
    exec 9> working; flock -s 9
    echo working
    for beat in $(seq 1200); do sleep 0.05; done";

/// Starts a child every ten milliseconds, for a minute at most.
const BREEDER: &str = "trap '' TERM HUP INT
    exec 9> working; flock -s 9
    echo working
    for child in $(seq 6000); do sleep 0.5 & sleep 0.01; done";

/// Ends after ten milliseconds, and starts its successor before that.
const HOPPER: &str = "trap '' TERM HUP INT
    [ \"$1\" ] || { exec 9> working; flock -s 9; echo working; }
    [ ${#1} -lt 3000 ] && { sleep 0.01; sh worker x$1 & }
    exit";

/// How a command comes to have a descendant that is not of its process group, and what that does.
const COMMANDS: [(&str, &str, &str); 8] = [
    ("a group of its own", STUBBORN, "timeout 50 sh worker; true"),
    ("a session of its own", STUBBORN, "setsid --wait sh worker; true"),
    ("the command's own session", STUBBORN, "exec setsid --wait sh worker"),
    ("an orphan", STUBBORN, "setsid sh -c 'sh worker & ' ; exec sleep 60"),
    (
        "an orphan of an orphan",
        STUBBORN,
        "setsid sh -c 'setsid sh -c \"sh worker & \" & ' ; exec sleep 60",
    ),
    ("job control", STUBBORN, "exec bash -c 'set -m; sh worker & wait'"),
    ("one that breeds", BREEDER, "setsid --wait sh worker; true"),
    ("one that leaps from process to process", HOPPER, "setsid sh worker & exec sleep 60"),
];

/// Whether somebody works. All who do have the file open that the first of them has locked, and no look at the list of
/// processes would see every one.
fn is_worked(scene: &Scene) -> bool {
    fs::File::open(scene.path("working")).unwrap().try_lock().is_err()
}

/// Starts a command that has a worker, and waits until that works.
fn work(options: &[&str], worker: &str, command: &str) -> (Scene, Running) {
    let scene = Scene::new();
    fs::write(scene.path("worker"), worker).unwrap();
    let (run, line) = scene.hold(options, command);
    assert_eq!(line, "working");
    (scene, run)
}

/// Waits until nobody works; answers when that was.
fn idle(scene: &Scene) -> SystemTime {
    until(|| !is_worked(scene));
    SystemTime::now()
}

/// Each was dead before its lease ended. A machine that stands still may be late for one of them, outside of a full run.
fn assert_in_time(seen: &[(&str, SystemTime, SystemTime)]) {
    let late: Vec<_> = seen.iter().filter(|(_, dead, end)| dead >= end).collect();
    let allowed = usize::from(!fencelock_tests::in_full());
    assert!(late.len() <= allowed, "dead, and the end of the lease: {late:?}");
}

#[test]
fn descendants_are_dead_before_the_lease_ends() {
    let mut seen = Vec::new();
    for (what, worker, command) in COMMANDS {
        let (scene, run) = work(&["--ttl", "4s"], worker, command);
        let database = scene.database();
        database.execute_batch("BEGIN IMMEDIATE").unwrap();
        let (end, dead) = (lease_end(&database), idle(&scene));
        seen.push((what, dead, end));
        database.execute_batch("COMMIT").unwrap();
        assert_eq!(run.finish().code, Some(79), "{what}");
        assert!(!is_worked(&scene), "{what}");
    }
    assert_in_time(&seen);
}

#[test]
fn descendants_die_with_a_killed_supervisor() {
    for (what, worker, command) in COMMANDS {
        let (scene, run) = work(&["--ttl", "5s"], worker, command);
        let end = lease_end(&scene.database());
        run.signal(Signal::KILL);
        let dead = idle(&scene);
        assert!(dead < end, "{what}: dead {dead:?}, end {end:?}");
        run.silence();
        assert!(!is_worked(&scene), "{what}");
    }
}

#[test]
fn descendants_do_not_outlive_the_lease_of_a_frozen_supervisor() {
    let mut seen = Vec::new();
    for (what, worker, command) in COMMANDS {
        let (scene, run) = work(&["--ttl", "2s"], worker, command);
        let database = scene.database();
        run.signal(Signal::STOP);
        let dead = idle(&scene);
        seen.push((what, dead, lease_end(&database)));
        run.signal(Signal::CONT);
        assert_eq!(run.finish().code, Some(79), "{what}");
    }
    assert_in_time(&seen);
}

/// The guardian that replaces another is not among the command's ancestors.
#[test]
fn descendants_die_with_supervisor_and_guardian() {
    let stubborn = COMMANDS.into_iter().filter(|(_, worker, _)| *worker == STUBBORN);
    for (what, worker, command) in stubborn {
        let (scene, run) = work(&["--ttl", "10s"], worker, command);
        let next = run.kill_guardian();
        // It goes there when it has looked who is there.
        until(|| fs::read_link(format!("/proc/{next}/cwd")).is_ok_and(|of| of == *"/"));
        assert!(is_worked(&scene), "{what}: it goes on without its guardian");
        let end = lease_end(&scene.database());
        run.signal(Signal::KILL);
        let dead = idle(&scene);
        assert!(dead < end, "{what}: dead {dead:?}, end {end:?}");
        run.silence();
    }
}

#[test]
fn a_command_that_lost_its_guardian_has_its_exit_code() {
    let scene = Scene::new();
    let (mut run, _) = scene.hold(&[], "echo ready; cat; exit 7");
    run.kill_guardian();
    drop(run.input());
    let run = run.finish();
    assert_eq!((run.code, run.err.as_str()), (Some(7), ""));
}

/// The command itself ends as soon as it is told; what it started has its time.
#[test]
fn descendants_are_told_and_have_their_time_to_end() {
    let worker = "trap 'sleep 0.1; echo cleaned; exit' TERM
        echo working
        while :; do sleep 0.02; done";
    for command in ["timeout 50 sh worker; true", "setsid --wait sh worker; true"] {
        let (scene, run) = work(&["--ttl", "12s"], worker, command);
        let database = scene.database();
        database.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert_eq!(run.line(), "cleaned");
        database.execute_batch("COMMIT").unwrap();
        let run = run.finish();
        assert_eq!(run.code, Some(79));
        assert!(!run.err.contains("killed"), "{}", run.err);
    }
}

/// The supervisor is asked to end, and so are all, in whatever group: the lock stays for them until they have.
#[test]
fn descendants_are_asked_to_end_with_the_command_and_keep_the_lock_until_then() {
    // `timeout` passes on what it hears, so that it may come twice.
    let worker = "trap 'trap \"\" TERM INT; echo ending; sleep 0.5; echo cleaned; exit' TERM INT
        echo working
        while :; do sleep 0.02; done";
    for command in ["timeout 50 sh worker; true", "setsid --wait sh worker; true"] {
        for signal in [Signal::TERM, Signal::INT] {
            let (scene, run) = work(&[], worker, command);
            run.signal(signal);
            assert_eq!(run.line(), "ending", "{command}");
            assert_eq!(scene.inspect("it")["state"], "held", "{command}");
            assert_eq!(run.line(), "cleaned", "{command}");
            let code = run.finish().code;
            assert!(code.is_some_and(|code| signal != Signal::TERM || code == 143), "{code:?}");
            assert_eq!(scene.inspect("it")["state"], "free", "{command}");
        }
    }
}

/// A descendant that does not end is killed; it would work on without the lock.
#[test]
fn descendants_that_do_not_end_when_asked_are_killed() {
    let (scene, run) = work(&[], STUBBORN, "timeout 50 sh worker; true");
    run.signal(Signal::TERM);
    idle(&scene);
    assert_eq!(run.finish().code, Some(143));
    assert_eq!(scene.inspect("it")["state"], "free");
}

/// At a normal end what was left in the background goes on, whatever its group.
#[test]
fn descendants_in_the_background_go_on_without_the_lock() {
    let scene = Scene::new();
    fs::write(scene.path("worker"), STUBBORN).unwrap();
    let script = "for start in setsid ''; do $start sh worker 2>&1 & echo $! >> pids; done > said
        until [ $(grep -c working said) = 2 ]; do sleep 0.01; done";
    let run = scene.run(&["run", "it", "--", "sh", "-c", script]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert_eq!(scene.inspect("it")["state"], "free");
    for pid in fs::read_to_string(scene.path("pids")).unwrap().lines() {
        assert!(is_alive(pid.parse().unwrap()));
        kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    }
    // What they wait for, for another moment.
    idle(&scene);
}

/// Orphans are adopted, and nobody else waits for them.
#[test]
fn no_orphan_stays_a_zombie() {
    let scene = Scene::new();
    let script =
        "for orphan in 1 2 3; do sh -c 'sh -c \"echo \\$\\$; sleep 0.05\" & '; done; exec cat";
    let (run, first) = scene.hold(&[], script);
    let orphans = [first, run.line(), run.line()].map(|pid| pid.parse::<u32>().unwrap());
    until(|| orphans.iter().all(|pid| process_state(*pid).is_none()));
    assert_eq!(run.finish().code, Some(0));
}
