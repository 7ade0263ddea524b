//! `fencelock job`: once in a period, whoever asks, and what is remembered of it.

use crate::scene;

use scene::Scene;

const YEARS: &str = "3650days";

/// The status of the last run, as it lies in the file.
fn status(scene: &Scene) -> String {
    let value: String = scene
        .database()
        .query_row("SELECT value FROM fencelock_cell WHERE name = 'job:it'", [], |row| row.get(0))
        .unwrap();
    let value: serde_json::Value = serde_json::from_str(&value).unwrap();
    value["status"].as_str().unwrap().to_owned()
}

#[test]
fn one_of_many_runs_the_command() {
    let scene = Scene::new();
    let script = "echo ran $FENCELOCK_LOCK $FENCELOCK_TOKEN";
    let nodes: Vec<_> = (0..5)
        .map(|_| scene.start(&["job", "it", "--every", YEARS, "--", "sh", "-c", script]))
        .collect();
    let ended: Vec<_> = nodes.into_iter().map(scene::Running::finish).collect();
    assert!(ended.iter().all(|node| (node.code, &*node.err) == (Some(0), "")));
    let said: String = ended.into_iter().map(|node| node.out).collect();
    let token = said.strip_prefix("ran it ").expect("one of them ran it").trim();
    assert!(token.parse::<u64>().unwrap() > 0, "{said}");
    assert_eq!(status(&scene), "S");
}

#[test]
fn a_command_that_fails_is_not_run_again_in_its_period() {
    let scene = Scene::new();
    let run = || scene.run(&["job", "it", "--every", YEARS, "--", "sh", "-c", "echo ran; exit 7"]);
    let first = run();
    assert_eq!((first.code, &*first.out), (Some(7), "ran\n"));
    assert_eq!(status(&scene), "F");
    let second = run();
    assert_eq!((second.code, &*second.out), (Some(0), ""));
}

#[test]
fn it_says_why_the_command_is_not_run() {
    let scene = Scene::new();
    let run = |every, words: &[&str]| {
        scene.run(&[&["job", "it", "--every", every], words, &["--", "echo", "ran"]].concat())
    };
    assert_eq!(run(YEARS, &["--verbose"]).err, "", "it was run");
    let done = run(YEARS, &["-v"]);
    assert_eq!((done.code, &*done.out), (Some(0), ""));
    assert!(done.err.contains("not run, done: "), "{}", done.err);
    // An instant of today is later than the one of ten years, and comes too soon after that run.
    let soon = run("1day", &["-v"]);
    assert_eq!((soon.code, &*soon.out), (Some(0), ""));
    assert!(soon.err.contains("not run, not_due: "), "{}", soon.err);
    assert_eq!(run(YEARS, &[]).err, "", "nobody asked why");

    let mut long = scene.start(&[
        "job",
        "other",
        "--every",
        YEARS,
        "--info",
        "night",
        "--",
        "sh",
        "-c",
        "echo runs; read -r end",
    ]);
    assert_eq!(long.line(), "runs");
    let running = scene.run(&["job", "other", "--every", YEARS, "-v", "--", "echo", "ran"]);
    assert_eq!((running.code, &*running.out), (Some(0), ""));
    assert!(running.err.contains("not run, running: "), "{}", running.err);
    assert!(running.err.contains("info: night"), "{}", running.err);
    drop(long.input());
    long.finish();
}

#[test]
fn a_command_runs_once_for_each_time_of_a_cron_expression() {
    let scene = Scene::new();
    let run = |zone| {
        let cron = ["--cron", "0 0 29 2 *", "--timezone", zone, "-v"];
        scene.run(&[&["job", "it"][..], &cron, &["--", "echo", "ran"]].concat())
    };
    assert_eq!(run("Europe/Berlin").out, "ran\n");
    let done = run("Europe/Berlin");
    assert!(done.err.contains("not run, done: "), "{}", done.err);
    assert_eq!(run("America/New_York").out, "ran\n", "midnight comes later there");
    let at = |instant| {
        scene.run(&["job", "own", "--every", "1h", "--at", instant, "-v", "--", "echo", "ran"])
    };
    assert_eq!(at("2026-02-28T23:00:00Z").out, "ran\n");
    assert!(at("2026-02-28T23:00:00Z").err.contains("not run, done: "));
}

#[test]
fn a_command_that_takes_too_long_is_ended() {
    let scene = Scene::new();
    let limits = ["--ttl", "10s", "--at-most-for", "8s"];
    let arguments =
        [&["job", "it", "--every", YEARS][..], &limits, &["--", "sleep", "60"]].concat();
    let run = scene.run(&arguments);
    assert_eq!(run.code, Some(79), "{}", run.err);
    assert!(run.err.contains("lost: "), "{}", run.err);
    assert_eq!(status(&scene), "F", "it was ended while the run could still say so");
}

#[test]
fn wrong_words_are_refused() {
    let scene = Scene::new();
    let code = |words: &[&str]| scene.run(&[&["job", "it"], words, &["--", "true"]].concat()).code;
    assert_eq!(code(&[]), Some(64));
    assert_eq!(code(&["--every", "soon"]), Some(64));
    assert_eq!(code(&["--every", "1ms"]), Some(78));
    assert_eq!(code(&["--every", "1h", "-o", "retry_death=true"]), Some(78));
    assert_eq!(code(&["--cron", "0 3 * * *", "--every", "1h"]), Some(64));
    assert_eq!(code(&["--timezone", "UTC", "--every", "1h"]), Some(78));
    assert_eq!(code(&["--cron", "0 25 * * *"]), Some(78));
    assert_eq!(code(&["--every", "1h", "--at", "noon"]), Some(64));
    assert_eq!(code(&["--cron", "0 3 * * *", "--timezone", "Europe/Belin"]), Some(78));
}
