//! Locks that several may hold, in the dialect `redisson`: readers and writers, ours beside Redisson's.

use std::time::Duration;

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

/// How each holds, and whether it is one of ours.
fn modes(seen: &LockState) -> Vec<(Mode, bool)> {
    seen.holders.iter().map(|holder| (holder.mode, holder.token.is_some())).collect()
}
