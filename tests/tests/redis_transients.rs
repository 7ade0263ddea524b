//! What a Redis server says while it fails over, loads or is busy: told to who asks once, waited out by who waits, and no
//! reason to lose what is held.

use std::time::Duration;

use fencelock::{Client, Code};
use fencelock_tests::servers::RedisServer;
use redis::Connection;

/// Much longer than any of these troubles: what is lost meanwhile was believed to be gone.
const TTL: &str = "6s";
/// How long a trouble lasts at least: a renewal falls into it.
const TROUBLE: Duration = Duration::from_millis(2500);
/// How long somebody works under a lock: what is lost by then was not renewed once the trouble was over.
const WORK: Duration = Duration::from_millis(7500);

fn run(admin: &mut Connection, words: &str) {
    let mut words = words.split(' ');
    let mut command = redis::cmd(words.next().unwrap());
    command.arg(words.collect::<Vec<_>>()).exec(admin).unwrap();
}

async fn client(url: &str) -> Client {
    let builder = Client::builder().option("ttl", TTL).option("local", 0);
    builder.connect(url).await.unwrap()
}

/// Plays one trouble: `begin` and `end` are what somebody else does to the server.
async fn trouble(
    server: &RedisServer,
    says: &str,
    begin: impl FnOnce(&mut Connection),
    end: impl FnOnce(&mut Connection),
) {
    let url = server.url();
    let (holder, asker) = (client(url.as_str()).await, client(url.as_str()).await);
    let mut admin = server.admin();
    let body = tokio::spawn(async move {
        let lock = holder.lock("held");
        lock.with(async |claim| {
            tokio::time::sleep(WORK).await;
            claim.token()
        })
        .await
    });
    while asker.lock("held").inspect().await.unwrap().holders.is_empty() {
        tokio::task::yield_now().await;
    }
    begin(&mut admin);
    let refused = asker.lock("orders").try_acquire().await.unwrap_err();
    assert_eq!((refused.code(), refused.retryable()), (Code::Unavailable, true), "{refused}");
    assert!(refused.to_string().contains(says), "{refused}");
    let short = asker.lock("orders").acquire_within(Duration::from_millis(100)).await.unwrap_err();
    assert_eq!(short.code(), Code::Unavailable, "{short}");
    let waiting = tokio::spawn(async move { asker.lock("orders").acquire().await });
    tokio::time::sleep(TROUBLE).await;
    assert!(!waiting.is_finished());
    end(&mut admin);
    let guard = tokio::time::timeout(Duration::from_millis(1500), waiting).await;
    let guard = guard.expect("granted soon after the trouble").unwrap().unwrap();
    guard.release().await.check().unwrap();
    body.await.unwrap().expect("the body ran to its end under the lock");
}

#[tokio::test]
async fn readonly_is_waited_out() {
    let server = RedisServer::start();
    let begin = |admin: &mut _| run(admin, "REPLICAOF 127.0.0.1 1");
    trouble(&server, "READONLY", begin, |admin| run(admin, "REPLICAOF NO ONE")).await;
}

#[tokio::test]
async fn masterdown_is_waited_out() {
    let server = RedisServer::start_with(&["--replica-serve-stale-data", "no"]);
    let begin = |admin: &mut _| run(admin, "REPLICAOF 127.0.0.1 1");
    trouble(&server, "MASTERDOWN", begin, |admin| run(admin, "REPLICAOF NO ONE")).await;
}

#[tokio::test]
async fn noreplicas_is_waited_out() {
    let server = RedisServer::start();
    let begin = |admin: &mut _| run(admin, "CONFIG SET min-replicas-to-write 1");
    let end = |admin: &mut _| run(admin, "CONFIG SET min-replicas-to-write 0");
    trouble(&server, "NOREPLICAS", begin, end).await;
}

#[tokio::test]
async fn oom_is_waited_out() {
    let server = RedisServer::start();
    let begin = |admin: &mut _| run(admin, "CONFIG SET maxmemory 1");
    trouble(&server, "OOM", begin, |admin| run(admin, "CONFIG SET maxmemory 0")).await;
}

#[tokio::test]
async fn busy_is_waited_out() {
    let server = RedisServer::start_with(&["--lua-time-limit", "1"]);
    let mut stuck = server.admin();
    let begin = |admin: &mut Connection| {
        std::thread::spawn(move || {
            let ended = redis::cmd("EVAL").arg("while true do end").arg(0).exec(&mut stuck);
            ended.expect_err("it is killed");
        });
        while redis::cmd("PING").exec(admin).is_ok() {}
    };
    trouble(&server, "BUSY", begin, |admin| run(admin, "SCRIPT KILL")).await;
}

/// A restart with much to load; what is held is part of it.
#[tokio::test]
async fn loading_is_waited_out() {
    let mut server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let asker = client(server.url().as_str()).await;
    let holder = client(server.url().as_str()).await;
    let (end, ended) = tokio::sync::oneshot::channel();
    let body = tokio::spawn(async move {
        let lock = holder.lock("held").ttl(Duration::from_secs(20));
        lock.with(async |_| ended.await).await
    });
    while asker.lock("held").inspect().await.unwrap().holders.is_empty() {
        tokio::task::yield_now().await;
    }
    let mut admin = server.admin();
    for number in 0..400 {
        run(&mut admin, &format!("SET filler:{number} {number}"));
    }
    run(&mut admin, "BGREWRITEAOF");
    while server.info("persistence").contains("aof_rewrite_in_progress:1")
        || server.info("persistence").contains("aof_rewrite_scheduled:1")
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let slow = ["--key-load-delay", "5000", "--loading-process-events-interval-bytes", "1024"];
    let keeps = ["--appendonly", "yes", "--appendfsync", "always"];
    server.restart_with(&[&keeps[..], &slow[..]].concat());
    let refused = asker.lock("orders").try_acquire().await.unwrap_err();
    assert_eq!((refused.code(), refused.retryable()), (Code::Unavailable, true), "{refused}");
    let newcomer = Client::builder().connect(server.url().as_str()).await;
    let refused = newcomer.map(|_| ()).unwrap_err();
    assert_eq!((refused.code(), refused.retryable()), (Code::Unavailable, true), "{refused}");
    assert!(refused.to_string().contains("LOADING"), "{refused}");
    let guard = asker.lock("orders").acquire_within(Duration::from_secs(20)).await.unwrap();
    guard.release().await.check().unwrap();
    assert!(asker.lock("held").try_acquire().await.unwrap().is_none());
    end.send(()).unwrap();
    body.await.unwrap().expect("the body ran to its end under the lock").unwrap();
}
