//! Locks that several may hold, in the dialect `redisson`: readers, writers and permits, ours beside Redisson's.

use std::time::Duration;

use fencelock::Code;
use fencelock::port::{Action, Kind, LockState, Mode, Outcome};
use fencelock_tests::bare::{TTL, taking};
use fencelock_tests::redisson::{FREE, Scene, THEIRS, field, lease_of};
use redis::Commands;

#[tokio::test]
async fn b13_a_read_lock_lasts_as_long_as_its_last_reader() {
    let mut scene = Scene::new().await;
    let first = scene.hold("shelf", Mode::Read).await;
    let second = scene.hold("shelf", Mode::Read).await;
    let reads = [(field(first), "1"), (field(second), "1"), ("mode".to_owned(), "read")];
    let reads = reads.map(|(field, value)| (field, value.to_owned()));
    assert_eq!(scene.fields("shelf"), reads.into());
    let lease = |owner| lease_of("shelf", &field(owner));
    assert!(scene.lasts(&lease(first)) && scene.lasts(&lease(second)) && scene.lasts("shelf"));
    // A reader of theirs with less time goes; what ours have left is what the lock has.
    scene.reader("shelf", THEIRS, Duration::from_secs(3));
    for owner in [first, second] {
        scene.free("shelf", Mode::Read, owner).await;
    }
    let left = scene.left("shelf");
    assert!((1..=3_000).contains(&left), "{left}");
    scene.miss("shelf", Mode::Write).await;
    let ours: u64 = scene.admin.exists(&[lease(first), lease(second)]).unwrap();
    assert_eq!(ours, 0);
}

#[tokio::test]
async fn b14_a_writer_is_one_field_and_its_end_wakes_all() {
    let mut scene = Scene::new().await;
    let owner = scene.hold("shelf", Mode::Write).await;
    let writes = [(format!("{}:write", field(owner)), "1"), ("mode".to_owned(), "write")];
    assert_eq!(scene.fields("shelf"), writes.map(|(f, v)| (f, v.to_owned())).into());
    let (stranger, outcome) = scene.take("shelf", Mode::Read).await;
    assert!(matches!(outcome, Outcome::Held { .. }), "{outcome:?}");
    assert_eq!(scene.ask("shelf", Kind::ReadWrite, stranger, FREE).await, Outcome::Gone);
    // `1` wakes all who wait; `0` is kept for whoever is just about to.
    let told = scene.heard(2, scene.ask("shelf", Kind::ReadWrite, owner, FREE)).await;
    let expected = ["1", "0"].map(|text| ("redisson_rwlock:{shelf}".to_owned(), text.to_owned()));
    assert_eq!(told, expected);
    assert!(scene.fields("shelf").is_empty());
}

#[tokio::test]
async fn a_permit_is_an_id_with_an_end() {
    let mut scene = Scene::new().await;
    let owner = scene.hold("seats", Mode::Permit).await;
    let free: u32 = scene.admin.get("seats").unwrap();
    let ids: Vec<String> = scene.admin.zrange("{seats}:timeout", 0, -1).unwrap();
    assert_eq!((free, ids), (1, vec![owner.to_string()]));
    // One of theirs whose end has come is given back by whoever looks first.
    let () = scene.admin.set("seats", 0).unwrap();
    let () = scene.admin.zadd("{seats}:timeout", "theirs", 1).unwrap();
    let other = scene.hold("seats", Mode::Permit).await;
    let told = scene.heard(1, scene.ask("seats", Kind::Semaphore, owner, FREE)).await;
    assert_eq!(told, [("redisson_sc:{seats}".to_owned(), "1".to_owned())]);
    scene.free("seats", Mode::Permit, other).await;
    let free: u32 = scene.admin.get("seats").unwrap();
    let rest: u32 = scene.admin.exists("{seats}:timeout").unwrap();
    assert_eq!((free, rest), (2, 0));
}

/// The waiter that waits longest says how many permits there are, not the one that looks last.
#[tokio::test]
async fn a_semaphore_that_vanished_is_made_anew_by_the_first_in_line() {
    let mut scene = Scene::new().await;
    let () = scene.admin.set("seats", 0).unwrap();
    let owners = [scene.client.owner(), scene.client.owner()];
    for (owner, limit) in owners.into_iter().zip([5, 1]) {
        let take = Action::Take(taking(Mode::Permit, limit, true));
        let outcome = scene.ask("seats", Kind::Semaphore, owner, take).await;
        assert!(matches!(outcome, Outcome::Queued { .. }), "{outcome:?}");
    }
    let () = scene.admin.del("seats").unwrap();
    let refreshed =
        scene.ask("seats", Kind::Semaphore, owners[0], Action::Refresh { ttl: TTL }).await;
    assert!(matches!(refreshed, Outcome::Granted { .. }), "{refreshed:?}");
    let free: u32 = scene.admin.get("seats").unwrap();
    assert_eq!(free, 4);
}

/// Redisson's holders give theirs back by adding one: a counter that forgot them would end above the limit.
#[tokio::test]
async fn a_semaphore_that_is_made_anew_knows_who_still_holds() {
    let mut scene = Scene::new().await;
    let later = u64::MAX >> 20;
    let () = scene.admin.zadd("{seats}:timeout", "theirs", later).unwrap();
    let () = scene.admin.zadd("{seats}:timeout", "ended", 1).unwrap();
    let mine = scene.hold("seats", Mode::Permit).await;
    let free: u32 = scene.admin.get("seats").unwrap();
    let ids: Vec<String> = scene.admin.zrange("{seats}:timeout", 0, -1).unwrap();
    assert_eq!((free, ids.len()), (0, 2));
    scene.miss("seats", Mode::Permit).await;
    scene.free("seats", Mode::Permit, mine).await;
    // All permits are theirs, and nothing says how many there are.
    let () = scene.admin.del("seats").unwrap();
    let () = scene.admin.zadd("{seats}:timeout", "more of theirs", later).unwrap();
    scene.miss("seats", Mode::Permit).await;
}

