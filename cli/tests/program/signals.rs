//! Signals sent to the supervisor reach the command.

#![cfg(target_os = "linux")] // The tests look at processes through /proc.

use crate::scene;

use std::process::Command;

use rustix::process::Signal;
use scene::{Running, Scene, process_state, until};

/// Says which signal came; ends at TERM with 3.
const LISTENER: &str = "
    for signal in INT HUP QUIT USR1 USR2 WINCH; do trap \"echo $signal\" $signal; done
    trap 'echo TERM; exit 3' TERM
    echo $$
    while :; do sleep 0.02; done";

#[test]
fn signals_are_forwarded() {
    let scene = Scene::new();
    let (run, _) = scene.hold(&[], LISTENER);
    for (signal, name) in [
        (Signal::INT, "INT"),
        (Signal::HUP, "HUP"),
        (Signal::QUIT, "QUIT"),
        (Signal::USR1, "USR1"),
        (Signal::USR2, "USR2"),
        (Signal::WINCH, "WINCH"),
        (Signal::TERM, "TERM"),
    ] {
        if scene::is_ignored(signal) {
            continue; // Under nohup, or in a script's background: a shell cannot trap it then.
        }
        run.signal(signal);
        assert_eq!(run.line(), name);
    }
    let run = run.finish();
    assert_eq!(run.code, Some(3));
    assert!(!run.err.contains("fencelock"), "{}", run.err);
    assert_eq!(scene.inspect("it")["state"], "free");
}

#[test]
fn a_signal_that_ends_the_command_is_told_by_the_exit_code() {
    let scene = Scene::new();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::USR1, 138)] {
        if scene::is_ignored(signal) {
            continue;
        }
        let (run, _) = scene.hold(&[], "echo ready; exec sleep 1000");
        run.signal(signal);
        assert_eq!(run.finish().code, Some(code));
        assert_eq!(scene.inspect("it")["state"], "free");
    }
}

#[test]
fn stopped_and_continued_together() {
    let scene = Scene::new();
    // Not a shell: one stopped in the middle of starting something does not count as stopped.
    let (run, pid) = scene.hold(&[], "echo $$; exec sleep 1000");
    let pid: u32 = pid.parse().unwrap();
    run.signal(Signal::TSTP);
    until(|| process_state(run.pid()) == Some('T') && process_state(pid) == Some('T'));
    run.signal(Signal::CONT);
    until(|| process_state(run.pid()) != Some('T') && process_state(pid) != Some('T'));
    run.signal(Signal::TERM);
    assert_eq!(run.finish().code, Some(143));
}

#[test]
fn what_nohup_ignores_stays_ignored() {
    let scene = Scene::new();
    let script = "trap '' HUP; exec \"$FENCELOCK\" run it -- sh -c \"$0\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, LISTENER]).env("FENCELOCK_URL", scene.url());
    shell.env("FENCELOCK", env!("CARGO_BIN_EXE_fencelock"));
    let run = Running::start(&mut shell);
    run.line();
    run.signal(Signal::HUP);
    run.signal(Signal::USR1);
    assert_eq!(run.line(), "USR1");
    run.signal(Signal::TERM);
    assert_eq!(run.finish().out, "TERM\n");
}
