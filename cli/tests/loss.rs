//! The command ends before its lock does.

#![cfg(target_os = "linux")] // The tests look at processes through /proc.

mod scene;

use std::time::{Duration, SystemTime};

use rustix::process::Signal;
use scene::{Scene, end_of, is_alive, lease_end};

/// Says when it is told to end, and does not.
const STUBBORN: &str = "trap 'echo told' TERM; echo $$; while :; do sleep 0.02; done";

#[test]
fn a_stubborn_command_is_dead_before_its_lease_ends() {
    let scene = Scene::new();
    let (run, pid) = scene.hold(&["--ttl", "2s"], STUBBORN);
    let pid: u32 = pid.parse().unwrap();
    let database = scene.database();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    let end = lease_end(&database);
    assert_eq!(run.line(), "told");
    let told = SystemTime::now();
    let dead = end_of(pid);
    let spare = end.duration_since(dead).expect("dead before the end of the lease");
    // KILL is due 200 ms before the deadline, which itself is 22 ms before the end of the lease.
    assert!(spare < Duration::from_millis(400), "{spare:?}");
    assert!(end.duration_since(told).unwrap() < Duration::from_millis(900));

    // The store is still stalled: the end does not wait for it for ever.
    let run = run.finish();
    assert_eq!(run.code, Some(79));
    let messages: Vec<&str> = run.err.lines().filter(|line| line.contains("fencelock")).collect();
    assert_eq!(messages.len(), 2, "{}", run.err);
    assert!(messages[0].starts_with("fencelock: lost: the lease ends and is not renewed"));
    assert!(messages[1].starts_with("fencelock: lost: the command did not end in time"));
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
    let next = scene.run(&["run", "--lock", "it", "--wait", "20s", "--", "sh", "-c", script, &pid]);
    assert_eq!((next.out.as_str(), next.code), ("gone\n", Some(0)));
    assert_eq!(run.finish().code, Some(79));
}

#[test]
fn an_obedient_command_has_its_time_to_end() {
    let scene = Scene::new();
    let script = "trap 'echo cleaning; exit 0' TERM; echo ready; while :; do sleep 0.02; done";
    let (run, _) = scene.hold(&["--ttl", "2s"], script);
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
    std::thread::sleep(stalled.duration_since(SystemTime::now()).unwrap_or_default());
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
    let grace = end_of(pid.parse().unwrap()).duration_since(told).unwrap();
    assert!(grace > Duration::from_millis(500) && grace < Duration::from_secs(3), "{grace:?}");
    let run = run.finish();
    assert_eq!(run.code, Some(79));
    assert!(run.err.starts_with("fencelock: lost: the lock is gone from the store"), "{}", run.err);
}

#[test]
fn what_the_command_started_ends_with_the_lock() {
    let scene = Scene::new();
    let script = "(trap '' TERM; exec sleep 1000) & trap 'exit 0' TERM; echo $!; while :; do sleep 0.02; done";
    let (run, grandchild) = scene.hold(&["--ttl", "3s"], script);
    scene.database().execute("DELETE FROM fencelock_lock", []).unwrap();
    assert_eq!(run.finish().code, Some(79));
    assert!(!is_alive(grandchild.parse().unwrap()));
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
    for bound in [&["--max-hold", "1s"][..], &["--ttl", "1s", "-o", "renew=false"]] {
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
    assert!(end_of(pid.parse().unwrap()) < lease_end(&database));
    run.signal(Signal::CONT);
    assert_eq!(run.finish().code, Some(79));
}
