//! Locks on an etcd of three members: killed leaders, ended sessions, frozen holders. 5 of each; with `FENCELOCK_FULL=1` 50, and 200
//! frozen holders.

use std::time::{Duration, Instant};

use fencelock::Client;
use fencelock_peers::Program;
use fencelock_tests::etcd_cluster::EtcdCluster;
use fencelock_tests::failover::{Course, ensemble_rounds, under_load};
use fencelock_tests::majority::{self, LOCKS};
use fencelock_tests::shop::{self, frozen_rounds};

const NAMES: [&str; 3] = ["a", "b/c", "d"];
/// Two sessions of the load's clients, and a second: a new leader lets each session last once more.
const WITHIN: Duration = Duration::from_secs(5);
/// A session of the holders that are frozen.
const TTL: Duration = Duration::from_secs(2);
const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(20);

fn course(url: &str) -> Course<'_> {
    Course { url, names: &NAMES, within: WITHIN, rounds: ensemble_rounds() }
}

/// No token falls, every lock is granted again in time, and nothing is left one session after the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_leaders_lower_no_token_and_leave_nothing() {
    let set = tokio::task::block_in_place(EtcdCluster::start);
    let url = set.url("load");
    let kept = Client::builder().option("ttl", "20s").connect(&set.url("kept")).await.unwrap();
    let guard = kept.lock("x").acquire().await.unwrap();
    let kill = |set: &mut EtcdCluster, _| set.kill_leader();
    let set = under_load(set, &course(&url), kill, EtcdCluster::rejoin).await;
    assert!(guard.is_held(), "a session outlives its leader");
    guard.release().await.check().unwrap();
    leaves_nothing(&set, "load/").await;
}

/// Without a majority nothing is granted, and everybody is told so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_majority_is_needed() {
    let mut set = tokio::task::block_in_place(EtcdCluster::start);
    let url = set.url("load");
    majority::is_needed(&mut set, &url, EtcdCluster::lose_majority, EtcdCluster::regain_majority)
        .await;
    leaves_nothing(&set, "load/").await;
}

/// The others go on at once; the client whose session was ended opens another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ended_sessions_lower_no_token_and_leave_nothing() {
    let set = tokio::task::block_in_place(EtcdCluster::start);
    let url = set.url("load");
    let end = |set: &mut EtcdCluster, round| (0, set.end_session("load", round));
    let set = under_load(set, &course(&url), end, |_, _| {}).await;
    leaves_nothing(&set, "load/").await;
}

/// A holder that stood still past its session knows at its first look, and the next one has the lock in time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_holders_are_told_at_their_first_look() {
    let set = tokio::task::block_in_place(EtcdCluster::start);
    let url = format!("{}?ttl=2s", set.url("frozen"));
    let actor = Program::new(env!("CARGO_BIN_EXE_actor"));
    shop::freeze_holders(&actor, &url, frozen_rounds(), [TTL, TTL], TTL + SECOND).await;
}

/// U08: a leader that stood still for longer than the sessions last, and comes back, may end them though their clients are alive (etcd issue
/// 15247). Their holds are told at once: no lock has two holders for longer than a watch takes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn u08_sessions_that_a_thawed_leader_ends_are_told_at_once() {
    let set = tokio::task::block_in_place(EtcdCluster::start);
    let url = format!("{}?ttl=4s", set.url("thawed"));
    let [one, two] =
        [fencelock::connect(&url).await.unwrap(), fencelock::connect(&url).await.unwrap()];
    let (taken, twice, longest) = majority::holders_at_once([&one, &two], PATIENCE, move || {
        set.freeze_leader(3 * TTL);
        set
    })
    .await;
    println!(
        "{taken} of {LOCKS} were ended by the leader, {twice} had two holders, for {longest:?} at most"
    );
    assert!(longest <= Duration::from_millis(300), "{longest:?}");
}

async fn leaves_nothing(set: &EtcdCluster, prefix: &str) {
    let began = Instant::now();
    loop {
        let left = set.keys(prefix);
        if left.is_empty() {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{left:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
