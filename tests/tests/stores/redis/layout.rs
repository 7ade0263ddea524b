//! The keys on a Redis server: fencelock's own and those of others, and the cost of a step.

use std::collections::BTreeMap;
use std::time::Duration;

use fencelock::Code;
use fencelock::driver::redis::RedisStore;
use fencelock::options::Options;
use fencelock::port::{
    Action, Applied, CellKey, CellStore, Change, Family, Kind, LeaseStore, LockKey, Mode, Notice,
    Outcome, OwnerId, Step, Swap,
};
use fencelock_tests::bare::{Bare, TTL, take, taking};
use fencelock_tests::servers::{RedisServer, commands, held};
use fencelock_tests::stopped_clock::StoppedClock;
use redis::Commands;

const ODD_NAMES: &[&str] = &[
    "orders:42",
    "{}",
    "{}a{b}",
    "a{b}c",
    "}{",
    "{",
    "}",
    "a}b",
    "{{a}}",
    "{a",
    "ä{ö}ü",
    "鎖",
    "{}:lock:{x}",
    "a b",
    "*",
    "{a}}",
];

async fn connect(server: &RedisServer) -> Bare {
    Bare::connect(&server.url(), &Options::default()).await.expect("the server takes clients")
}

/// The commands the server counts while `work` runs, and what that comes to.
async fn cost<T>(
    admin: &mut redis::Connection,
    work: impl Future<Output = T>,
) -> (BTreeMap<String, u64>, T) {
    let () = redis::cmd("CONFIG").arg("RESETSTAT").exec(admin).unwrap();
    let done = work.await;
    (commands(admin), done)
}

#[tokio::test]
async fn an_uncontended_pair_costs_eight_commands() {
    let server = RedisServer::start();
    let (client, mut admin) = (connect(&server).await, server.admin());
    let pair = || async {
        let owner = client.hold("orders").await;
        assert_eq!(client.ask("orders", owner, Action::Free { open: false }).await, Outcome::Freed);
    };
    let (first, ()) = cost(&mut admin, pair()).await;
    assert!(first.values().sum::<u64>() <= 14, "{first:?}");
    let (next, ()) = cost(&mut admin, pair()).await;
    assert_eq!(next["evalsha"], 2);
    assert_eq!(next.values().sum::<u64>(), 8, "{next:?}");
}

#[tokio::test]
async fn a_contended_pair_costs_two_scripts() {
    let server = RedisServer::start();
    let (mut client, mut admin) = (connect(&server).await, server.admin());
    let mut owner = client.hold("orders").await;
    let mut costs = Vec::new();
    for _ in 0..3 {
        let (counted, waiter) = cost(&mut admin, async {
            let waiter = client.queue("orders").await;
            client.ask("orders", owner, Action::Free { open: false }).await;
            waiter
        })
        .await;
        costs.push(counted);
        owner = waiter;
        assert!(
            matches!(client.hear().await, Notice::Granted { owner: told, .. } if told == owner)
        );
    }
    assert_eq!(costs[2]["evalsha"], 2, "{costs:?}");
    assert!(costs[2].values().sum::<u64>() <= 18, "{costs:?}");
}

#[tokio::test]
async fn a_free_and_the_take_behind_it_are_one_script() {
    let server = RedisServer::start();
    let (client, mut admin) = (connect(&server).await, server.admin());
    let (lock, kind) = (LockKey::new("orders"), Kind::Mutex);
    let step = |owner, action| Step { lock: lock.clone(), owner, kind, action };
    let pass = async |from, to| {
        let free = step(from, Action::Free { open: false });
        client.store.step(&[free, step(to, take(true))]).await
    };
    let mut holder = client.hold("orders").await;
    for _ in 0..3 {
        let next = client.owner();
        let (counted, answers) = cost(&mut admin, pass(holder, next)).await;
        assert!(
            matches!(answers[..], [Ok(Outcome::Freed), Ok(Outcome::Granted { .. })]),
            "{answers:?}"
        );
        assert_eq!(counted.values().sum::<u64>(), 6, "{counted:?}");
        holder = next;
    }
    let waiter = client.queue("orders").await;
    let (counted, answers) = cost(&mut admin, pass(holder, client.owner())).await;
    assert!(
        matches!(answers[..], [Ok(Outcome::Freed), Ok(Outcome::Queued { ahead: 0, .. })]),
        "{answers:?}"
    );
    assert_eq!(counted["evalsha"], 1);
    assert!(counted.values().sum::<u64>() <= 12, "{counted:?}");
    assert_eq!(client.ask("orders", waiter, Action::Free { open: false }).await, Outcome::Freed);
}

