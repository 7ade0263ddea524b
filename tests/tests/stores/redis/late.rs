//! A Redis server whose answers come later than the lease they grant: no wait for ever, and no word of other holders.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fencelock::{Client, Code, Error, EventKind, Reason};
use fencelock_tests::bare::PATIENCE;
use fencelock_tests::proxy::Proxy;
use fencelock_tests::servers::RedisServer;

const TTL: Duration = Duration::from_millis(100);
/// How much later than that every answer comes.
const SLOW: Duration = Duration::from_millis(150);

fn assert_says_late(error: &Error) {
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(error.retryable() && error.message().contains("after the lease had ended"), "{error}");
    assert!(error.message().contains("raise `ttl`"), "{error}");
}

async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("it ends")
}

#[tokio::test]
async fn a_grant_later_than_its_deadline_is_said_to_be_one() {
    let server = RedisServer::start();
    let proxy = Proxy::before(server.port()).await;
    let troubles = Arc::new(Mutex::new(Vec::new()));
    let heard = troubles.clone();
    let client = Client::builder()
        .on_event(move |event| {
            if event.kind == EventKind::Trouble {
                heard.lock().unwrap().extend(event.reason.clone());
            }
        })
        .connect(proxy.url().as_str())
        .await
        .expect("the server takes clients");
    let slow = proxy.slow_replies(SLOW);
    let lock = client.lock("orders").ttl(TTL);
    let both = client.all(["orders", "shelf"]).ttl(TTL);
    assert_says_late(&in_time(lock.try_acquire()).await.unwrap_err());
    assert_says_late(&in_time(both.try_acquire()).await.unwrap_err());
    assert!(troubles.lock().unwrap().is_empty(), "a try has nobody to tell but its caller");
    let wait = Duration::from_secs(3);
    let began = Instant::now();
    assert_says_late(&in_time(lock.acquire_within(wait)).await.unwrap_err());
    assert!(began.elapsed() >= wait);
    assert!(troubles.lock().unwrap()[0].contains("after the lease had ended"), "{troubles:?}");
    assert_says_late(&in_time(both.acquire_within(wait)).await.unwrap_err());
    // Once the answers come in time, the wait that went on ends well, and nothing is left of what came too late.
    let waiting = tokio::spawn(lock.ttl(PATIENCE).acquire());
    drop(slow);
    let guard = in_time(waiting).await.unwrap().expect("it is granted");
    guard.release().await.check().unwrap();
    in_time(both.ttl(PATIENCE).acquire()).await.unwrap().release().await.check().unwrap();
    client.close().await;
}

/// A run that was answered too late is taken back each time, so that its instant is not lost: whoever is answered in time runs it.
#[tokio::test]
async fn a_run_later_than_its_lease_leaves_its_instant_to_others() {
    let server = RedisServer::start();
    let proxy = Proxy::before(server.port()).await;
    let client = fencelock::connect(proxy.url().as_str()).await.expect("the server takes clients");
    let job = client.job("nightly", Duration::from_hours(24)).ttl(TTL);
    let slow = proxy.slow_replies(SLOW);
    assert_says_late(&in_time(job.start()).await.unwrap_err());
    drop(slow);
    let other = fencelock::connect(server.url().as_str()).await.expect("the server takes clients");
    let theirs = other.job("nightly", Duration::from_hours(24));
    let run = in_time(async {
        loop {
            match theirs.start().await.unwrap() {
                Ok(run) => return run,
                // The last start of the one who gave up is on its way back.
                Err(skipped) => {
                    assert!(skipped.reason == Reason::Running || skipped.last.dead, "{skipped}");
                }
            }
            tokio::task::yield_now().await;
        }
    });
    run.await.succeed().await.check().unwrap();
    client.close().await;
}
