//! The quorum over memory nodes: the shortest way through its algorithms. What fails is the simulator's.
#![allow(missing_docs, clippy::disallowed_methods)] // A user of the core may use tokio as it likes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fencelock::driver::memory::Memory;
use fencelock::port::LeaseHandle;
use fencelock::runtime::TokioRuntime;
use fencelock::{Client, Code, Quorum, Released};
use fencelock_sim::{Chaos, Fault};

const MS: Duration = Duration::from_millis(1);
const MINUTE: Duration = Duration::from_mins(1);

/// Nodes that can be cut off.
struct Nodes(Vec<(Memory, Arc<AtomicBool>)>);

impl Nodes {
    fn new(count: usize) -> Self {
        Self((0..count).map(|_| (Memory::new(), Arc::default())).collect())
    }

    fn quorum(&self) -> Result<Quorum, fencelock::Error> {
        let runtime = Arc::new(TokioRuntime::current().expect("inside tokio"));
        let node = |(memory, cut): &(Memory, Arc<AtomicBool>)| {
            let cut = cut.clone();
            let fault =
                move || if cut.load(Ordering::Relaxed) { Fault::RequestLost } else { Fault::None };
            LeaseHandle::new(Chaos::new(memory.store(runtime.clone()), runtime.clone(), fault))
        };
        Quorum::new(self.0.iter().map(node).collect(), runtime.clone(), MINUTE, 50 * MS)
    }

    async fn client(&self) -> Client {
        let runtime = Arc::new(TokioRuntime::current().expect("inside tokio"));
        let store = self.quorum().expect("an odd number of nodes");
        Client::builder().runtime(runtime).store(store).await.expect("memory connects")
    }

    fn cut(&self, count: usize, cut: bool) {
        self.0.iter().take(count).for_each(|(_, flag)| flag.store(cut, Ordering::Relaxed));
    }
}

#[tokio::test]
async fn one_holder_at_a_time_and_tokens_rise() {
    let nodes = Nodes::new(5);
    let (a, b) = (nodes.client().await, nodes.client().await);
    let first = a.lock("x").acquire().await.unwrap();
    assert!(b.lock("x").try_acquire().await.unwrap().is_none());
    let error = b.lock("x").acquire_within(20 * MS).await.unwrap_err();
    assert_eq!(error.code(), Code::Timeout);
    let token = first.token();
    assert_eq!(first.release().await, Released::Released);
    let second = b.lock("x").acquire().await.unwrap();
    assert!(second.token() > token);
    assert_eq!(b.lock("x").inspect().await.unwrap().holders[0].token, Some(second.token()));
    assert_eq!(second.release().await, Released::Released);
    assert_eq!((a.stats(), b.stats()), ((0, 0), (0, 0)));
    assert!(a.lock("x").inspect().await.unwrap().holders.is_empty());
}

/// A client that holds a majority in a scope enters again; the last guard that is given back frees all nodes.
#[tokio::test]
async fn a_scope_enters_again() {
    let nodes = Nodes::new(3);
    let (a, b) = (nodes.client().await, nodes.client().await);
    let scope = a.scope();
    let outer = scope.lock("x").acquire().await.unwrap();
    let inner = scope.lock("x").acquire().await.unwrap();
    assert_eq!(inner.token(), outer.token());
    assert_eq!(outer.release().await, Released::Released);
    assert!(inner.is_held() && b.lock("x").try_acquire().await.unwrap().is_none());
    assert_eq!(inner.release().await, Released::Released);
    let next = b.lock("x").try_acquire().await.unwrap().expect("it is free");
    assert_eq!(next.release().await, Released::Released);
}

#[tokio::test]
async fn who_waits_asks_again() {
    let nodes = Nodes::new(3);
    let (a, b) = (nodes.client().await, nodes.client().await);
    let guard = a.lock("x").acquire().await.unwrap();
    let mut waiter = tokio::spawn(b.lock("x").acquire());
    assert!(tokio::time::timeout(100 * MS, &mut waiter).await.is_err(), "it is held");
    drop(guard);
    let next = tokio::time::timeout(1000 * MS, waiter).await.expect("granted").unwrap().unwrap();
    next.release().await.check().unwrap();
    assert_eq!(b.stats(), (0, 0));
}

#[tokio::test]
async fn readers_share_and_a_writer_follows_them() {
    let nodes = Nodes::new(3);
    let (a, b) = (nodes.client().await, nodes.client().await);
    let (one, two) =
        (a.read_lock("x").acquire().await.unwrap(), b.read_lock("x").acquire().await.unwrap());
    let mut writer = tokio::spawn(b.write_lock("x").acquire());
    assert!(tokio::time::timeout(50 * MS, &mut writer).await.is_err(), "readers hold it");
    drop((one, two));
    let writer = tokio::time::timeout(1000 * MS, writer).await.expect("granted").unwrap().unwrap();
    writer.release().await.check().unwrap();
}

#[tokio::test]
async fn without_a_majority_nothing_is_granted() {
    let nodes = Nodes::new(3);
    let client = nodes.client().await;
    nodes.cut(2, true);
    let error = client.lock("x").try_acquire().await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
    assert!(error.message().contains("fewer than 2 of the quorum's 3 nodes"), "{error}");
    nodes.cut(2, false);
    let guard = client.lock("x").acquire_within(2000 * MS).await.unwrap();
    guard.release().await.check().unwrap();
}

#[tokio::test]
async fn tokens_rise_whoever_grants_them() {
    let nodes = Nodes::new(3);
    let newest = AtomicU64::new(0);
    for turn in 0..30_usize {
        // Another majority each time, and another client.
        let pair = [turn % 3, (turn + 1) % 3];
        for (number, (_, cut)) in nodes.0.iter().enumerate() {
            cut.store(!pair.contains(&number), Ordering::Relaxed);
        }
        let client = nodes.client().await;
        let guard = client.lock("x").acquire_within(2000 * MS).await.unwrap();
        let token = guard.token().get();
        assert!(token > newest.swap(token, Ordering::Relaxed), "{token} in turn {turn}");
        guard.release().await.check().unwrap();
    }
}

#[tokio::test]
async fn what_a_quorum_cannot_do_is_refused() {
    for count in [0, 1, 2, 4, 6] {
        let error = Nodes::new(count).quorum().err().expect("refused");
        assert_eq!(error.code(), Code::Invalid);
        assert_eq!(error.fields()["count"], count.to_string());
    }
    let client = Nodes::new(3).client().await;
    let error = client.semaphore("x", 2).acquire().await.unwrap_err();
    assert_eq!(error.code(), Code::Unsupported);
    assert!(error.message().contains("permits"), "{error}");
    let error = client.lock("x").fair(true).acquire().await.unwrap_err();
    assert_eq!(error.code(), Code::Unsupported);
    assert!(error.message().contains("fair"), "{error}");
    for dialect in ["redisson", "plain:redlock:"] {
        let error = client.lock("x").option("dialect", dialect).try_acquire().await.unwrap_err();
        assert_eq!(error.code(), Code::Unsupported, "{error}");
        let word = dialect.split(':').next().expect("it has a word");
        assert!(
            error.message().contains(&format!("does not speak the dialect `{word}`")),
            "{error}"
        );
    }
    let error = client.lock("x").ttl(2 * MINUTE).acquire().await.unwrap_err();
    assert_eq!((error.code(), error.fields()["argument"].as_str()), (Code::Invalid, "ttl"));
    client.lock("x").fair(false).acquire().await.unwrap().release().await.check().unwrap();
}
