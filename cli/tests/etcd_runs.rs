//! The program on a real etcd.
#![cfg(target_os = "linux")]

mod scene;

use std::time::{Duration, Instant};

use fencelock_tests::etcd::EtcdServer;
use rustix::process::Signal;
use scene::Scene;
use serde_json::{Value, json};

#[test]
fn runs_are_seen_and_listed() {
    let (scene, server) = (Scene::new(), EtcdServer::start_with_rights());
    let url = server.url_with_rights().to_string();
    let run = scene.start(&[
        "run",
        "--lock",
        "it",
        "--label",
        "night",
        "--url",
        &url,
        "--",
        "sh",
        "-c",
        "echo held; read -r _",
    ]);
    assert_eq!(run.line(), "held");
    let tried = scene.run(&["run", "--lock", "it", "--no-wait", "--url", &url, "--", "true"]);
    assert_eq!(tried.code, Some(75), "{}", tried.err);
    let seen = scene.run(&["inspect", "it", "-o", "json", "--url", &url]);
    let seen: Value = serde_json::from_str(&seen.out).unwrap();
    assert_eq!(seen["holder"]["label"], "night", "{seen}");
    let list = scene.run(&["ls", "-o", "json", "--url", &url]);
    let all: Value = serde_json::from_str(&list.out).unwrap();
    assert_eq!((&all[0]["name"], all.as_array().unwrap().len()), (&json!("it"), 1), "{all}");
    assert!(!list.err.contains("hunter2"), "{}", list.err);
}

/// A run's session is as long as its lease: whoever waits for a dead one waits no longer than that.
#[test]
fn a_killed_run_is_followed_within_its_lease() {
    let (scene, server) = (Scene::new(), EtcdServer::start());
    let url = server.url("p").to_string();
    let words = ["run", "--lock", "it", "--ttl", "2s", "--url", &url, "--"];
    let run = scene.start(&[&words[..], &["sh", "-c", "echo held; read -r _"]].concat());
    assert_eq!(run.line(), "held");
    run.signal(Signal::KILL);
    let began = Instant::now();
    let next = scene.run(&[&words[..], &["true"]].concat());
    assert_eq!(next.code, Some(0), "{}", next.err);
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
    let refused =
        scene.run(&["run", "--lock", "it", "--ttl", "1500ms", "--url", &url, "--", "true"]);
    assert_eq!(refused.code, Some(78), "{}", refused.err);
    assert!(refused.err.contains("whole seconds"), "{}", refused.err);
}

#[test]
fn the_demo_holds_on_etcd() {
    let (scene, server) = (Scene::new(), EtcdServer::start());
    scene.demo_holds(server.url("demo").as_str());
}
