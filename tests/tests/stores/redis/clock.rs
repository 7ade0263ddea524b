//! A server whose clock steps back under who holds: no end is further away than the longest lease asked for.

use std::time::{Duration, SystemTime};

use fencelock::options::Options;
use fencelock::port::{
    Action, CellKey, Change, Family, Kind, LeaseStore, LockKey, Mode, Outcome, Step, Swap, Take,
};
use fencelock::{Code, Token};
use fencelock_tests::bare::{Bare, TTL, taking};
use fencelock_tests::servers::{RedisServer, held};
use fencelock_tests::stopped_clock::StoppedClock;

const HOUR: Duration = Duration::from_secs(3600);

async fn ask(client: &Bare, kind: Kind, step: (fencelock::port::OwnerId, Action)) -> Outcome {
    let (owner, action) = step;
    let step = Step { lock: LockKey::new("orders"), owner, kind, action };
    client.store.step(&[step]).await.remove(0).expect("the server answers")
}

fn left(outcome: &Outcome) -> Duration {
    match outcome {
        Outcome::Granted { left, .. } => *left,
        Outcome::Held { left } | Outcome::Queued { left, .. } => left.expect("it has an end"),
        other => panic!("{other:?}"),
    }
}

/// Of a mutex the end is the key's, which the server keeps by its own clock: an hour more is what a step back leaves there.
#[tokio::test]
async fn the_end_of_a_mutex_is_cut() {
    for renews in [true, false] {
        let server = RedisServer::start();
        let client = Bare::connect(&server.url(), &Options::default()).await.unwrap();
        let mut admin = server.admin();
        let (owner, other) = (client.hold("orders").await, client.owner());
        let far = (HOUR + TTL).as_millis() as u64;
        let () = redis::cmd("PEXPIRE").arg(held("orders")).arg(far).exec(&mut admin).unwrap();
        let step = if renews {
            (owner, Action::Renew { ttl: TTL })
        } else {
            (other, Action::Take(taking(Mode::Exclusive, 1, true)))
        };
        let answer = ask(&client, Kind::Mutex, step).await;
        assert!(left(&answer) <= TTL, "{answer:?}");
        let kept: u64 = redis::cmd("PTTL").arg(held("orders")).query(&mut admin).unwrap();
        assert!(Duration::from_millis(kept) <= TTL, "{kept} ms");
        // Whoever asked for more keeps it.
        let more = ask(&client, Kind::Mutex, (owner, Action::Renew { ttl: HOUR })).await;
        assert_eq!(left(&more), HOUR);
        let less = ask(&client, Kind::Mutex, (owner, Action::Renew { ttl: TTL })).await;
        assert!(left(&less) + TTL > HOUR, "{less:?}");
    }
}

/// Of readers and permits the ends are the script's.
#[tokio::test]
async fn the_ends_of_those_who_share_are_cut() {
    for (kind, mode) in [(Kind::ReadWrite, Mode::Read), (Kind::Semaphore, Mode::Permit)] {
        let server = RedisServer::start();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let before = now.checked_sub(HOUR).expect("it is long after 1970");
        let at = |time: Duration| u64::try_from(time.as_micros()).unwrap();
        let take = |ttl| Action::Take(Take { ttl, ..taking(mode, 2, false) });
        let clock = StoppedClock::before(&server.url(), at(now));
        let client = Bare::connect(&clock.url(), &Options::default()).await.unwrap();
        let (one, other) = (client.owner(), client.owner());
        assert_eq!(left(&ask(&client, kind, (one, take(TTL))).await), TTL);
        assert_eq!(left(&ask(&client, kind, (other, take(TTL / 2))).await), TTL / 2);
        clock.set(at(before));
        let renewed = ask(&client, kind, (other, Action::Renew { ttl: TTL / 2 })).await;
        assert!(left(&renewed) <= TTL, "{renewed:?}");
        // The other one is not renewed, and ends all the same.
        clock.set(at(before + TTL + TTL / 2));
        let gone = ask(&client, kind, (one, Action::Renew { ttl: TTL })).await;
        assert_eq!(gone, Outcome::Gone, "{mode:?}");
    }
}

/// Nothing is written, and whoever asks again once the clock is right is granted.
#[tokio::test]
async fn a_clock_beyond_all_tokens_is_an_error_that_says_so() {
    let server = RedisServer::start();
    let clock = StoppedClock::before(&server.url(), Token::MAX.get() + 1);
    let client = Bare::connect(&clock.url(), &Options::default()).await.unwrap();
    let take = Action::Take(taking(Mode::Exclusive, 1, false));
    let (lock, kind) = (LockKey::new("orders"), Kind::Mutex);
    let step = Step { lock, owner: client.owner(), kind, action: take };
    let failure = client.store.step(std::slice::from_ref(&step)).await.remove(0).unwrap_err();
    assert_eq!(failure.error.code(), Code::Conflict);
    assert!(failure.error.message().contains("beyond the year 2255"), "{}", failure.error);
    let change = Change {
        key: CellKey::new(Family::Version, "orders"),
        expected: None,
        writer: client.owner(),
        value: Some("1".into()),
        keep: None,
    };
    let cells = client.store.cells().expect("it keeps versions");
    let failure = cells.compare_and_set(&change).await.unwrap_err();
    assert!(failure.error.message().contains("beyond the year 2255"), "{}", failure.error);
    clock.set(1 << 50);
    assert!(matches!(client.store.step(&[step]).await.remove(0), Ok(Outcome::Granted { .. })));
    assert!(matches!(cells.compare_and_set(&change).await, Ok(Swap::Done { .. })));
}
