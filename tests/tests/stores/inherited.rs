//! A plain `fork`: in the child, what its parent has made is inert, and the parent keeps it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use fencelock::blocking::connect;
use fencelock::driver::sqlite::still;
use fencelock::{Code, Released};
use fencelock_tests::etcd::EtcdServer;
use fencelock_tests::postgres::PostgresServer;
use fencelock_tests::servers::RedisServer;
use fencelock_tests::zookeeper::ZookeeperServer;
use futures_util::FutureExt;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

const TTL: Duration = Duration::from_secs(2);
/// How long a child may take.
const BOUND: Duration = Duration::from_secs(20);

/// The child, in the parent; `None` in the child.
#[expect(unsafe_code, reason = "there is no safe fork")]
fn fork() -> Option<Pid> {
    let stillness = still();
    // SAFETY: the child uses what this test uses, and leaves by `_exit`.
    let pid = unsafe { libc::fork() };
    drop(stillness);
    assert!(pid >= 0, "no child");
    Pid::from_raw(pid)
}

/// Runs `act` in the child and ends the child.
#[expect(unsafe_code, reason = "no other exit leaves what belongs to the parent alone")]
fn child(act: impl FnOnce()) -> ! {
    let well = catch_unwind(AssertUnwindSafe(act)).is_ok();
    // SAFETY: it ends the process at once.
    unsafe { libc::_exit(i32::from(!well)) }
}

fn ends_well(pid: Pid) {
    let end = Instant::now() + BOUND;
    loop {
        if let Some((_, status)) = waitpid(Some(pid), WaitOptions::NOHANG).expect("our child") {
            return assert_eq!(status.exit_status(), Some(0), "the child failed");
        }
        if Instant::now() > end {
            let _ = kill_process(pid, Signal::KILL);
            panic!("the child hangs");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn code<T>(result: fencelock::Result<T>) -> Option<Code> {
    result.err().map(|error| error.code())
}

/// It connects anew.
fn connects(url: &str) {
    let client = connect(url).unwrap();
    client.lock("child").acquire_within(BOUND / 2).unwrap().release().check().unwrap();
    client.close().unwrap();
}

/// It is told at once that it cannot.
fn is_refused(url: &str) {
    let began = Instant::now();
    let error = connect(url).unwrap_err();
    assert_eq!(error.code(), Code::Unsupported, "{error}");
    assert!(error.message().contains("forked"), "{error}");
    assert!(began.elapsed() < TTL / 2, "nobody was waited for");
}

/// All that threads may have of a client.
fn threads(url: &str, anew: fn(&str)) {
    let (client, other) = (connect(url).unwrap(), connect(url).unwrap());
    let guard = client.lock("inherited").ttl(TTL).acquire().unwrap();
    let dropped = client.lock("dropped").ttl(TTL).acquire().unwrap();
    let both = client.all(["one", "two"]).ttl(TTL).acquire().unwrap();
    let run = client.job("nightly", Duration::from_hours(1)).start().unwrap().unwrap();
    let led = client.election("scheduler").campaign().unwrap();
    let (token, claim) = (guard.token(), fencelock::Claim::clone(&guard));
    let Some(pid) = fork() else {
        child(move || {
            assert!(!guard.is_held() && guard.remaining().is_zero() && !claim.is_held());
            assert!(!both.is_held() && !run.is_held() && !led.is_held());
            assert_eq!(code(guard.check()), Some(Code::Closed));
            assert_eq!(code(guard.extend(TTL)), Some(Code::Closed));
            assert_eq!(code(client.lock("x").acquire()), Some(Code::Closed));
            assert_eq!(code(client.lock("x").try_acquire()), Some(Code::Closed));
            assert_eq!(code(client.names("")), Some(Code::Closed));
            assert_eq!(code(client.version("x").read::<u64>()), Some(Code::Closed));
            assert_eq!(guard.release(), Released::AlreadyLost);
            assert_eq!(both.release(), Released::AlreadyLost);
            assert_eq!(run.fail(), Released::AlreadyLost);
            assert_eq!(led.release(), Released::AlreadyLost);
            drop(dropped);
            drop((claim, client));
            anew(url);
        })
    };
    ends_well(pid);
    std::thread::sleep(TTL + TTL / 4);
    assert!(guard.is_held() && dropped.is_held() && both.is_held() && run.is_held(), "renewed");
    for name in ["inherited", "dropped", "one", "two"] {
        assert!(other.lock(name).try_acquire().unwrap().is_none(), "{name} was freed");
    }
    assert_eq!(other.lock("inherited").inspect().unwrap().holders[0].token, Some(token));
    assert_eq!(guard.release(), Released::Released);
    assert_eq!(both.release(), Released::Released);
    assert_eq!(run.succeed(), Released::Released);
    assert_eq!(led.release(), Released::Released);
    drop(dropped);
    other.lock("dropped").acquire_within(BOUND).unwrap().release().check().unwrap();
    client.close().unwrap();
}

/// The same for tasks: nothing waits there, as nothing is asked.
async fn tasks(url: &str) {
    let client = fencelock::connect(url).await.unwrap();
    let guard = client.lock("inherited").ttl(TTL).acquire().await.unwrap();
    let dropped = client.lock("dropped").ttl(TTL).acquire().await.unwrap();
    let Some(pid) = fork() else {
        child(move || {
            assert!(!guard.is_held());
            assert!(guard.claim().lost().now_or_never().is_some());
            let acquired =
                client.lock("x").acquire().now_or_never().expect("it is refused at once");
            assert_eq!(code(acquired), Some(Code::Closed));
            assert_eq!(guard.release().now_or_never(), Some(Released::AlreadyLost));
            assert!(client.is_closed() && client.close().now_or_never().is_some());
            drop((dropped, client));
        })
    };
    ends_well(pid);
    tokio::time::sleep(TTL + TTL / 4).await;
    assert!(guard.is_held() && dropped.is_held(), "renewed");
    assert_eq!(guard.release().await, Released::Released);
    assert_eq!(dropped.release().await, Released::Released);
    client.close().await;
}

fn both(url: &str) {
    threads(url, connects);
    inert(url);
}

fn inert(url: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(tasks(url));
}

#[test]
fn what_a_child_inherits_is_inert_and_its_parent_keeps_it() {
    both("memory:forks");
    let folder = tempfile::tempdir().unwrap();
    both(&format!("sqlite:{}", folder.path().join("locks.db").display()));
    let server = RedisServer::start();
    both(server.url().as_str());
}

#[test]
fn so_it_is_on_etcd_and_postgres() {
    let etcd = EtcdServer::start();
    both(&format!("{}?ttl=2s", etcd.url("forks")));
    let postgres = PostgresServer::start();
    both(&postgres.place("forks"));
}

#[test]
fn a_child_cannot_reach_zookeeper_and_its_parent_keeps_what_it_has() {
    let server = ZookeeperServer::start();
    let url = format!("{}?ttl=2s", server.url("forks"));
    threads(&url, is_refused);
    inert(&url);
}
