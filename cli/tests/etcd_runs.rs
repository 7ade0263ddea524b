//! The program on a real etcd.
#![cfg(target_os = "linux")]

mod scene;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fencelock_tests::ended;
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

/// The words of `docs/reference/etcd.md`, as they stand, for locks behind the prefix `p`.
fn own_transaction() -> String {
    let manual = include_str!("../../docs/reference/etcd.md");
    let lines: Vec<_> = manual.lines().skip_while(|line| !line.starts_with("key=$(")).collect();
    lines[..2].join("\n").replace("PREFIX", "p")
}

#[test]
fn a_transaction_of_the_users_own_is_refused_to_whoever_is_late() {
    let (scene, server) = (Scene::new(), EtcdServer::start());
    let url = server.url("p").to_string();
    let endpoint = format!("127.0.0.1:{}", server.port());
    let told = |command: &mut Command| {
        let output = ended::output(
            command
                .env("ETCDCTL_API", "3")
                .env("ETCDCTL_ENDPOINTS", &endpoint)
                .stdin(Stdio::null()),
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let script = format!("echo $FENCELOCK_TOKEN; {}", own_transaction());
    let run = ["run", "--lock", "it", "--url", &url, "--", "sh", "-c"];
    let first = told(&mut scene.fencelock(&[&run[..], &[&script]].concat()));
    let (token, rest) = first.split_once('\n').expect("it tells its token");
    assert!(rest.starts_with("SUCCESS"), "{first}");
    assert_eq!(server.ctl(&["get", "--print-value-only", "stock"]).trim(), "7");
    server.ctl(&["del", "stock"]);
    let second = scene.start(&[&run[..], &["echo held; read -r _"]].concat());
    assert_eq!(second.line(), "held");
    let mut late = Command::new("sh");
    late.args(["-c", &own_transaction()]).env("FENCELOCK_LOCK", "it").env("FENCELOCK_TOKEN", token);
    let refused = told(&mut late);
    assert!(refused.starts_with("FAILURE"), "{refused}");
    assert_eq!(server.ctl(&["get", "stock"]), "");
}

#[test]
fn the_demo_holds_on_etcd() {
    let (scene, server) = (Scene::new(), EtcdServer::start());
    scene.demo_holds(server.url("demo").as_str());
}
