//! A command on a terminal: it reads, Ctrl-C and Ctrl-Z are its own, and the shell's job control works.

#![cfg(target_os = "linux")] // `setsid --ctty` is util-linux's.

use crate::scene;

use scene::Scene;
use scene::shell::Shell;

#[test]
fn the_command_reads_and_the_shell_has_its_job_control() {
    let scene = Scene::new();
    let mut shell = Shell::new(&scene);
    shell.press("\"$FENCELOCK\" run it -- sh -c 'grep SigBlk /proc/self/status; exec cat'\n");
    // What lends the terminal is not inherited.
    shell.see("SigBlk:\t0000000000000000");
    shell.press("one\n");
    shell.see("one");
    shell.press("\x1a");
    shell.see("Stopped");
    shell.press("echo the prompt' 'is back\n");
    shell.see("the prompt is back");
    assert_eq!(scene.inspect("it")["state"], "held");
    shell.press("fg\n");
    shell.press("two\n");
    shell.see("two");
    shell.press("\x04");
    shell.press("echo code' '$?\n");
    shell.see("code 0");
    assert_eq!(scene.inspect("it")["state"], "free");
}

#[test]
fn ctrl_c_ends_the_command_and_not_the_script() {
    let scene = Scene::new();
    let mut shell = Shell::new(&scene);
    shell.press("\"$FENCELOCK\" run it -- sh -c 'echo begun; exec sleep 1000'; echo code' '$?\n");
    shell.see("begun");
    shell.press("\x03");
    shell.see("code 130");
    assert_eq!(scene.inspect("it")["state"], "free");
}

#[test]
fn a_waiter_leaves_the_queue_at_ctrl_c() {
    let scene = Scene::new();
    let (_holder, _) = scene.hold(&[], "echo held; cat");
    let mut shell = Shell::new(&scene);
    shell.press("\"$FENCELOCK\" run it -- echo ran; echo code' '$?\n");
    scene.until_waiters(1);
    shell.press("\x03");
    shell.see("code 130");
    scene.until_waiters(0);
}

/// A background job that reads is stopped, as every other, and goes on in the foreground.
#[test]
fn a_background_job_does_not_take_the_terminal() {
    let scene = Scene::new();
    let mut shell = Shell::new(&scene);
    shell.press("\"$FENCELOCK\" run it -- sh -c 'echo begun; read line; echo got $line' &\n");
    shell.see("begun");
    shell.press("echo still' 'the shell\n");
    shell.see("still the shell");
    scene::until(|| {
        let job = scene.inspect("it")["holder"]["pid"].as_u64();
        job.is_some_and(|pid| scene::process_state(u32::try_from(pid).unwrap()) == Some('T'))
    });
    shell.press("fg\n");
    shell.press("hello\n");
    shell.see("got hello");
}