#[tokio::test]
async fn many_leases_are_renewed_by_few_scripts() {
    let server = RedisServer::start();
    let (client, mut admin) = (connect(&server).await, server.admin());
    let steps = |action: &Action| -> Vec<Step> {
        let owners = (0..1300u128).map(|n| OwnerId::parse(&format!("{n:032x}")).unwrap());
        let step = |(number, owner)| Step {
            lock: LockKey::new(format!("orders:{number}")),
            owner,
            kind: Kind::Mutex,
            action: action.clone(),
        };
        owners.enumerate().map(step).collect()
    };
    for answer in client.store.step(&steps(&take(false))).await {
        assert!(matches!(answer, Ok(Outcome::Granted { .. })), "{answer:?}");
    }
    let renewals = steps(&Action::Renew { ttl: 2 * TTL });
    let (counted, ()) = cost(&mut admin, async {
        for answer in client.store.step(&renewals).await {
            let Ok(Outcome::Granted { left, .. }) = answer else { panic!("{answer:?}") };
            assert!(left > TTL);
        }
    })
    .await;
    assert_eq!(counted["evalsha"], 3);
}

#[tokio::test]
async fn everything_has_an_end_and_the_record_outlives_the_lock() {
    let server = RedisServer::start();
    let (client, mut admin) = (connect(&server).await, server.admin());
    let owner = client.hold("orders").await;
    let waiter = client.queue("orders").await;
    client.ask("shelf", owner, Action::Leave { tombstone: Some(2 * TTL) }).await;
    client.ask("orders", waiter, Action::Refresh { ttl: 4 * TTL }).await;
    client.ask("orders", owner, Action::Renew { ttl: 4 * TTL }).await;
    let keys: Vec<String> = admin.keys("*").unwrap();
    assert_eq!(keys.len(), 3, "{keys:?}");
    let mut left = |key: &str| admin.pttl::<_, i64>(key).unwrap();
    assert!(keys.iter().all(|key| left(key) > 0));
    let record = RedisStore::record_key(&LockKey::new("orders"));
    assert!(left(&record) >= 10 * left(&held("orders")));
    assert!(left(&RedisStore::record_key(&LockKey::new("shelf"))) >= 59_000);
}

#[tokio::test]
async fn a_tombstone_is_swept_when_it_has_ended_and_not_before() {
    let server = RedisServer::start();
    let (client, mut admin) = (connect(&server).await, server.admin());
    let (soon, late) = (client.owner(), client.owner());
    let short = Duration::from_millis(20);
    client.ask("orders", soon, Action::Leave { tombstone: Some(short) }).await;
    client.ask("orders", late, Action::Leave { tombstone: Some(2 * TTL) }).await;
    assert_eq!(client.ask("orders", late, take(true)).await, Outcome::Gone);
    tokio::time::sleep(2 * short).await;
    client.hold("orders").await;
    let record = RedisStore::record_key(&LockKey::new("orders"));
    let mut is_buried = |owner| admin.hexists::<_, _, bool>(&record, format!("x{owner}")).unwrap();
    assert_eq!((is_buried(soon), is_buried(late)), (false, true));
    assert_eq!(client.ask("orders", late, take(true)).await, Outcome::Gone);
    assert!(matches!(client.ask("orders", soon, take(true)).await, Outcome::Queued { .. }));
}

