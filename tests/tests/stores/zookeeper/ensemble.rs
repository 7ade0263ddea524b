//! Locks on a ZooKeeper of three members: killed leaders, ended sessions, frozen holders. 5 of each; with
//! `FENCELOCK_FULL=1` 50, and 200 frozen holders.

use std::time::{Duration, Instant};

use fencelock::Client;
use fencelock_peers::Program;
use fencelock_tests::failover::{Course, ensemble_rounds, under_load};
use fencelock_tests::majority::{self, LOCKS};
use fencelock_tests::shop::{self, frozen_rounds};
use fencelock_tests::zookeeper_ensemble::ZookeeperEnsemble;

const NAMES: [&str; 3] = ["a", "b/c", "d"];
const PATIENCE: Duration = Duration::from_secs(30);
/// A session of the load's clients.
const TTL: Duration = Duration::from_secs(2);
/// How soon after a fault every lock is granted again.
const WITHIN: Duration = Duration::from_secs(3);

fn course(url: &str) -> Course<'_> {
    Course { url, names: &NAMES, within: WITHIN, rounds: ensemble_rounds() }
}

/// No write behind the fence is lost, no token falls, every lock is granted again in time, and nothing is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_leaders_lower_no_token_and_leave_nothing() {
    let set = tokio::task::block_in_place(ZookeeperEnsemble::start);
    let url = set.url("load");
    let kept = Client::builder().option("ttl", "60s").connect(&set.url("kept")).await.unwrap();
    let guard = kept.lock("x").acquire().await.unwrap();
    let kill = |set: &mut ZookeeperEnsemble, _| set.kill_leader();
    let set = under_load(set, &course(&url), kill, ZookeeperEnsemble::rejoin).await;
    assert!(guard.is_held(), "a session outlives its leader");
    guard.release().await.check().unwrap();
    leaves_nothing(&set).await;
}

/// Without a majority nothing is granted, and everybody is told so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_majority_is_needed() {
    let mut set = tokio::task::block_in_place(ZookeeperEnsemble::start);
    let url = set.url("load");
    majority::is_needed(
        &mut set,
        &url,
        ZookeeperEnsemble::lose_majority,
        ZookeeperEnsemble::regain_majority,
    )
    .await;
    leaves_nothing(&set).await;
}

/// U07: a leader whom the others have left keeps no session alive, though it answers whatever needs no majority: no lock has two holders
/// when the others have another leader.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u07_a_leader_alone_keeps_no_guard_alive() {
    let mut set = tokio::task::block_in_place(ZookeeperEnsemble::start_with_a_late_leader);
    let (leader, others) = tokio::task::block_in_place(|| set.ports());
    let hosts = |ports: &[u16]| {
        let hosts: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        format!("zookeeper://{}/alone?ttl=4s", hosts.join(","))
    };
    let one = fencelock::connect(&hosts(&[leader])).await.unwrap();
    let two = fencelock::connect(&hosts(&others)).await.unwrap();
    let (taken, twice, longest) = majority::holders_at_once([&one, &two], PATIENCE, move || {
        set.leave_leader();
        set
    })
    .await;
    println!("{taken} of {LOCKS} have another holder, {twice} had two, for {longest:?} at most");
    assert_eq!((taken, twice), (LOCKS, 0), "{longest:?}");
}

/// The others go on at once; the client whose session was ended opens another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ended_sessions_lower_no_token_and_leave_nothing() {
    let set = tokio::task::block_in_place(ZookeeperEnsemble::start);
    let url = set.url("load");
    let end = |set: &mut ZookeeperEnsemble, round| (0, set.end_session("load", round));
    let set = under_load(set, &course(&url), end, |_, _| {}).await;
    leaves_nothing(&set).await;
}

/// A holder that stood still past its session knows at its first look, and the next one has the lock in time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_holders_are_told_at_their_first_look() {
    let set = tokio::task::block_in_place(ZookeeperEnsemble::start);
    let url = format!("{}?ttl=2s", set.url("frozen"));
    let actor = Program::new(env!("CARGO_BIN_EXE_actor"));
    shop::freeze_holders(&actor, &url, frozen_rounds(), [TTL, TTL], WITHIN).await;
}

/// Whatever a client had there is gone one session after its end, at the latest.
async fn leaves_nothing(set: &ZookeeperEnsemble) {
    let began = Instant::now();
    loop {
        let left = tokio::task::block_in_place(|| set.entries("load"));
        if left.is_empty() {
            return;
        }
        assert!(began.elapsed() < WITHIN, "{left:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
