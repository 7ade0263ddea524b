//! A reply that is cut in the middle, as users meet it: an error that says what to do, nothing lost that is held, and
//! nothing left behind. What stands in the log of it, and what does not.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fencelock::{Client, Code, Guard, Released, Stats};
use fencelock_tests::bare::PATIENCE;
use fencelock_tests::proxy::Proxy;
use fencelock_tests::servers::RedisServer;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const TTL: Duration = Duration::from_secs(3);
/// So much of a reply arrives.
const BYTES: usize = 3;

/// A client whose replies can be cut, and one that looks on.
struct Scene {
    client: Client,
    other: Client,
    proxy: Proxy,
    server: RedisServer,
}

impl Scene {
    async fn new() -> Self {
        let server = RedisServer::start();
        let proxy = Proxy::before(server.port()).await;
        let connect = async |url: url::Url| {
            let client = Client::builder().option("ttl", "3s").connect(url.as_str()).await;
            client.expect("the server takes clients")
        };
        let (client, other) = (connect(proxy.url()).await, connect(server.url()).await);
        Self { client, other, proxy, server }
    }

    /// How many connections the server has seen.
    fn connections(&self) -> u64 {
        let stats = self.server.info("stats");
        let line = stats.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
        line.and_then(|count| count.trim().parse().ok()).expect("the server counts")
    }

    /// Cuts the next reply, and waits until it was.
    async fn cut<T>(&self, work: impl Future<Output = T>) -> T {
        let before = self.connections();
        self.proxy.cut_after(BYTES);
        let done = work.await;
        // The asker's own connections are counted too: one for each look.
        let mut looks = 1;
        until("the client comes again", async || {
            looks += 1;
            self.connections() - before >= looks
        })
        .await;
        done
    }

