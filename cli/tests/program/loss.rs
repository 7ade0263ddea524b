//! The command ends before its lock does.

#![cfg(target_os = "linux")] // The tests look at processes through /proc.

use crate::scene;

use std::thread;
use std::time::{Duration, SystemTime};

use rustix::process::Signal;
use scene::{Scene, end_of, is_alive, lease_end, lease_end_of};

/// Says at once when it is told to end, and does not.
const STUBBORN: &str = "trap 'echo told' TERM; echo $$; while :; do sleep 1000 & wait; done";

#[test]
fn a_stubborn_command_is_dead_before_its_lease_ends() {
    let scene = Scene::new();
    let (run, pid) = scene.hold(&["--ttl", "4s"], STUBBORN);
    let pid: u32 = pid.parse().unwrap();
    // It is watched from here on: where the machine stands still, the command is killed before it can say a word, and its output ends
    // with the program, which is later.
    let watched = thread::spawn(move || end_of(pid));
    let database = scene.database();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    let end = lease_end(&database);
    assert!(run.next_line().is_none_or(|line| line == "told"));
    let alive = watched.join().unwrap().start;
    assert!(alive < end, "alive {alive:?}, end {end:?}");

    // The store is still stalled: the end does not wait for it for ever.
    let run = run.finish();
    assert_eq!(run.code, Some(79));
    let mut messages = run.err.lines().filter(|line| line.contains("fencelock"));
    let first = messages.next().expect("it says why");
    assert!(first.starts_with("fencelock: lost: the lease ends and is not renewed"), "{first}");
    // Nothing more where the guardian was quicker.
    let killed = "fencelock: lost: the command did not end in time";
    assert!(messages.all(|next| next.starts_with(killed)), "{}", run.err);
}

/// Of five commands, for a machine that stands still may be late for one or two, and a renewal before that may have taken
/// its time: most of them are told and killed when they should be, and by their supervisors.
#[test]
fn a_command_is_told_and_killed_when_it_is_due_and_not_before() {
    let scene = Scene::new();
    let holding = (0..5).map(|number| {
        let name = format!("it {number}");
        let script = ["--", "sh", "-c", STUBBORN];
        let run = scene.start(&[&["run", "--ttl", "2s", &name][..], &script].concat());
        let pid: u32 = run.line().parse().unwrap();
        // Their ends are apart.
        thread::sleep(Duration::from_millis(80));
        (name, run, pid)
    });
    let holding: Vec<_> = holding.collect();
    let database = scene.database();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    let watching = holding.into_iter().map(|(name, run, pid)| {
        let end = lease_end_of(&database, &name);
        let watched = thread::spawn(move || end_of(pid).end);
        thread::spawn(move || {
            let told = run.next_line().map(|line| {
                assert_eq!(line, "told");
                SystemTime::now()
            });
            let dead = watched.join().unwrap();
            // One that was late for both was killed before it could say a word.
            let told = told.unwrap_or(dead);
            let spare = [told, dead].map(|at| end.duration_since(at).unwrap_or_default());
            (spare, run.finish().err)
        })
    });
    let watching: Vec<_> = watching.collect();
    let watched = watching.into_iter().map(|watched| watched.join().unwrap());
    let (spares, errors): (Vec<_>, Vec<_>) = watched.unzip();
    let median = |which: usize| {
        let mut spares: Vec<_> = spares.iter().map(|spare: &[Duration; 2]| spare[which]).collect();
        spares.sort_unstable();
        spares[2]
    };
    // The deadline is 22 ms before the end. TERM is due a quarter of the lease before it, KILL 200 ms; the guardian would
    // kill 100 ms before it.
    // Beside other parts of a run only the promise is asked for: not before it is due, and before the deadline.
    let millis = Duration::from_millis;
    let full = fencelock_tests::in_full();
    let (told, killed) = if full { (450, 150) } else { (22, 22) };
    assert!((millis(told)..millis(570)).contains(&median(0)), "told: {spares:?}");
    assert!((millis(killed)..millis(270)).contains(&median(1)), "killed: {spares:?}");
    assert!(spares.iter().any(|[told, dead]| told > dead), "none was told: {spares:?}");
    if !full {
        return;
    }
    let by_supervisor = |err: &&String| err.contains("the command did not end in time");
    assert!(errors.iter().filter(by_supervisor).count() >= 3, "{errors:?}");
}

#[test]
fn whoever_comes_next_finds_the_command_gone() {
    let scene = Scene::new();
    let (run, pid) = scene.hold(&["--ttl", "1s"], STUBBORN);
    let database = scene.database();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    end_of(pid.parse().unwrap());
    database.execute_batch("COMMIT").unwrap();
    let script = "kill -0 $0 2>/dev/null && echo alive || echo gone";
    let next = scene.run(&["run", "it", "--wait", "20s", "--", "sh", "-c", script, &pid]);
    assert_eq!((next.out.as_str(), next.code), ("gone\n", Some(0)));
    assert_eq!(run.finish().code, Some(79));
}

