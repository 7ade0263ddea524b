//! The answers of a Redis server that fails over, loads or is busy: a single request reports them, a waiter waits them out, and no
//! hold is lost.

use std::convert::Infallible;
use std::time::Duration;

use fencelock::{Client, Code, Guard, Lock, Released, Run};
use fencelock_tests::servers::RedisServer;
use redis::Connection;

/// Much longer than any of these troubles: what is lost meanwhile was believed to be gone.
const TTL: &str = "6s";
/// How long a trouble lasts at least: a renewal falls into it.
const TROUBLE: Duration = Duration::from_millis(2500);
/// How long somebody works under a lock: what is lost by then was not renewed once the trouble was over.
const WORK: Duration = Duration::from_millis(7500);

const HOUR: Duration = Duration::from_hours(1);

fn run(admin: &mut Connection, words: &str) {
    let mut words = words.split(' ');
    let mut command = redis::cmd(words.next().unwrap());
    command.arg(words.collect::<Vec<_>>()).exec(admin).unwrap();
}

async fn client(url: &str) -> Client {
    let builder = Client::builder().option("ttl", TTL).option("local", 0);
    builder.connect(url).await.unwrap()
}

/// A lock of every kind.
fn kinds(client: &Client, name: &str) -> [Lock; 3] {
    let name = |kind: &str| format!("{name}:{kind}");
    [
        client.read_lock(&name("read")),
        client.write_lock(&name("write")),
        client.semaphore(&name("permit"), 2),
    ]
}

/// The other holds beside the mutex while there is trouble.
struct Others {
    guards: Vec<Guard>,
    all: Guard,
    leader: Guard,
    run: Run,
}

impl Others {
    async fn hold(client: &Client) -> Self {
        let mut guards = Vec::new();
        for lock in kinds(client, "held") {
            guards.push(lock.acquire().await.unwrap());
        }
        let all = client.all(["held:one", "held:two"]).acquire().await.unwrap();
        let leader = client.election("held:leader").campaign().await.unwrap();
        let run = client.job("held:job", HOUR).start().await.unwrap().expect("nobody ran it");
        Self { guards, all, leader, run }
    }

    /// Nothing of it was lost.
    async fn give_back(self) {
        for guard in self.guards {
            let mode = guard.claim().mode();
            assert_eq!(guard.release().await, Released::Released, "{mode:?}");
        }
        assert_eq!(self.all.release().await, Released::Released, "several");
        assert_eq!(self.leader.release().await, Released::Released, "the leader");
        assert_eq!(self.run.succeed().await, Released::Released, "the run");
    }
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
            Ok::<_, Infallible>(claim.token())
        })
        .await
    });
    while asker.lock("held").inspect().await.unwrap().holders.is_empty() {
        tokio::task::yield_now().await;
    }
    let third = client(url.as_str()).await;
    let others = Others::hold(&third).await;
    begin(&mut admin);
    let refused = asker.lock("orders").try_acquire().await.unwrap_err();
    assert_eq!((refused.code(), refused.retryable()), (Code::Unavailable, true), "{refused}");
    // A try is made twice, and the second one may meet what the first one has found out.
    let told = refused.to_string();
    assert!(told.contains(says) || told.contains("READONLY"), "{refused}");
    // A full server lets a script through whose first write needs no memory, and then all that it writes.
    let full = says == "OOM";
    for lock in kinds(&asker, "orders") {
        match lock.try_acquire().await {
            Ok(Some(granted)) if full => granted.release().await.check().unwrap(),
            Ok(tried) => panic!("{tried:?} in spite of {says}"),
            Err(refused) => {
                let seen = (refused.code(), refused.retryable());
                assert_eq!(seen, (Code::Unavailable, true), "{refused}");
            }
        }
    }
    let refused = asker.job("orders", HOUR).start().await.unwrap_err();
    assert_eq!((refused.code(), refused.retryable()), (Code::Unavailable, true), "{refused}");
    let short = asker.lock("orders").acquire_within(Duration::from_millis(100)).await.unwrap_err();
    assert_eq!(short.code(), Code::Unavailable, "{short}");
    let of_kinds = kinds(&asker, "orders").map(|lock| tokio::spawn(lock.acquire()));
    let several = tokio::spawn(asker.all(["orders:one", "orders:two"]).acquire());
    let waiting = tokio::spawn(async move { asker.lock("orders").acquire().await });
    tokio::time::sleep(TROUBLE).await;
    assert!(!waiting.is_finished() && !several.is_finished());
    assert!(full || of_kinds.iter().all(|waiting| !waiting.is_finished()));
    end(&mut admin);
    let guard = tokio::time::timeout(Duration::from_millis(1500), waiting).await;
    let guard = guard.expect("granted soon after the trouble").unwrap().unwrap();
    guard.release().await.check().unwrap();
    for waiting in of_kinds {
        let guard = tokio::time::timeout(Duration::from_millis(1500), waiting).await;
        let guard = guard.expect("granted soon after the trouble").unwrap().unwrap();
        guard.release().await.check().unwrap();
    }
    let guard = tokio::time::timeout(Duration::from_millis(1500), several).await;
    let guard = guard.expect("granted soon after the trouble").unwrap().unwrap();
    guard.release().await.check().unwrap();
    body.await.unwrap().expect("the body ran to its end under the lock");
    others.give_back().await;
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
    // It answers after each kilobyte that it has loaded.
    for number in 0..2000 {
        run(&mut admin, &format!("SET filler:{number} {number}"));
    }
    run(&mut admin, "BGREWRITEAOF");
    while server.info("persistence").contains("aof_rewrite_in_progress:1")
        || server.info("persistence").contains("aof_rewrite_scheduled:1")
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let slow = ["--key-load-delay", "1500", "--loading-process-events-interval-bytes", "1024"];
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
    body.await.unwrap().expect("the body ran to its end under the lock");
}