    /// Nobody holds, nobody waits, and the client carries nothing.
    async fn rests(&self) {
        until("the lock is free", async || {
            let seen = self.other.lock("orders").inspect().await.expect("it answers");
            seen.holders.is_empty() && seen.waiters.is_empty()
        })
        .await;
        until("the client rests", async || self.client.stats() == Stats::default()).await;
        let guard = self.other.lock("orders").try_acquire().await.unwrap().expect("it is free");
        guard.release().await.check().unwrap();
    }
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let give_up = Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(Instant::now() < give_up, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("it ends")
}

#[tokio::test]
async fn an_acquire_whose_reply_is_cut_is_undone() {
    let scene = Scene::new().await;
    let lock = scene.client.lock("orders");
    // A try is made once more, on a new connection.
    let guard = scene
        .cut(lock.try_acquire())
        .await
        .unwrap()
        .expect("the grant that got lost was given back");
    guard.release().await.check().unwrap();
    scene.rests().await;
    // Who waits does not learn of it: the grant that got lost is given back, and asked for anew.
    let guard = scene.cut(in_time(lock.acquire())).await.unwrap();
    assert!(guard.is_held());
    guard.release().await.check().unwrap();
    scene.rests().await;
}

/// Neither the connection's end nor the lease's frees the lock here: the release has to be repeated.
#[tokio::test]
async fn b05_a_release_that_never_arrived_is_repeated() {
    let scene = Scene::new().await;
    let guard = scene.client.lock("orders").ttl(20 * PATIENCE).acquire().await.unwrap();
    scene.proxy.cut_requests();
    assert_eq!(guard.release().await, Released::Unconfirmed);
    scene.rests().await;
}

#[tokio::test]
async fn a_release_whose_reply_is_cut_is_confirmed_later() {
    let scene = Scene::new().await;
    let guard = scene.client.lock("orders").acquire().await.unwrap();
    assert_eq!(scene.cut(guard.release()).await, Released::Unconfirmed);
    scene.rests().await;
}

#[tokio::test]
async fn a_renewal_whose_reply_is_cut_is_sent_again() {
    let scene = Scene::new().await;
    let guard = scene.client.lock("orders").acquire().await.unwrap();
    let token = guard.token();
    scene.cut(tokio::time::sleep(2 * TTL)).await;
    assert!(guard.is_held() && guard.token() == token);
    assert!(scene.other.lock("orders").try_acquire().await.unwrap().is_none());
    assert_eq!(guard.release().await, Released::Released);
    scene.rests().await;
}

#[tokio::test]
async fn a_hand_over_that_is_cut_reaches_the_waiter_all_the_same() {
    let scene = Scene::new().await;
    let queue = async |holder: &Client, waiter: &Client| -> (Guard, _) {
        let guard = holder.lock("orders").acquire().await.unwrap();
        let waiting = tokio::spawn(waiter.lock("orders").acquire());
        until("it waits", async || {
            !scene.other.lock("orders").inspect().await.unwrap().waiters.is_empty()
        })
        .await;
        (guard, waiting)
    };
    // The push to the waiter.
    let (guard, waiting) = queue(&scene.other, &scene.client).await;
    let first = guard.token();
    let next = scene.cut(async {
        guard.release().await.check().unwrap();
        in_time(waiting).await.unwrap().unwrap()
    });
    let next = next.await;
    assert!(next.is_held() && next.token() > first);
    next.release().await.check().unwrap();
    scene.rests().await;
    // The reply to the one who releases.
    let (guard, waiting) = queue(&scene.client, &scene.other).await;
    assert_eq!(scene.cut(guard.release()).await, Released::Unconfirmed);
    in_time(waiting).await.unwrap().unwrap().release().await.check().unwrap();
    scene.rests().await;
}

#[tokio::test]
async fn a_host_that_nobody_knows_is_named() {
    let builder = Client::builder().option("connect_timeout", "3s");
    let url = "redis://me:hunter2@no-such-host.invalid:7000";
    let refused = in_time(builder.connect(url)).await.map(|_| ()).unwrap_err();
    assert_eq!((refused.code(), refused.retryable()), (Code::Unavailable, true), "{refused}");
    assert_eq!(refused.fields()["server"], "no-such-host.invalid:7000");
    assert!(!format!("{refused} {refused:?}").contains("hunter2"));
}

/// Keeps what is logged, whoever logs it.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Log {
    fn note(&self, metadata: &Metadata<'_>, record: impl FnOnce(&mut Line)) {
        let mut line = Line(format!("{} {}: ", metadata.level(), metadata.target()));
        record(&mut line);
        writeln!(self.0.lock().unwrap(), "{}", line.0).expect("a text takes all");
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.note(span.metadata(), |line| span.record(line));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.note(event.metadata(), |line| event.record(line));
    }

    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{field}={value:?} ").expect("a text takes all");
    }
}

#[test]
fn the_log_tells_of_troubles_and_of_no_password() {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut server = RedisServer::start_with(&["--requirepass", "hunter2"]);
            let url = |password| format!("redis://:{password}@127.0.0.1:{}", server.port());
            let refused = fencelock::connect(&url("hunter3")).await.map(|_| ()).unwrap_err();
            assert_eq!(refused.code(), Code::Auth);
            let client = fencelock::connect(&url("hunter2")).await.unwrap();
            for _ in 0..2 {
                let guard = client.lock("orders").acquire().await.unwrap();
                guard.release().await.check().unwrap();
                // Another test's thread may have met the event first, just before this log was there: then nobody is asked about it.
                tracing::callsite::rebuild_interest_cache();
            }
            server.kill_hard();
            let wait = Duration::from_millis(300);
            client.lock("orders").acquire_within(wait).await.unwrap_err();
            // It comes back with another password.
            server.restart_with(&["--requirepass", "hunter4"]);
            client.lock("orders").acquire_within(wait).await.unwrap_err();
            client.close().await;
        });
    });
    let log = log.0.lock().unwrap();
    for told in ["granted", "trouble", "unavailable"] {
        assert!(log.contains(told), "nothing of {told}: {log}");
    }
    assert!(!log.contains("hunter"), "{log}");
}
