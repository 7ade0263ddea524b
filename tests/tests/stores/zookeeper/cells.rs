//! Versions and jobs on a real ZooKeeper.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fencelock::Code;
use fencelock::port::{CellKey, Change, Family, LeaseStore, OwnerId, Swap};
use fencelock_tests::equivalence::cells::{Move, moves, run};
use fencelock_tests::equivalence::{Subject, ZookeeperSubject, draw, search_among};
use fencelock_tests::session_cells;
use fencelock_tests::session_store::{PATIENCE, client};
use fencelock_tests::zookeeper::ZookeeperServer;
use proptest::test_runner::Config;

#[tokio::test]
async fn updates_of_everybody_are_all_counted() {
    let server = ZookeeperServer::shared();
    session_cells::updates_of_everybody_are_all_counted(&*server, "counted").await;
}

#[tokio::test]
async fn a_job_runs_once_and_a_run_whose_session_ended_is_dead() {
    let server = &*ZookeeperServer::shared();
    let expire = async |job: &str| {
        let entries = server.entries(&format!("/jobs/fencelock:job:{job}")).await;
        let (_, stat) = server.admin().await.get_data(&entries[0]).await.unwrap();
        server.expire(stat.ephemeral_owner);
    };
    let dead = session_cells::a_job_runs_once_and_a_run_whose_session_ended_is_dead;
    dead(server, "jobs", expire).await;
}

/// Random changes to the model and to ZooKeeper, answer by answer, whatever numbers it draws.
#[test]
fn random_changes_end_as_in_the_model() {
    let server = ZookeeperServer::start();
    let (seed, cases) = draw(13, 150);
    let config = Config { cases, ..Config::default() };
    let next = AtomicUsize::new(0);
    let found = search_among(seed, &config, &moves(), &async |moves: &[Move]| {
        let chroot = format!("m{}", next.fetch_add(1, Ordering::Relaxed));
        run(&ZookeeperSubject::new(server.url(&chroot)), moves).await
    });
    if let Some((moves, difference)) = found {
        panic!("{difference}\nin {moves:#?}");
    }
}

fn change(number: u32, keep: Option<Duration>) -> Change {
    let key = CellKey::new(Family::Version, format!("v{number}"));
    let writer = OwnerId::parse(&format!("{number:032x}")).expect("32 hexadecimal digits");
    Change { key, expected: None, writer, value: Some("1".into()), keep }
}

