//! Locks on a real ZooKeeper, as programs use them, and how they lie there.

use std::time::{Duration, Instant};

use fencelock::{Client, Code};
use fencelock_tests::session_store::{
    self, PATIENCE, client, clients, code, nothing_is_left, waiting,
};
use fencelock_tests::zookeeper::ZookeeperServer;
use futures_util::future::join_all;
use zookeeper_client::{Acls, Client as Admin, CreateMode, Error};

#[tokio::test]
async fn a_lock_excludes_and_its_tokens_rise() {
    let server = ZookeeperServer::shared();
    session_store::a_lock_excludes_and_its_tokens_rise(&*server, "exclusion").await;
    assert_eq!(server.entries("/exclusion").await, [] as [&str; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_write_locks_and_permits_keep_their_rules() {
    let server = ZookeeperServer::shared();
    session_store::read_write_locks_and_permits_keep_their_rules(&*server, "kinds").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lock_of_a_dead_client_is_free_when_its_session_ends() {
    let server = ZookeeperServer::shared();
    session_store::the_lock_of_a_dead_client_is_free_when_its_session_ends(&*server, "dead").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b62_what_is_given_up_leaves_nothing() {
    let server = ZookeeperServer::shared();
    session_store::what_is_given_up_leaves_nothing(&*server, "given-up").await;
}

/// Three requests in two flights for a lock that is free and given back: the entry, the list behind it, the removal.
#[tokio::test]
async fn a_pair_costs_three_requests() {
    const PAIRS: u64 = 200;
    let server = ZookeeperServer::start();
    let client = client(&server, "p").await;
    client.lock("x").acquire().await.unwrap().release().await.check().unwrap();
    let before = server.packets();
    let began = Instant::now();
    for _ in 0..PAIRS {
        client.lock("x").acquire().await.unwrap().release().await.check().unwrap();
    }
    let took = began.elapsed();
    println!("{:?} for a pair", took / PAIRS as u32);
    let packets = server.packets() - before;
    // The question itself is two packets; a heartbeat comes twice a second, and a ping when nothing else is sent.
    let others = 4.0 + 6.0 * took.as_secs_f64();
    assert!((3 * PAIRS..=3 * PAIRS + others as u64).contains(&packets), "{packets}");
}

/// Clients that wait are served in their order, each with a greater token, and one release wakes one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_are_served_in_order() {
    const WAITERS: usize = 32;
    let (server, mut before) = (ZookeeperServer::start(), 0);
    let count = || before = server.packets();
    let took = session_store::waiters_are_served_in_order(&server, "p", WAITERS, count).await;
    let packets = server.packets() - before;
    let rate = WAITERS as f64 / took.as_secs_f64();
    println!("{rate:.0} hand-overs a second, {packets} packets for {WAITERS}");
    // Each reads the queue and leaves. Beside that each looks at two entries and pings twice a second, and closes its session.
    let others = (8.0 * took.as_secs_f64() + 4.0) * WAITERS as f64;
    assert!(packets as f64 <= 2.0 * WAITERS as f64 + others, "{packets}");
}

/// Two clients that take turns at one lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_clients_take_turns() {
    const TURNS: u32 = 200;
    let server = ZookeeperServer::start();
    let all = clients(&server, "p", 2).await;
    let (began, before) = (Instant::now(), server.packets());
    join_all(all.iter().map(|client| async move {
        for _ in 0..TURNS {
            let guard = client.lock("x").acquire_within(PATIENCE).await.unwrap();
            guard.release().await.check().unwrap();
        }
    }))
    .await;
    let (took, turns) = (began.elapsed(), 2.0 * f64::from(TURNS));
    let packets = (server.packets() - before) as f64 / turns;
    println!("{:.0} turns a second, {packets:.2} requests each", turns / took.as_secs_f64());
    // An entry and the list behind it, a watch of the one before and of the own entry, the removal.
    assert!(packets <= 5.1 + 20.0 * took.as_secs_f64() / turns, "{packets}");
}

/// Whatever a name contains, it is a lock of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h5_each_name_is_a_lock_of_its_own() {
    let server = ZookeeperServer::shared();
    let (one, two) = (client(&*server, "names").await, client(&*server, "names").await);
    let long = "ü/".repeat(170) + "xx";
    let mut names = vec![
        "a",
        "a/b",
        "a//b",
        "a/",
        ".",
        "..",
        "a/./b",
        "%",
        "%25",
        "zookeeper",
        "\u{1f600}",
        "\u{e000}",
        "lock-0000000001",
        "a/leases",
        "a/_c_x-lock-0000000001",
        &long,
    ];
    let mut guards = Vec::new();
    for name in &names {
        let guard = one.lock(name).try_acquire().await.unwrap();
        guards.push(guard.unwrap_or_else(|| panic!("{name:?} is another lock")));
        assert!(two.lock(name).try_acquire().await.unwrap().is_none(), "{name:?}");
    }
    names.sort_unstable();
    assert_eq!(two.names("").await.unwrap(), names);
    assert_eq!(
        two.names("a/").await.unwrap(),
        ["a/", "a/./b", "a//b", "a/_c_x-lock-0000000001", "a/b", "a/leases"]
    );
}

/// An entry of another program, made as that makes it.
async fn foreign(admin: &Admin, prefix: &str) -> String {
    let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
    let (_, sequence) = admin.create(prefix, b"10.0.0.1", &options).await.expect("it is made");
    format!("{prefix}{sequence}")
}

async fn folder(admin: &Admin, path: &str) {
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    admin.mkdir(path, &options).await.expect("it is made");
}

const CURATOR: &str = "_c_0f3c2a1e-5b7d-4e8f-9a0b-1c2d3e4f5a6b-";

/// The entries of a lock are those that Apache Curator makes and waits for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_lie_there_as_curator_lays_them_out() {
    let server = ZookeeperServer::shared();
    let (ours, admin) = (client(&*server, "layout").await, server.admin().await);
    let guard = ours.lock("orders/42").acquire().await.unwrap();
    let entries = server.entries("/layout").await;
    let name = entries[0].strip_prefix("/layout/orders/42/_c_").expect("it is a protected node");
    let (id, rest) = name.split_at(36);
    assert_eq!((id.matches('-').count(), rest), (4, "-lock-0000000000"), "{name}");
    let (_, stat) = admin.get_data(&entries[0]).await.unwrap();
    assert_ne!(stat.ephemeral_owner, 0);
    guard.release().await.check().unwrap();
    let read = ours.read_lock("rw").acquire().await.unwrap();
    read.release().await.check().unwrap();
    let write = ours.write_lock("rw").acquire().await.unwrap();
    let permit = ours.semaphore("pool", 3).acquire().await.unwrap();
    let entries = server.entries("/layout").await;
    assert!(entries[0].starts_with("/layout/pool/leases/_c_") && entries[0].contains("-lease-"));
    assert!(entries[1].starts_with("/layout/rw/_c_") && entries[1].contains("-__WRIT__"));
    drop((write, permit));
    // The server removes what is empty.
    let began = Instant::now();
    while admin.check_stat("/layout").await.unwrap().is_some() {
        assert!(began.elapsed() < PATIENCE, "{:?}", server.leaves("/layout").await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The numbers in the names begin anew with a new node; tokens do not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_rise_across_nodes_that_are_made_anew() {
    let server = ZookeeperServer::shared();
    let (ours, admin) = (client(&*server, "anew").await, server.admin().await);
    let first = ours.lock("x").acquire().await.unwrap();
    let token = first.token();
    first.release().await.check().unwrap();
    let began = Instant::now();
    while admin.check_stat("/anew").await.unwrap().is_some() {
        assert!(began.elapsed() < PATIENCE, "it is not removed");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let second = ours.lock("x").acquire().await.unwrap();
    let entries = server.entries("/anew").await;
    assert!(entries[0].ends_with("-lock-0000000000"), "{entries:?}");
    assert!(second.token() > token);
}

/// Entries of Curator's and ours wait for each other by the same rules.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b70_entries_of_others_stand_in_the_same_line() {
    let server = ZookeeperServer::shared();
    let (ours, admin) = (client(&*server, "line").await, server.admin().await);
    folder(&admin, "/line/x").await;
    for prefix in [CURATOR, ""] {
        let theirs = foreign(&admin, &format!("/line/x/{prefix}lock-")).await;
        assert!(ours.lock("x").try_acquire().await.unwrap().is_none());
        let next = tokio::spawn(ours.lock("x").acquire_within(PATIENCE));
        waiting(&ours, "x", 1).await;
        admin.delete(&theirs, None).await.unwrap();
        next.await.unwrap().expect("it is served").release().await.check().unwrap();
    }
    nothing_is_left(&*server, "line").await;
    folder(&admin, "/line/rw").await;
    let reader = foreign(&admin, &format!("/line/rw/{CURATOR}__READ__")).await;
    let beside = ours.read_lock("rw").acquire().await.unwrap();
    assert!(ours.write_lock("rw").try_acquire().await.unwrap().is_none());
    beside.release().await.check().unwrap();
    admin.delete(&reader, None).await.unwrap();
    let writer = foreign(&admin, &format!("/line/rw/{CURATOR}__WRIT__")).await;
    assert!(ours.read_lock("rw").try_acquire().await.unwrap().is_none());
    admin.delete(&writer, None).await.unwrap();
    folder(&admin, "/line/pool/leases").await;
    let lease = foreign(&admin, &format!("/line/pool/leases/{CURATOR}lease-")).await;
    let permit = ours.semaphore("pool", 2).try_acquire().await.unwrap().expect("one is left");
    assert!(ours.semaphore("pool", 2).try_acquire().await.unwrap().is_none());
    admin.delete(&lease, None).await.unwrap();
    drop(permit);
}

/// Entries that queue there without seeing ours are reported, and nothing of ours stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_by_other_rules_are_a_conflict() {
    let server = ZookeeperServer::shared();
    let (ours, admin) = (client(&*server, "foreign").await, server.admin().await);
    folder(&admin, "/foreign/x").await;
    let kazoo = "0123456789abcdef0123456789abcdef__lock__";
    foreign(&admin, &format!("/foreign/x/{kazoo}")).await;
    let error = ours.lock("x").acquire().await.unwrap_err();
    assert_eq!(error.code(), Code::Conflict);
    assert!(error.to_string().contains("kazoo"), "{error}");
    nothing_is_left(&*server, "foreign").await;
    // A mutex and permits of one name.
    let mutex = ours.lock("y").acquire().await.unwrap();
    assert_eq!(code(ours.semaphore("y", 2).acquire().await), Some(Code::Conflict));
    mutex.release().await.check().unwrap();
    let _permit = ours.semaphore("y", 2).acquire().await.unwrap();
    assert_eq!(code(ours.lock("y").acquire().await), Some(Code::Conflict));
}

/// A client with a password makes nodes that only its like may touch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_and_their_rights() {
    let server = ZookeeperServer::shared();
    let connect = async |user: &str| -> Client {
        let url = server.url("users").to_string().replace("//", &format!("//{user}"));
        fencelock::connect(&format!("{url}?ttl=5s")).await.unwrap()
    };
    let (one, two) = (connect("clerk:hunter2@").await, connect("clerk:hunter2@").await);
    let guard = one.lock("x").acquire().await.unwrap();
    let waits = tokio::spawn(two.lock("x").acquire_within(PATIENCE));
    waiting(&one, "x", 1).await;
    let admin = server.admin().await;
    let entries = admin.list_children("/users/x").await;
    assert_eq!(entries.unwrap_err(), Error::NoAuth);
    for user in ["clerk:hunter3@", ""] {
        let error = connect(user).await.lock("x").try_acquire().await.unwrap_err();
        assert_eq!(error.code(), Code::Auth, "{error}");
        assert!(!format!("{error} {error:?} {error:#?}").contains("hunter"), "{error:?}");
    }
    guard.release().await.check().unwrap();
    drop(waits.await.unwrap().expect("it is served"));
}