#[tokio::test]
async fn an_open_mark_goes_with_the_last_who_waits() {
    let server = RedisServer::start();
    let mut client = connect(&server).await;
    let free = |open| Action::Free { open };
    let first = client.hold("orders").await;
    let waiter = client.queue("orders").await;
    assert_eq!(client.ask("orders", first, free(true)).await, Outcome::Freed);
    assert_eq!(client.hear().await, Notice::Open { owner: waiter });
    assert_eq!(
        client.ask("orders", waiter, Action::Leave { tombstone: None }).await,
        Outcome::Freed
    );
    let second = client.hold("orders").await;
    let next = client.queue("orders").await;
    assert_eq!(client.ask("orders", second, free(false)).await, Outcome::Freed);
    assert!(matches!(client.hear().await, Notice::Granted { owner, .. } if owner == next));
}

#[tokio::test]
async fn a_foreign_holder_is_respected_and_polled_for() {
    let server = RedisServer::start();
    let (client, mut admin) = (connect(&server).await, server.admin());
    // As redis-py does it.
    let () = redis::cmd("SET")
        .arg(&[&held("orders"), "theirs", "NX", "PX", "60000"])
        .exec(&mut admin)
        .unwrap();
    let owner = client.owner();
    let Outcome::Held { left: Some(left) } = client.ask("orders", owner, take(false)).await else {
        panic!()
    };
    assert!(left > Duration::from_secs(50) && left <= Duration::from_mins(1));
    let queued = client.ask("orders", owner, take(true)).await;
    assert!(
        matches!(queued, Outcome::Queued { left: Some(_), ahead: 0, foreign: true, .. }),
        "{queued:?}"
    );
    let record = RedisStore::record_key(&LockKey::new("orders"));
    assert!(admin.pttl::<_, i64>(&record).unwrap() >= 5_000);
    let () = admin.persist(held("orders")).unwrap();
    let queued = client.ask("orders", owner, Action::Refresh { ttl: TTL }).await;
    assert!(matches!(queued, Outcome::Queued { left: None, foreign: true, .. }), "{queued:?}");
    let Outcome::State(state) = client.ask("orders", owner, Action::Read).await else { panic!() };
    let holders: Vec<_> = state.holders.iter().map(|held| (held.token, held.left)).collect();
    assert_eq!(holders, [(None, None)]);
    for action in [Action::Free { open: false }, Action::Renew { ttl: TTL }] {
        assert_eq!(client.ask("orders", client.owner(), action).await, Outcome::Gone);
    }
    let theirs: String = admin.get(held("orders")).unwrap();
    assert_eq!(theirs, "theirs");
    let () = admin.del(held("orders")).unwrap();
    let granted = client.ask("orders", owner, Action::Refresh { ttl: TTL }).await;
    assert!(matches!(granted, Outcome::Granted { left, .. } if left == TTL), "{granted:?}");
    // They see ours as theirs: a string of its own with an expiry.
    let (ours, left): (String, i64) =
        (admin.get(held("orders")).unwrap(), admin.pttl(held("orders")).unwrap());
    assert_eq!(ours, owner.to_string());
    assert!(left > 29_000 && left <= 30_000);
}

#[tokio::test]
async fn a_flushed_server_forgets_the_hold_but_not_the_order_of_tokens() {
    let server = RedisServer::start();
    let (client, mut admin) = (connect(&server).await, server.admin());
    let before = client.owner();
    let Outcome::Granted { token, .. } = client.ask("orders", before, take(true)).await else {
        panic!()
    };
    let () = redis::cmd("FLUSHALL").exec(&mut admin).unwrap();
    assert_eq!(client.ask("orders", before, Action::Renew { ttl: TTL }).await, Outcome::Gone);
    let granted = client.ask("orders", client.owner(), take(true)).await;
    assert!(matches!(granted, Outcome::Granted { token: next, .. } if next > token));
}

