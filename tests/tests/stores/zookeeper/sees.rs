//! The driver for ZooKeeper keeps entries, watches, sessions and reads whole.

use std::sync::Arc;
use std::time::Duration;

use fencelock::Code;
use fencelock::driver::zookeeper::ZookeeperStore;
use fencelock::options::Options;
use fencelock::port::{
    Entry, Joined, LockKey, Mode, OwnerId, QueueNotice, QueueStore, SessionId, Standing,
};
use fencelock::runtime::TokioRuntime;
use fencelock_tests::zookeeper::ZookeeperServer;
use futures_channel::mpsc::{UnboundedReceiver, unbounded};
use futures_util::StreamExt;
use zookeeper_client::{Acl, Acls, AuthId, CreateMode, Permission};

/// The length of a session. Nothing here waits for its end.
const TTL: Duration = Duration::from_secs(40);
/// How long something may take that happens.
const SOON: Duration = Duration::from_secs(4);

/// A session, and what it is told.
struct Line {
    store: ZookeeperStore,
    runtime: Arc<TokioRuntime>,
    session: SessionId,
    heard: UnboundedReceiver<QueueNotice>,
}

impl Line {
    async fn open(server: &ZookeeperServer, chroot: &str) -> Self {
        let runtime = Arc::new(TokioRuntime::current().expect("the test runs on tokio"));
        let url = server.url(chroot);
        let store = ZookeeperStore::new(&url, &[], &Options::default(), runtime.clone()).unwrap();
        let (sender, heard) = unbounded();
        let sink = Arc::new(move |notice| drop(sender.unbounded_send(notice)));
        let session = store.open(TTL, sink).await.expect("it answers");
        Self { store, runtime, session, heard }
    }

    fn owner(&self) -> OwnerId {
        OwnerId::draw(&*self.runtime)
    }

    async fn join(&self) -> Joined {
        let (owner, mode, limit) = (self.owner(), Mode::Exclusive, 1);
        let entry = Entry { owner, mode, limit, info: "{}".into() };
        let joined = self.store.join(self.session, &lock(), &entry).await;
        joined.expect("it answers").expect("it has not left")
    }

    async fn notice(&mut self) -> Option<QueueNotice> {
        tokio::time::timeout(SOON, self.heard.next()).await.ok().flatten()
    }
}

fn lock() -> LockKey {
    LockKey::new("x")
}

/// A driver keeps this, in a folder of its own.
async fn kept(folder: &str, is_kept: impl AsyncFn(&ZookeeperServer, &str) -> bool) {
    let server = ZookeeperServer::shared();
    assert!(is_kept(&server, &format!("kept/{folder}")).await);
}

#[tokio::test]
async fn an_entry_without_an_answer_is_found_by_its_owner() {
    kept("orphan", async |server, chroot| {
        let line = Line::open(server, chroot).await;
        let (owner, mode, limit) = (line.owner(), Mode::Exclusive, 1);
        let entry = Entry { owner, mode, limit, info: "{}".into() };
        line.store.join(line.session, &lock(), &entry).await.expect("it answers");
        let left = line.store.leave(line.session, &lock(), owner, None).await;
        let left = left.expect("it answers");
        assert_eq!(server.entries(&format!("/{chroot}")).await.is_empty(), left);
        left
    })
    .await;
}

/// A user may make nodes there and remove them, but not look at them.
#[tokio::test]
async fn an_entry_whose_list_is_refused_is_removed() {
    kept("refused", async |server, chroot| {
        let (line, admin) = (Line::open(server, chroot).await, server.admin().await);
        let stays = CreateMode::Persistent.with_acls(Acls::anyone_all());
        admin.mkdir(&format!("/{chroot}"), &stays).await.expect("it is made");
        let rights = Permission::CREATE | Permission::DELETE | Permission::ADMIN;
        let acl = [Acl::new(rights, AuthId::anyone())];
        let blind = CreateMode::Persistent.with_acls(Acls::new(&acl));
        let path = format!("/{chroot}/x");
        admin.create(&path, b"", &blind).await.expect("it is made");
        let (owner, mode, limit) = (line.owner(), Mode::Exclusive, 1);
        let entry = Entry { owner, mode, limit, info: "{}".into() };
        let refused = line.store.join(line.session, &lock(), &entry).await.unwrap_err();
        assert_eq!(refused.error.code(), Code::Auth);
        let all = [Acl::new(Permission::ALL, AuthId::anyone())];
        admin.set_acl(&path, &all, None).await.expect("it may");
        admin.list_children(&path).await.expect("it may look now").is_empty()
    })
    .await;
}

