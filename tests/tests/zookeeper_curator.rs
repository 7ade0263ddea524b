//! Curator's own recipes and fencelock on one path of a real ZooKeeper.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use fencelock_peers::{Family, Lack, Role};
use fencelock_tests::session_store::{PATIENCE, client, nothing_is_left, waiting};
use fencelock_tests::zookeeper::ZookeeperServer;
use serde_json::{Value, json};

/// A program over Curator, which is asked one thing after the other.
struct Curator {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Curator {
    /// `None`: the machine lacks Java or Maven.
    fn start(server: &ZookeeperServer, chroot: &str) -> Option<Self> {
        let target = fencelock_peers::target(Path::new(env!("CARGO_BIN_EXE_actor")));
        let strict = std::env::var_os("FENCELOCK_STRICT").is_some();
        let program = match Family::Java.install(Role::Actor, &target) {
            Ok(program) => program,
            Err(Lack::Language(lack)) if !strict => {
                // Past the harness, which keeps to itself what tests print that pass.
                writeln!(std::io::stdout().lock(), "\nskipped: curator: {lack}").unwrap();
                return None;
            }
            Err(lack) => panic!("curator: {lack}"),
        };
        let mut command = program.with("curator").command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("java can be run");
        let requests = process.stdin.take().expect("it is piped");
        let answers = BufReader::new(process.stdout.take().expect("it is piped"));
        let mut curator = Self { process, requests, answers };
        let options = json!({"ttl": 5000});
        let url = server.url(chroot);
        curator.ask(&json!({"op": "connect", "url": url.as_str(), "options": options}));
        Some(curator)
    }

    fn send(&mut self, request: &Value) {
        let mut request = request.clone();
        request["id"] = json!(1);
        writeln!(self.requests, "{request}").expect("it reads");
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("it answers");
        let answer: Value = serde_json::from_str(&line).expect("it answers in JSON");
        // Whoever waits in vain has nothing.
        let in_time = answer["error"]["code"] != "timeout";
        assert!(answer["error"].is_null() || !in_time, "{answer}");
        answer["ok"].clone()
    }

    fn ask(&mut self, request: &Value) -> Value {
        self.send(request);
        self.answer()
    }

    /// Asks for a lock; within so many milliseconds it has it, or not.
    fn take(&mut self, name: &str, wait: u64, kind: &str) -> Option<Value> {
        self.send_take(name, wait, kind);
        let held = self.answer();
        (!held.is_null()).then_some(held)
    }

    fn send_take(&mut self, name: &str, wait: u64, kind: &str) {
        let options = json!({"wait": wait, "kind": kind, "permits": 2});
        let op = if wait == 0 { "try" } else { "acquire" };
        self.send(&json!({"op": op, "lock": name, "options": options}));
    }

    fn release(&mut self, held: &Value) {
        let released = self.ask(&json!({"op": "release", "guard": held["guard"]}));
        assert_eq!(released, "released");
    }
}

impl Drop for Curator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curator_and_fencelock_exclude_each_other() {
    let server = ZookeeperServer::start();
    let ours = client(&server, "curator").await;
    let Some(mut curator) = Curator::start(&server, "curator") else { return };
    let theirs = curator.take("x", 0, "exclusive").expect("it is free");
    assert!(ours.lock("x").try_acquire().await.unwrap().is_none());
    let next = tokio::spawn(ours.lock("x").acquire_within(PATIENCE));
    waiting(&ours, "x", 1).await;
    curator.release(&theirs);
    let guard = next.await.unwrap().expect("it is served");
    assert!(curator.take("x", 0, "exclusive").is_none());
    curator.send_take("x", 20_000, "exclusive");
    waiting(&ours, "x", 1).await;
    guard.release().await.check().unwrap();
    let theirs = curator.answer();
    assert!(ours.lock("x").try_acquire().await.unwrap().is_none());
    curator.release(&theirs);
    nothing_is_left(&server, "curator").await;
    // Readers share, writers do not.
    let reader = curator.take("rw", 0, "read").expect("it is free");
    let beside = ours.read("rw").acquire().await.unwrap();
    assert!(ours.write("rw").try_acquire().await.unwrap().is_none());
    assert!(curator.take("rw", 0, "write").is_none());
    curator.release(&reader);
    beside.release().await.check().unwrap();
    let write = ours.write("rw").acquire().await.unwrap();
    assert!(curator.take("rw", 0, "read").is_none());
    write.release().await.check().unwrap();
    let upgradeable = ours.upgradeable("rw").acquire().await.unwrap();
    let reader = curator.take("rw", 0, "read").expect("it is a reader to Curator");
    assert!(curator.take("rw", 0, "write").is_none());
    curator.release(&reader);
    drop(upgradeable);
    // Permits are counted together.
    let lease = curator.take("pool", 1000, "permit").expect("two are free");
    let permit = ours.permits("pool", 2).acquire().await.unwrap();
    assert!(ours.permits("pool", 2).try_acquire().await.unwrap().is_none());
    assert!(curator.take("pool", 300, "permit").is_none());
    curator.release(&lease);
    permit.release().await.check().unwrap();
}
