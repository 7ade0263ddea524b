//! Redis under sentinels: the master is found, and found again.
//!
//! 3 failovers under load; 30 with `FENCELOCK_FULL=1`.

use std::time::Duration;

use fencelock::{Client, Code};
use fencelock_servers::own::free_port;
use fencelock_tests::failover::{Course, back, under_load, usual_rounds};
use fencelock_tests::servers::SentinelSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failovers_under_load_lower_no_token_and_are_over_at_once() {
    let set = tokio::task::block_in_place(SentinelSet::with_one_leader);
    let url = set.url();
    let fail_over = |set: &mut SentinelSet, _| {
        let old = set.master();
        (old, set.fail_over().0)
    };
    let names = &["a", "b", "c", "d"];
    let course = Course { url: &url, names, within: back(), rounds: usual_rounds() };
    under_load(set, &course, fail_over, SentinelSet::rejoin).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_sentinels_do_not_know_is_named() {
    let set = tokio::task::block_in_place(SentinelSet::default);
    let connect = async |url: &str| {
        let client = Client::builder().option("connect_timeout", "1s").connect(url).await;
        client.map(|_| ()).unwrap_err()
    };
    let unknown = connect(&set.url().replace("mymaster", "other")).await;
    assert_eq!(unknown.code(), Code::Invalid, "{unknown}");
    assert_eq!(unknown.fields()["master"], "other");
    let free = format!("127.0.0.1:{}", free_port());
    let absent = connect(&format!("redis+sentinel://{free},{free}/mymaster")).await;
    assert_eq!((absent.code(), absent.retryable()), (Code::Unavailable, true), "{absent}");
    let first = set.url().split(',').next().unwrap().replace("redis+sentinel", "redis");
    let sentinel = connect(&first).await;
    assert_eq!(sentinel.code(), Code::Unsupported, "{sentinel}");
    assert!(sentinel.message().contains("redis+sentinel"), "{sentinel}");
    // A minority of the sentinels is silent, and one is none.
    let some = format!("{free},127.0.0.1:{}", set.nodes[0].port());
    let url = set.url().replace("redis+sentinel://", &format!("redis+sentinel://{some},"));
    fencelock::connect(&url).await.unwrap();
}

/// A request under way at a server that hangs waits no longer than until another server is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_master_is_left_for_the_next_one() {
    let set = tokio::task::block_in_place(SentinelSet::default);
    let client = Client::builder().option("ttl", "20s").option("timeout", "30s");
    let client = client.connect(&set.url()).await.unwrap();
    let guard = client.lock("held").acquire().await.unwrap();
    let token = guard.token();
    guard.release().await.check().unwrap();
    let old = set.master();
    set.nodes[old].stop();
    let hanging = tokio::spawn({
        let lock = client.lock("other");
        async move { lock.acquire().await }
    });
    let (over, _) = tokio::task::block_in_place(|| set.taken_over(old));
    let next = client.lock("held").acquire_within(Duration::from_secs(20)).await.unwrap();
    assert!(over.elapsed() <= back(), "granted {:?} after the failover", over.elapsed());
    assert!(next.token() > token);
    next.release().await.check().unwrap();
    hanging.await.unwrap().unwrap().release().await.check().unwrap();
    set.nodes[old].cont();
}
