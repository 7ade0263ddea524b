//! Tests of the program for etcd alone.
#![cfg(target_os = "linux")]

use crate::scene;

use std::process::{Command, Stdio};

use fencelock_tests::ended;
use fencelock_tests::etcd::EtcdServer;
use scene::Scene;

#[test]
fn a_lease_that_is_no_session_is_refused() {
    let (scene, server) = (Scene::new(), EtcdServer::start());
    let url = server.url("p").to_string();
    let refused = scene.run(&["run", "it", "--ttl", "1500ms", "--url", &url, "--", "true"]);
    assert_eq!(refused.code, Some(78), "{}", refused.err);
    assert!(refused.err.contains("whole seconds"), "{}", refused.err);
}

/// The words of `docs/reference/etcd.md`, as they stand, for locks behind the prefix `p`.
fn own_transaction() -> String {
    let manual = include_str!("../../../docs/reference/etcd.md");
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
    let run = ["run", "it", "--url", &url, "--", "sh", "-c"];
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

/// U14: who only looks leaves neither a lease nor a key.
#[test]
fn u14_a_look_leaves_nothing() {
    let (scene, server) = (Scene::new(), EtcdServer::start());
    let url = server.url("p").to_string();
    for look in [&["inspect", "it"][..], &["ls"]] {
        let seen = scene.run(&[look, &["--url", &url]].concat());
        assert_eq!(seen.code, Some(0), "{}", seen.err);
        assert_eq!(server.keys("p/"), [] as [&str; 0], "{look:?}");
    }
    let leases = server.ctl(&["lease", "list"]);
    assert!(leases.contains("found 0 leases"), "{leases}");
}
