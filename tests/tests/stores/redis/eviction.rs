//! A server that evicts keys when its memory is full keeps no promise: who connects is told.

use std::sync::{Arc, Mutex};

use fencelock::facade::Feed;
use fencelock::port::LeaseStore;
use fencelock::{Client, Event, EventKind};
use fencelock_tests::equivalence::{Hosted, Way};
use fencelock_tests::servers::{RedisServer, rights};

/// A new client, and the events it reports while it connects.
async fn told(url: &str) -> (Client, Vec<Event>) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let told = events.clone();
    let builder = Client::builder().on_event(move |event| told.lock().unwrap().push(event.clone()));
    let client = builder.connect(url).await.unwrap();
    let events = events.lock().unwrap().clone();
    (client, events)
}

fn set(server: &RedisServer, memory: &str, policy: &str) {
    for (name, value) in [("maxmemory", memory), ("maxmemory-policy", policy)] {
        let () = redis::cmd("CONFIG")
            .arg("SET")
            .arg(name)
            .arg(value)
            .query(&mut server.admin())
            .unwrap();
    }
}

#[tokio::test]
async fn a_server_that_evicts_keys_is_told_of_at_connect() {
    let server = RedisServer::start();
    for (memory, policy, lost) in [
        ("100mb", "allkeys-lru", Some("what gates and values remember")),
        ("100mb", "volatile-ttl", Some("keys with an end")),
        ("100mb", "noeviction", None),
        ("0", "allkeys-lru", None),
    ] {
        set(&server, memory, policy);
        let (client, events) = told(server.url().as_str()).await;
        assert_eq!(client.guarantees().warning.is_some(), lost.is_some(), "{policy}");
        let Some(lost) = lost else {
            assert_eq!(events, [], "{policy} with {memory}");
            continue;
        };
        let [event] = &events[..] else { panic!("{events:?}") };
        assert_eq!((event.kind, &*event.name), (EventKind::Trouble, ""));
        let trouble = event.reason.as_ref().unwrap();
        assert!(
            trouble.contains(lost) && trouble.contains("maxmemory-policy noeviction"),
            "{trouble}"
        );
    }
}

#[tokio::test]
async fn a_quorum_tells_of_any_node_that_evicts_keys() {
    let servers: Vec<_> = (0..3).map(|_| RedisServer::start()).collect();
    set(&servers[1], "100mb", "allkeys-random");
    let places: Vec<_> = servers.iter().map(|one| format!("127.0.0.1:{}", one.port())).collect();
    let (_, events) = told(&format!("redlock://{}", places.join(","))).await;
    assert_eq!(events.len(), 1, "{events:?}");
}

/// In languages whose listeners come after the client.
#[tokio::test]
async fn who_listens_after_connect_is_told_too() {
    let server = RedisServer::start();
    set(&server, "100mb", "allkeys-lru");
    let feed = Arc::new(Feed::default());
    let heard = feed.clone();
    let builder = Client::builder().on_event(move |event| heard.push(event));
    let client = builder.connect(server.url().as_str()).await.unwrap();
    client.lock("app:x").acquire().await.unwrap().release().await.check().unwrap();
    feed.listen(true);
    let news = feed.news().await;
    let kinds: Vec<_> = news.as_array().unwrap().iter().map(|one| &one["kind"]).collect();
    assert_eq!(kinds, ["trouble"], "{news}");
}

#[tokio::test]
async fn a_client_of_a_hosts_asks_too() {
    let server = RedisServer::start();
    for (policy, warned) in [("noeviction", false), ("volatile-lru", true)] {
        set(&server, "100mb", policy);
        let store = Hosted::connect(&server.url()).await;
        assert_eq!(store.warning().is_some(), warned, "{policy}");
    }
}

/// A client that may not ask for the policy reports nothing, and works.
#[tokio::test]
async fn who_may_not_ask_for_the_policy_works_all_the_same() {
    let server = RedisServer::start();
    set(&server, "100mb", "allkeys-lru");
    let () = redis::cmd("ACL").arg("SETUSER").arg(rights()).query(&mut server.admin()).unwrap();
    let (client, events) = told(server.url_with_rights().as_str()).await;
    assert_eq!(events, []);
    client.lock("app:x").acquire().await.unwrap().release().await.check().unwrap();
}
