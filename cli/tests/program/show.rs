//! The demo on the full screen of a terminal.

#![cfg(target_os = "linux")] // `setsid --ctty` is util-linux's.

use crate::scene;

use scene::Scene;
use scene::shell::{Shell, pictures};

/// What takes the full screen, and what gives it back.
const TAKES: &str = "\x1b[?1049h";
const GIVES_BACK: &str = "\x1b[?1049l";

#[test]
fn it_plays_on_the_full_screen_and_gives_it_back() {
    let mut shell = Shell::new(&Scene::new());
    shell.press("TERM=xterm \"$FENCELOCK\" demo --seed 7; echo code' '$?\n");
    shell.see(TAKES);
    let pictures = pictures(&shell.see(GIVES_BACK));
    for state in ["Without a lock", "waiting", "KILLED", "FROZEN"] {
        assert!(pictures.iter().any(|picture| picture.contains(state)), "never seen: {state}");
    }
    let mut lanes = pictures.iter().flat_map(|picture| picture.lines());
    let holder = lanes.find(|lane| lane.contains("HOLDING")).expect("somebody held the lock");
    assert!(holder.contains('█') && holder.contains("token "), "{holder}");
    // It stays readable after the screen is given back.
    let told = shell.see("code 0");
    for line in ["kill -9", "Refused!", "Everything held"] {
        assert!(told.contains(line), "no `{line}` in {told}");
    }
    shell.sees_whole_lines();
}

#[test]
fn q_ends_it_and_gives_the_screen_back() {
    let mut shell = Shell::new(&Scene::new());
    shell.press("TERM=xterm \"$FENCELOCK\" demo; echo code' '$?\n");
    shell.see(TAKES);
    shell.see("sold");
    shell.press("q");
    shell.see(GIVES_BACK);
    shell.see("code 130");
    shell.sees_whole_lines();
}

#[test]
fn a_window_too_small_for_the_screen_has_plain_lines() {
    let mut shell = Shell::new(&Scene::new());
    shell.press("stty cols 60; TERM=xterm \"$FENCELOCK\" demo --seed 7; echo code' '$?\n");
    let told = shell.see("code 0");
    assert!(!told.contains('\x1b') && told.contains("Everything held"), "{told:?}");
    let wide = told.lines().find(|line| line.trim_end().chars().count() > 60);
    assert_eq!(wide, None);
}