/// The reader that stays may be dead: the lock must not outlive it by the lease of one that has gone.
#[tokio::test]
async fn a_read_lock_does_not_last_as_long_as_a_reader_who_has_gone() {
    let mut scene = Scene::new().await;
    let long = scene.hold("shelf", Mode::Read).await;
    let short = scene.client.owner();
    let mut take = taking(Mode::Read, 2, false);
    take.ttl = TTL / 3;
    scene.ask("shelf", Kind::ReadWrite, short, Action::Take(take)).await;
    assert!(scene.left("shelf") > TTL.as_millis() as i64 / 2);
    scene.free("shelf", Mode::Read, long).await;
    let left = scene.left("shelf");
    assert!((1..=TTL.as_millis() as i64 / 3 + 1).contains(&left), "{left}");
    // A reader of theirs is one who stays.
    let next = scene.hold("shelf", Mode::Read).await;
    scene.reader("shelf", THEIRS, TTL / 2);
    scene.free("shelf", Mode::Read, next).await;
    let left = scene.left("shelf");
    let (third, half) = (TTL.as_millis() as i64 / 3, TTL.as_millis() as i64 / 2);
    assert!((third + 1..=half).contains(&left), "{left}");
    scene.free("shelf", Mode::Read, short).await;
}

/// A look shows each of Redisson's readers with its own end.
#[tokio::test]
async fn readers_of_theirs_are_shown_as_many_as_they_are() {
    let mut scene = Scene::new().await;
    scene.reader("shelf", THEIRS, TTL / 3);
    scene.reader("shelf", "another:1", TTL / 2);
    let () = scene.admin.hset("shelf", "dead:1", 1).unwrap();
    let seen = scene.look("shelf").await;
    assert_eq!(seen.kind, Kind::ReadWrite);
    assert_eq!(modes(&seen), [(Mode::Read, false), (Mode::Read, false)]);
    let longest = seen.holders.iter().map(|holder| holder.left.unwrap()).max().unwrap();
    assert!(longest <= TTL / 2 && longest > TTL / 3, "{longest:?}");
    scene.hold("shelf", Mode::Read).await;
    let seen = scene.look("shelf").await;
    assert_eq!(modes(&seen), [(Mode::Read, false), (Mode::Read, false), (Mode::Read, true)]);
    assert!(seen.holders.iter().all(|holder| holder.left.is_some()));
}

#[tokio::test]
async fn a_writer_of_theirs_is_shown_as_one() {
    let mut scene = Scene::new().await;
    // It reads besides.
    let fields = [("mode", "write"), (&format!("{THEIRS}:write"), "1"), (THEIRS, "1")];
    let () = scene.admin.hset_multiple("shelf", &fields).unwrap();
    let () = scene.admin.pexpire("shelf", 5_000).unwrap();
    let seen = scene.look("shelf").await;
    assert_eq!((seen.kind, modes(&seen)), (Kind::ReadWrite, vec![(Mode::Write, false)]));
    assert!(seen.holders[0].left.is_some());
}

#[tokio::test]
async fn permits_of_theirs_are_shown_with_their_ends() {
    let mut scene = Scene::new().await;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let ends = (now + TTL).as_millis() as u64;
    let () = scene.admin.set("seats", 0).unwrap();
    let () = scene.admin.zadd("{seats}:timeout", "theirs", ends).unwrap();
    let () = scene.admin.zadd("{seats}:timeout", "ended", 1).unwrap();
    let seen = scene.look("seats").await;
    assert_eq!((seen.kind, modes(&seen)), (Kind::Semaphore, vec![(Mode::Permit, false)]));
    assert!(seen.holders[0].left.is_some_and(|left| left <= TTL && left > TTL / 2));
    // One of ours holds, one waits: nobody is forgotten.
    scene.hold("seats", Mode::Permit).await;
    let waiter = scene.client.owner();
    let take = Action::Take(taking(Mode::Permit, 2, true));
    scene.ask("seats", Kind::Semaphore, waiter, take).await;
    let seen = scene.look("seats").await;
    assert_eq!(modes(&seen), [(Mode::Permit, false), (Mode::Permit, true)]);
    assert_eq!(seen.waiters.len(), 1);
}

/// Permits without a lease leave no trace but their lack.
#[tokio::test]
async fn a_semaphore_without_leases_is_held_once_none_is_free() {
    let mut scene = Scene::new().await;
    let () = scene.admin.set("seats", 1).unwrap();
    let seen = scene.look("seats").await;
    assert!(seen.holders.is_empty());
    let () = scene.admin.set("seats", 0).unwrap();
    let seen = scene.look("seats").await;
    assert_eq!((seen.kind, modes(&seen)), (Kind::Semaphore, vec![(Mode::Permit, false)]));
    assert_eq!(seen.holders[0].left, None);
    // What is no number is no semaphore to whoever takes it, and to whoever looks.
    let () = scene.admin.set("seats", "a text").unwrap();
    let answer = scene.step("seats", Kind::Mutex, scene.client.owner(), Action::Read).await;
    assert_eq!(answer.unwrap_err().error.code(), Code::Conflict);
}

/// How each holds, and whether it is one of ours.
fn modes(seen: &LockState) -> Vec<(Mode, bool)> {
    seen.holders.iter().map(|holder| (holder.mode, holder.token.is_some())).collect()
}