#[tokio::test]
async fn a_record_of_another_layout_is_left_alone() {
    let server = RedisServer::start();
    let (client, mut admin) = (connect(&server).await, server.admin());
    let (lock, owner) = (LockKey::new("orders"), client.hold("orders").await);
    let record = RedisStore::record_key(&lock);
    let mut counter: Vec<u8> = admin.hget(&record, "c").unwrap();
    counter[16] += 1;
    let () = admin.hset(&record, "c", counter).unwrap();
    let all = |admin: &mut redis::Connection| -> (BTreeMap<String, Vec<u8>>, String) {
        (admin.hgetall(&record).unwrap(), admin.get(held("orders")).unwrap())
    };
    let before = all(&mut admin);
    let leave = Action::Leave { tombstone: Some(TTL) };
    let free = Action::Free { open: false };
    for kind in [Kind::Mutex, Kind::ReadWrite] {
        for action in [take(true), Action::Renew { ttl: TTL }, free.clone(), leave.clone()] {
            // A Free looks at the record only if the holder has a mark.
            if kind == Kind::Mutex && action == free {
                continue;
            }
            let step = Step { lock: lock.clone(), owner, kind, action };
            let failure =
                client.store.step(std::slice::from_ref(&step)).await.remove(0).unwrap_err();
            assert_eq!(failure.error.code(), Code::Unsupported, "{step:?}: {failure:?}");
            assert_eq!(failure.applied, Applied::No, "{step:?}");
        }
    }
    assert!(all(&mut admin) == before);
}

/// The layout of docs/reference/redis.md, which clients of different versions share.
#[tokio::test]
async fn the_layout_is_as_written_down() {
    const NOW: u64 = 1_800_000_000_000_000;
    const TOMBSTONE: Duration = Duration::from_secs(60);
    fn packed(numbers: &[u64], negative: Option<u64>) -> Vec<u8> {
        let numbers = numbers.iter().map(|number| *number as f64);
        let all = numbers.chain(negative.map(|number| -(number as f64)));
        all.flat_map(f64::to_le_bytes).collect()
    }
    let server = RedisServer::start();
    let (clock, mut admin) = (StoppedClock::before(&server.url(), NOW), server.admin());
    let client = Bare::connect(&clock.url(), &Options::default()).await.unwrap();
    let (ttl, kept) = (TTL.as_micros() as u64, NOW + 20 * TTL.as_micros() as u64);
    let ends = NOW + ttl;

    let (owner, waiter) = (client.hold("orders").await, client.queue("orders").await);
    let late = client.owner();
    client.ask("orders", late, Action::Leave { tombstone: Some(TOMBSTONE) }).await;
    let channel: Vec<String> = redis::cmd("PUBSUB").arg("CHANNELS").query(&mut admin).unwrap();
    let mutex = [
        (
            "c".to_owned(),
            [
                &packed(&[NOW], Some(kept))[..],
                &[1],
                owner.to_string().as_bytes(),
                &packed(&[NOW, NOW, 30_000], None),
                b"{}",
            ]
            .concat(),
        ),
        ("q".to_owned(), format!("{waiter},").into_bytes()),
        (
            format!("w{waiter}"),
            [
                &packed(&[NOW], None)[..],
                &[0],
                &packed(&[30_000, 1, NOW], None),
                &[1],
                &packed(&[1], None),
                &[1, 0],
                channel[0].as_bytes(),
                b"\0{}",
            ]
            .concat(),
        ),
        (format!("x{late}"), (NOW + 60_000_000).to_string().into_bytes()),
        ("b".to_owned(), (NOW + 60_000_000).to_string().into_bytes()),
    ];
    let all = |admin: &mut redis::Connection, key: &str| -> BTreeMap<String, Vec<u8>> {
        admin.hgetall(key).unwrap()
    };
    assert_eq!(all(&mut admin, "fencelock:{orders}:lock:orders"), BTreeMap::from(mutex));
    let holder: String = admin.get("fencelock:{orders}:held:orders").unwrap();
    assert_eq!(holder, format!("{owner}+"));

    let reader = client.owner();
    let action = Action::Take(taking(Mode::Read, 1, true));
    let step = Step { lock: LockKey::new("shelf"), owner: reader, kind: Kind::ReadWrite, action };
    assert!(matches!(client.store.step(&[step]).await[..], [Ok(Outcome::Granted { .. })]));
    let readers = [
        ("c".to_owned(), [&packed(&[NOW], Some(kept))[..], &[1]].concat()),
        ("k".to_owned(), b"2".to_vec()),
        ("H".to_owned(), packed(&[ends, ttl, 1, ends, 1, ends], None)),
        (
            "H0".to_owned(),
            [reader.to_string().as_bytes(), &packed(&[ends], None), &[1, 0]].concat(),
        ),
        (format!("h{reader}"), [&packed(&[NOW, NOW], None)[..], b"{}"].concat()),
    ];
    assert_eq!(all(&mut admin, "fencelock:{shelf}:lock:shelf"), BTreeMap::from(readers));
    let mark: String = admin.get("fencelock:{shelf}:held:shelf").unwrap();
    assert_eq!(mark, "fencelock:read-write");

    let change = Change {
        key: CellKey::new(Family::Version, "price"),
        expected: None,
        value: Some("7".into()),
        writer: owner,
        keep: None,
    };
    assert!(matches!(client.store.compare_and_set(&change).await, Ok(Swap::Done { .. })));
    let cell = [
        ("t".to_owned(), format!("{NOW}{owner}").into_bytes()),
        ("s".to_owned(), NOW.to_string().into_bytes()),
        ("v".to_owned(), b"7".to_vec()),
    ];
    assert_eq!(all(&mut admin, "fencelock:{price}:version:price"), BTreeMap::from(cell));
}