#[tokio::test]
async fn an_entry_of_another_session_stays() {
    kept("other", async |server, chroot| {
        let (holder, other) = (Line::open(server, chroot).await, Line::open(server, chroot).await);
        holder.join().await;
        let left = other.store.leave(other.session, &lock(), other.owner(), None).await;
        assert_eq!(
            server.entries(&format!("/{chroot}")).await.is_empty(),
            left.expect("it answers")
        );
        !server.entries(&format!("/{chroot}")).await.is_empty()
    })
    .await;
}

#[tokio::test]
async fn the_end_of_a_session_is_told() {
    kept("ended", async |server, chroot| {
        let mut line = Line::open(server, chroot).await;
        let session = line.session;
        server.expire(session.get().cast_signed());
        while let Some(notice) = line.notice().await {
            if notice == (QueueNotice::Ended { session }) {
                return true;
            }
        }
        false
    })
    .await;
}

/// The value of a node changes, then the node is removed.
async fn changed_and_removed(server: &ZookeeperServer, chroot: &str) -> [Option<QueueNotice>; 2] {
    let (holder, mut waiter) = (Line::open(server, chroot).await, Line::open(server, chroot).await);
    let held = holder.join().await;
    let before: Vec<Standing> = waiter.join().await.before;
    let gone = waiter.store.watch(waiter.session, &lock(), &before).await;
    assert_eq!(gone.expect("it answers"), []);
    let entries = server.entries(&format!("/{chroot}")).await;
    let path = entries.iter().find(|path| path.ends_with("0000000000")).expect("it is there");
    server.admin().await.set_data(path, b"other", None).await.unwrap();
    let after_change = tokio::time::timeout(Duration::from_millis(500), waiter.heard.next()).await;
    let owner = holder.owner();
    holder.store.leave(holder.session, &lock(), owner, Some(&held.rank)).await.unwrap();
    [after_change.ok().flatten(), waiter.notice().await]
}

#[tokio::test]
async fn a_change_of_an_entry_is_not_its_removal() {
    kept("change", async |server, chroot| changed_and_removed(server, chroot).await[0].is_none())
        .await;
}

#[tokio::test]
async fn a_removal_behind_a_change_is_told() {
    kept("removal", async |server, chroot| {
        matches!(changed_and_removed(server, chroot).await, [None, Some(QueueNotice::Gone { .. })])
    })
    .await;
}

/// Two packets for a read, the first of which makes the member catch up with the others.
#[tokio::test]
async fn a_version_is_read_behind_a_sync() {
    const READS: u64 = 100;
    kept("sync", async |_, chroot| {
        let server = ZookeeperServer::start();
        let client = fencelock::connect(server.url(chroot).as_str()).await.unwrap();
        client.version("x").read::<u64>().await.unwrap();
        let before = server.packets();
        for _ in 0..READS {
            client.version("x").read::<u64>().await.unwrap();
        }
        server.packets() - before >= 2 * READS
    })
    .await;
}

/// A member tells the leader of a heartbeat with its next ping only.
#[tokio::test]
async fn a_heartbeat_is_worth_less_than_the_session() {
    kept("beat", async |server, chroot| {
        let line = Line::open(server, chroot).await;
        let worth = line.store.beat(line.session).await.expect("it answers");
        worth + Duration::from_secs(2) <= TTL
    })
    .await;
}

/// Leases would be counted longer, or shorter, than the session lives.
#[tokio::test]
async fn a_session_of_another_length_is_refused() {
    kept("length", async |server, chroot| {
        fencelock::connect(&format!("{}?ttl=10m", server.url(chroot))).await.is_err()
    })
    .await;
}
