//! The program on a real Redis server.
#![cfg(target_os = "linux")]

use crate::scene;

use fencelock_tests::servers::RedisServer;
use scene::Scene;
use serde_json::{Value, json};

#[test]
fn names_of_a_dialect_are_listed_as_they_are_asked_for() {
    let (scene, server) = (Scene::new(), RedisServer::start());
    let url = format!("{}?dialect=plain:app:", server.url());
    for name in ["one", "two"] {
        let run = scene.run(&["run", name, "--url", &url, "--", "true"]);
        assert_eq!(run.code, Some(0), "{}", run.err);
    }
    let other = scene.run(&["run", "three", "--url", server.url().as_str(), "--", "true"]);
    assert_eq!(other.code, Some(0), "{}", other.err);
    let list = scene.run(&["ls", "-o", "json", "--url", &url]);
    let all: Value = serde_json::from_str(&list.out).unwrap();
    let names: Vec<&Value> = all.as_array().unwrap().iter().map(|lock| &lock["name"]).collect();
    assert_eq!(names, ["one", "two"], "{}", list.err);
    assert!(all[0]["last_token"].as_u64().unwrap() > 0, "{all}");
    let some = scene.run(&["ls", "t", "-o", "json", "--url", &url]);
    assert!(some.out.contains("two") && !some.out.contains("one"), "{}", some.out);
}

#[test]
fn a_lock_that_cannot_be_read_hides_no_other() {
    let (scene, server) = (Scene::new(), RedisServer::start());
    let url = server.url();
    for name in ["good", "spoilt"] {
        let run = scene.run(&["run", name, "--url", url.as_str(), "--", "true"]);
        assert_eq!(run.code, Some(0), "{}", run.err);
    }
    redis::cmd("RPUSH")
        .arg("fencelock:{spoilt}:held:spoilt")
        .arg("a list")
        .exec(&mut server.admin())
        .unwrap();
    let list = scene.run(&["ls", "-o", "json", "--url", url.as_str()]);
    assert_eq!(list.code, Some(0), "{}", list.err);
    let all: Value = serde_json::from_str(&list.out).unwrap();
    assert_eq!((&all[0]["name"], &all[0]["state"]), (&json!("good"), &json!("free")), "{all}");
    assert_eq!((&all[1]["name"], &all[1]["state"]), (&json!("spoilt"), &json!("error")), "{all}");
    assert!(all[1]["error"].as_str().unwrap().starts_with("conflict"), "{all}");
    assert!(scene.run(&["ls", "--url", url.as_str()]).out.contains("conflict"));
}

/// It waits for a server that refuses to write, but does not keep that to itself.
#[test]
fn whoever_waits_for_a_replica_is_told_why() {
    let (scene, server) = (Scene::new(), RedisServer::start());
    let replicate = |of: [&str; 2]| {
        redis::cmd("REPLICAOF").arg(&of).exec(&mut server.admin()).unwrap();
    };
    // Scripts are known to it before, and nobody listens there.
    replicate(["127.0.0.1", "1"]);
    redis::cmd("CONFIG")
        .arg(&["SET", "replica-serve-stale-data", "yes"])
        .exec(&mut server.admin())
        .unwrap();
    let waiting = scene.start(&["run", "it", "--url", server.url().as_str(), "--", "echo", "done"]);
    let line = waiting.error();
    assert!(line.contains("read-only replica") && line.ends_with("still waiting"), "{line}");
    replicate(["NO", "ONE"]);
    assert_eq!(waiting.line(), "done");
    let ended = waiting.finish();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
}

/// A password in `--url` is in nobody's arguments and in the environment of no command.
#[test]
fn a_password_is_shown_by_no_process() {
    let (scene, server) = (Scene::new(), RedisServer::start());
    let mut admin = server.admin();
    redis::cmd("ACL")
        .arg(&["SETUSER", "me", "on", ">hunter2", "~*", "&*", "+@all"])
        .exec(&mut admin)
        .unwrap();
    let mut url = server.url();
    url.set_username("me").unwrap();
    url.set_password(Some("hunter2")).unwrap();
    // The command's parent is the guardian, whose parent is the supervisor.
    let script = "env; for pid in $PPID $(cut -d ' ' -f 4 /proc/$PPID/stat); do
        tr '\\0' ' ' < /proc/$pid/cmdline; echo; tr '\\0' ' ' < /proc/$PPID/environ; echo; done";
    for what in [&["run", "it"][..], &["job", "it", "--every", "1h"]] {
        let words = [what, &["--url", url.as_str(), "--", "sh", "-c", script]].concat();
        let run = scene.run(&words);
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
        assert!(run.out.contains(&format!("{} -- sh -c", what.join(" "))), "{}", run.out);
        assert!(!run.out.contains("hunter2"), "{}", run.out);
    }
}