/// A record that ended long ago is removed by a client that gives others an end; one without an end, or that ended just now, stays.
#[tokio::test]
async fn what_has_ended_is_removed_by_others() {
    const ENDED: u32 = 600;
    let server = ZookeeperServer::shared();
    let subject = ZookeeperSubject::new(server.url("ends"));
    let store = subject.client().await;
    store.listen(Arc::new(|_| {})).await.unwrap();
    let cells = store.cells().expect("there are cells");
    let minute = Some(Duration::from_mins(1));
    for number in 0..ENDED {
        let keep = if number < 10 { None } else { minute };
        cells.compare_and_set(&change(number, keep)).await.unwrap();
    }
    let count = async || {
        let leaves = server.leaves("/ends").await;
        leaves.iter().filter(|path| path.contains("/version:v")).count()
    };
    assert_eq!(count().await, ENDED as usize);
    // They have ended, but somebody's clock may be behind.
    subject.pass(std::iter::once(&store), Duration::from_mins(60)).await;
    for number in ENDED..2 * ENDED {
        cells.compare_and_set(&change(number, minute)).await.unwrap();
    }
    assert_eq!(count().await, 2 * ENDED as usize);
    subject.pass(std::iter::once(&store), Duration::from_mins(120)).await;
    for number in 2 * ENDED..3 * ENDED {
        cells.compare_and_set(&change(number, minute)).await.unwrap();
    }
    let began = Instant::now();
    // A seventh of those that have not ended, and as many as there are folders.
    let most = ENDED as usize + 10 + ENDED as usize / 7 + 64;
    while count().await > most {
        assert!(began.elapsed() < PATIENCE, "{} are left of {most}", count().await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for number in 0..10 {
        let look = cells.read(&change(number, None).key).await.unwrap();
        assert_eq!(look.value(), Some("1"), "it has no end");
    }
}

/// A cell that has ended is replaced by one of two who find it so, also while others remove it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_ended_is_replaced_once() {
    let server = ZookeeperServer::shared();
    let subject = ZookeeperSubject::new(server.url("once"));
    let (one, two) = (subject.client().await, subject.client().await);
    for number in 0..100 {
        let cells = one.cells().expect("there are cells");
        let first = cells.compare_and_set(&change(number, Some(Duration::from_mins(1)))).await;
        assert!(matches!(first.unwrap(), Swap::Done { .. }));
    }
    subject.pass(std::iter::once(&one), Duration::from_mins(120)).await;
    for number in 0..100 {
        let again = |by: u32| {
            let writer = OwnerId::parse(&format!("{:032x}", 1000 * by + number));
            Change {
                writer: writer.expect("32 digits"),
                ..change(number, Some(Duration::from_mins(1)))
            }
        };
        let (a, b) = (again(1), again(2));
        let (a, b) = tokio::join!(
            one.cells().expect("there are cells").compare_and_set(&a),
            two.cells().expect("there are cells").compare_and_set(&b),
        );
        let done = [a, b].map(|swap| matches!(swap.unwrap(), Swap::Done { .. }));
        assert_eq!(done.iter().filter(|done| **done).count(), 1, "v{number}");
    }
}

#[tokio::test]
async fn what_another_program_wrote_is_a_conflict() {
    let server = ZookeeperServer::shared();
    let (client, admin) = (client(&*server, "theirs").await, server.admin().await);
    client.version("x").update(|_: Option<u64>| Some(1)).await.unwrap();
    let leaves = server.leaves("/theirs").await;
    let path = leaves.iter().find(|path| path.ends_with("version:x")).expect("it is there");
    admin.set_data(path, b"hello", None).await.unwrap();
    let error = client.version("x").read::<u64>().await.unwrap_err();
    assert_eq!((error.code(), error.fields()["name"].as_str()), (Code::Conflict, "x"));
    let update = client.version("x").update(|_: Option<u64>| Some(2)).await.unwrap_err();
    assert_eq!(update.code(), Code::Conflict);
    assert_eq!(admin.get_data(path).await.unwrap().0, b"hello", "it is left as it is");
}

#[tokio::test]
async fn what_the_server_does_not_take_is_told() {
    let server = ZookeeperServer::shared();
    let client = client(&*server, "long").await;
    let guard = client.lock("x").acquire().await.unwrap();
    let version = client.version("v");
    let long = version.update(|_: Option<String>| Some("x".repeat(1_000_000))).await;
    let error = long.unwrap_err();
    assert_eq!((error.code(), error.fields()["name"].as_str()), (Code::Invalid, "v"));
    let fits = version.update(|_: Option<String>| Some("x".repeat(999_000))).await;
    assert!(fits.unwrap().is_some());
    assert!(guard.is_held(), "the connection goes on");
}

#[tokio::test]
async fn a_change_is_few_requests() {
    const CHANGES: u64 = 100;
    let server = ZookeeperServer::start();
    let client = client(&server, "few").await;
    let version = client.version("x");
    version.update(|_: Option<u64>| Some(0)).await.unwrap();
    let (began, before) = (Instant::now(), server.packets());
    for _ in 0..CHANGES {
        version.update(|old: Option<u64>| old.map(|old| old + 1)).await.unwrap();
    }
    let packets = server.packets() - before;
    // A sync with the look behind it, a look, the change. The question itself is two packets; a ping comes when nothing else is sent.
    let others = 4 + (6.0 * began.elapsed().as_secs_f64()) as u64;
    assert!((4 * CHANGES..=4 * CHANGES + others).contains(&packets), "{packets}");
}