#[tokio::test]
async fn names_are_found_by_their_letters_not_by_patterns() {
    let server = RedisServer::start();
    let client = connect(&server).await;
    for name in ODD_NAMES {
        client.hold(name).await;
    }
    let mut all: Vec<_> = ODD_NAMES.iter().map(|name| LockKey::new(*name)).collect();
    all.sort();
    assert_eq!(client.store.names("").await.unwrap(), all);
    assert_eq!(client.store.names("*").await.unwrap(), [LockKey::new("*")]);
    let found = client.store.names("a").await.unwrap();
    assert_eq!(found, ["a b", "a{b}c", "a}b"].map(LockKey::new));
    assert!(client.store.names("order?").await.unwrap().is_empty());
}

/// The server itself says which slot a key is in.
#[tokio::test]
async fn a_record_shares_the_slot_of_its_lock() {
    let server = RedisServer::start_with(&["--cluster-enabled", "yes"]);
    let mut admin = server.admin();
    let mut slot = |key: &str| -> u16 {
        redis::cmd("CLUSTER").arg("KEYSLOT").arg(key).query(&mut admin).unwrap()
    };
    let long =
        ["x".repeat(512), format!("{{{}}}", "é".repeat(250)), format!("}}{}", "{".repeat(511))];
    let names = ODD_NAMES.iter().copied().chain(long.iter().map(String::as_str));
    for name in names {
        let lock = LockKey::new(name);
        let record = RedisStore::record_key(&lock);
        assert_eq!(slot(&record), slot(&RedisStore::holder_key(&lock)), "{name} and {record}");
    }
}

/// Owner ids of 32 digits are found in the queue only where one stands.
#[tokio::test]
async fn neighbours_in_the_queue_are_told_apart() {
    let server = RedisServer::start();
    let client = connect(&server).await;
    client.hold("orders").await;
    let [first, second] = ["12", "21"].map(|digits| OwnerId::parse(&digits.repeat(16)).unwrap());
    for owner in [first, second] {
        client.ask("orders", owner, take(true)).await;
    }
    let queued = client.ask("orders", second, Action::Refresh { ttl: TTL }).await;
    assert!(matches!(queued, Outcome::Queued { ahead: 1, .. }), "{queued:?}");
    // These digits stand across the two, but for the comma between them.
    let across = OwnerId::parse("12121212121212121221212121212121").unwrap();
    assert_eq!(client.ask("orders", across, Action::Refresh { ttl: TTL }).await, Outcome::Gone);
}