#[test]
fn an_obedient_command_has_its_time_to_end() {
    let scene = Scene::new();
    let script = "trap 'echo cleaning; exit 0' TERM; echo ready; while :; do sleep 0.02; done";
    let (run, _) = scene.hold(&["--ttl", "12s"], script);
    let database = scene.database();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(run.line(), "cleaning");
    database.execute_batch("COMMIT").unwrap();
    let run = run.finish();
    assert_eq!(run.code, Some(79));
    assert!(!run.err.contains("killed"), "{}", run.err);
}

#[test]
fn a_store_that_recovers_in_time_costs_nothing() {
    let scene = Scene::new();
    let (mut run, _) = scene.hold(&["--ttl", "4s"], "echo ready; cat");
    let database = scene.database();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    let before = lease_end(&database);
    // Beyond the first renewal, which is due after a third of the lease.
    let stalled = before - Duration::from_secs(2);
    thread::sleep(stalled.duration_since(SystemTime::now()).unwrap_or_default());
    database.execute_batch("COMMIT").unwrap();
    scene::until(|| lease_end(&database) > before);
    drop(run.input());
    let run = run.finish();
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
}

#[test]
fn a_lock_gone_from_the_store_ends_the_command_at_once() {
    let scene = Scene::new();
    let (run, pid) = scene.hold(&["--ttl", "6s"], STUBBORN);
    scene.database().execute("DELETE FROM fencelock_lock", []).unwrap();
    assert_eq!(run.line(), "told");
    let told = SystemTime::now();
    let grace = end_of(pid.parse().unwrap()).end.duration_since(told).unwrap();
    // A second; what was told is read a little later than it was said.
    assert!(grace > Duration::from_millis(800) && grace < Duration::from_secs(2), "{grace:?}");
    let run = run.finish();
    assert_eq!(run.code, Some(79));
    assert!(run.err.starts_with("fencelock: lost: the lock is gone from the store"), "{}", run.err);
}

#[test]
fn whatever_the_command_started_is_told_to_end() {
    let scene = Scene::new();
    // The command itself says nothing, and does not end before what it started has said that it heard.
    let script =
        "trap : TERM; (trap 'echo grandchild told; exit' TERM; echo ready; while :; do sleep 0.02; done) &
        while :; do wait; sleep 0.02; done";
    let (run, _) = scene.hold(&["--ttl", "6s"], script);
    scene.database().execute("DELETE FROM fencelock_lock", []).unwrap();
    assert_eq!(run.line(), "grandchild told");
    assert_eq!(run.finish().code, Some(79));
}

#[test]
fn what_the_command_started_ends_with_the_lock() {
    let scene = Scene::new();
    let script = "(trap '' TERM; exec sleep 1000) & trap 'exit 0' TERM; echo $!; while :; do sleep 0.02; done";
    let (run, grandchild) = scene.hold(&["--ttl", "3s"], script);
    scene.database().execute("DELETE FROM fencelock_lock", []).unwrap();
    assert_eq!(run.finish().code, Some(79));
    let grandchild = grandchild.parse().unwrap();
    scene::until(|| !is_alive(grandchild));
}

#[test]
fn a_stopped_command_is_ended_too() {
    let scene = Scene::new();
    let (run, pid) = scene.hold(&["--ttl", "1s"], "echo $$; kill -STOP $$; echo went on");
    let database = scene.database();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    end_of(pid.parse().unwrap());
    database.execute_batch("COMMIT").unwrap();
    assert_eq!(run.finish().code, Some(79));
}

#[test]
fn a_bounded_or_fixed_lease_ends_the_command() {
    let scene = Scene::new();
    for bound in [&["--max-hold", "3s"][..], &["--ttl", "3s", "-o", "renew=false"]] {
        let (run, _) = scene.hold(bound, "echo ready; exec sleep 1000");
        let run = run.finish();
        assert_eq!(run.code, Some(79), "{bound:?}");
        assert_eq!(run.err.lines().count(), 1, "{}", run.err);
    }
}

/// A frozen supervisor cannot end the command: its guardian does.
#[test]
fn a_frozen_supervisor_does_not_let_the_command_outlive_the_lease() {
    let scene = Scene::new();
    let (run, pid) = scene.hold(&["--ttl", "2s"], STUBBORN);
    let database = scene.database();
    run.signal(Signal::STOP);
    assert!(end_of(pid.parse().unwrap()).start < lease_end(&database));
    run.signal(Signal::CONT);
    assert_eq!(run.finish().code, Some(79));
}
