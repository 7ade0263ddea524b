//! The program on a real server of each store beside Redis, with a user and a password; on a file that stays locked.
#![cfg(target_os = "linux")]

use crate::scene;

use std::time::{Duration, Instant};

use fencelock_tests::etcd::EtcdServer;
use fencelock_tests::postgres::PostgresServer;
use fencelock_tests::zookeeper::ZookeeperServer;
use rustix::process::Signal;
use scene::Scene;
use serde_json::{Value, json};

#[test]
fn all_goes_well_on_etcd() {
    let server = EtcdServer::start_with_rights();
    all_goes_well(server.url_with_rights().as_str());
}

#[test]
fn all_goes_well_on_zookeeper() {
    let server = ZookeeperServer::start();
    all_goes_well(&format!("zookeeper://clerk:hunter2@127.0.0.1:{}/p", server.port()));
}

#[test]
fn all_goes_well_on_postgres() {
    let server = PostgresServer::start();
    server.place("secret");
    all_goes_well(&format!("{}?create=true", server.url("secret:hunter2")));
}

fn all_goes_well(url: &str) {
    let scene = Scene::new();
    runs_are_seen_and_listed(&scene, url);
    a_killed_run_is_followed_within_its_lease(&scene, url);
}

fn runs_are_seen_and_listed(scene: &Scene, url: &str) {
    let words = ["run", "it", "--url", url];
    let script = ["--info", "night", "--", "sh", "-c", "echo held; read -r _"];
    let run = scene.start(&[&words[..], &script].concat());
    assert_eq!(run.line(), "held");
    let tried = scene.run(&[&words[..], &["--no-wait", "--", "true"]].concat());
    assert_eq!(tried.code, Some(75), "{}", tried.err);
    let seen = scene.run(&["inspect", "it", "-o", "json", "--url", url]);
    let seen: Value = serde_json::from_str(&seen.out).unwrap();
    assert_eq!(seen["holder"]["info"], "night", "{seen}");
    let list = scene.run(&["ls", "-o", "json", "--url", url]);
    let all: Value = serde_json::from_str(&list.out).unwrap();
    assert_eq!((&all[0]["name"], all.as_array().unwrap().len()), (&json!("it"), 1), "{all}");
    for shown in [tried, list, run.finish()] {
        assert!(!format!("{}{}", shown.out, shown.err).contains("hunter2"), "{}", shown.err);
    }
}

/// Where a lock lives with a session, that of a run is as long as its lease: whoever waits for a dead one waits no longer than that.
fn a_killed_run_is_followed_within_its_lease(scene: &Scene, url: &str) {
    let words = ["run", "it", "--ttl", "2s", "--url", url, "--"];
    let run = scene.start(&[&words[..], &["sh", "-c", "echo held; read -r _"]].concat());
    assert_eq!(run.line(), "held");
    run.signal(Signal::KILL);
    let began = Instant::now();
    let next = scene.run(&[&words[..], &["true"]].concat());
    assert_eq!(next.code, Some(0), "{}", next.err);
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
}

#[test]
fn a_store_that_cannot_be_reached_is_69() {
    let scene = Scene::new();
    let database = scene.database();
    scene.run(&["ls"]);
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    let stalled = format!("{}?timeout=200ms", scene.url());
    let run = scene.run(&["run", "it", "--url", &stalled, "--wait", "3s", "--", "echo", "ran"]);
    assert_eq!((run.code, run.out.as_str()), (Some(69), ""), "{}", run.err);
    // It says why it waits, and at the end why it gave up.
    let lines: Vec<&str> = run.err.lines().collect();
    let locked = |line: &&str| line.starts_with("fencelock: unavailable: the database is locked");
    assert!(lines.len() == 2 && lines.iter().all(locked), "{}", run.err);
    assert!(lines[0].ends_with("; still waiting"), "{}", run.err);
}
