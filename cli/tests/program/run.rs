//! `fencelock run`: what the command sees, exit codes, exclusion and order.

use crate::scene;

use std::time::{Duration, Instant};

use rustix::process::Signal;
use scene::{Scene, until};

/// The time within which a command that is asked to end does so, in the median.
const PROMPT: Duration = Duration::from_millis(200);

#[test]
fn the_command_knows_its_lock_and_token() {
    let scene = Scene::new();
    let script = "echo $FENCELOCK_LOCK; echo $FENCELOCK_TOKEN; cat; echo late >&2";
    let (mut run, name) = scene.hold(&[], script);
    let token: u64 = run.line().parse().unwrap();
    assert_eq!(name, "it");
    assert_eq!(scene.inspect("it")["holder"]["token"], token);
    drop(run.input());
    let run = run.finish();
    assert_eq!((run.code, run.err.as_str()), (Some(0), "late\n"));
    let after = scene.inspect("it");
    assert_eq!(after["state"], "free");
    assert!(after["last_token"].as_u64().unwrap() >= token);
}

#[test]
fn the_lock_is_named_by_an_option_too() {
    let scene = Scene::new();
    for named in [&["it"][..], &["--lock", "it"], &["--lock=it"]] {
        let run = scene.run(&[&["run"], named, &["--", "printenv", "FENCELOCK_LOCK"]].concat());
        assert_eq!((run.code, run.out.as_str()), (Some(0), "it\n"), "{named:?}");
    }
    let run = scene.run(&["run", "--lock=-it", "--", "printenv", "FENCELOCK_LOCK"]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "-it\n"));
}

#[test]
fn input_and_output_are_the_commands_own() {
    use std::io::Write as _;
    let scene = Scene::new();
    let mut run = scene.start(&["run", "it", "--", "tr", "a-z", "A-Z"]);
    run.input().write_all(b"one\ntwo\n").unwrap();
    assert_eq!(run.finish().out, "ONE\nTWO\n");
}

#[test]
fn the_exit_code_is_the_commands() {
    let scene = Scene::new();
    let code = |script: &str| scene.run(&["run", "it", "--", "sh", "-c", script]).code;
    assert_eq!(code("exit 0"), Some(0));
    assert_eq!(code("exit 7"), Some(7));
    assert_eq!(code("exit 255"), Some(255));
    assert_eq!(code("kill -KILL $$"), Some(137));
    assert_eq!(code("kill -SEGV $$"), Some(139));
}

#[test]
fn a_command_that_cannot_start_frees_the_lock() {
    let scene = Scene::new();
    let missing = scene.run(&["run", "it", "--", "no-such-command"]);
    assert_eq!(missing.code, Some(127));
    assert!(missing.err.contains("no command `no-such-command`"), "{}", missing.err);
    let refused = scene.run(&["run", "it", "--", "/"]);
    assert_eq!(refused.code, Some(126));
    assert!(refused.err.contains("`/` cannot be executed"), "{}", refused.err);
    assert_eq!(scene.inspect("it")["state"], "free");
}

#[test]
fn whoever_does_not_wait_long_enough_gets_75() {
    let scene = Scene::new();
    let (_holder, _) = scene.hold(&[], "echo held; cat");
    for patience in [&["--no-wait"][..], &["--wait", "0s"], &["--wait", "150ms"]] {
        let run = scene.run(&[&["run", "it"], patience, &["--", "echo", "ran"]].concat());
        assert_eq!((run.code, run.out.as_str()), (Some(75), ""), "{patience:?}");
        assert!(run.err.starts_with("fencelock: timeout: "), "{}", run.err);
    }
    assert_eq!(scene.inspect("it")["waiters"], serde_json::json!([]));
    assert_eq!(scene.run(&["run", "other", "--no-wait", "--", "true"]).code, Some(0));
}

#[test]
fn waiters_come_one_at_a_time_in_their_order() {
    let scene = Scene::new();
    let (mut holder, _) = scene.hold(&[], "echo held; cat");
    let script = "mkdir section || exit 1; echo $0 >> order; sleep 0.02; rmdir section";
    let mut waiters = Vec::new();
    for number in ["1", "2", "3", "4"] {
        waiters.push(scene.start(&["run", "it", "--", "sh", "-c", script, number]));
        scene.until_waiters(waiters.len());
    }
    assert!(!scene.path("order").exists());
    drop(holder.input());
    assert_eq!(holder.finish().code, Some(0));
    for waiter in waiters {
        let waiter = waiter.finish();
        assert_eq!(waiter.code, Some(0), "{}", waiter.err);
    }
    assert_eq!(std::fs::read_to_string(scene.path("order")).unwrap(), "1\n2\n3\n4\n");
}

/// A lock handed over has a short lease at first; that must not look like one that is about to end.
#[test]
fn a_lock_handed_over_is_held_for_a_whole_lease() {
    let scene = Scene::new();
    let (mut holder, _) = scene.hold(&[], "echo held; cat");
    let waiter = scene.start(&["run", "it", "--ttl", "60s", "--", "sh", "-c", "echo mine; cat"]);
    scene.until_waiters(1);
    drop(holder.input());
    assert_eq!(waiter.line(), "mine");
    assert!(scene.inspect("it")["holder"]["left_ms"].as_u64().unwrap() > 40_000);
    assert_eq!(waiter.finish().code, Some(0));
}

#[test]
fn a_waiter_told_to_end_leaves_the_queue() {
    let scene = Scene::new();
    let (_holder, _) = scene.hold(&[], "echo held; cat");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        if scene::is_ignored(signal) {
            continue; // Under nohup, or in a script's background: `run` respects that.
        }
        let mut took: Vec<_> = (0..5).map(|_| end_a_waiter(&scene, signal, code)).collect();
        took.sort();
        assert!(took[2] <= scene::soon(PROMPT), "{signal:?} ended a waiter after {took:?}");
    }
}

/// Tells a waiter to end, and how long that took.
fn end_a_waiter(scene: &Scene, signal: Signal, code: i32) -> Duration {
    let waiter = scene.start(&["run", "it", "--", "echo", "ran"]);
    scene.until_waiters(1);
    let told = Instant::now();
    waiter.signal(signal);
    let waiter = waiter.finish();
    let took = told.elapsed();
    assert_eq!((waiter.code, waiter.out.as_str()), (Some(code), ""));
    assert_eq!(scene.inspect("it")["waiters"], serde_json::json!([]));
    took
}

#[test]
fn what_the_command_leaves_in_the_background_does_not_hold_the_lock() {
    let scene = Scene::new();
    let script = "sh -c 'echo $$; exec sleep 1000' > pid 2>&1 & sleep 0.05";
    assert_eq!(scene.run(&["run", "it", "--", "sh", "-c", script]).code, Some(0));
    assert_eq!(scene.inspect("it")["state"], "free");
    let pid = std::fs::read_to_string(scene.path("pid")).unwrap().trim().parse().unwrap();
    assert!(scene::is_alive(pid));
    let left = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(left, Signal::KILL).unwrap();
    until(|| !scene::is_alive(pid));
}
