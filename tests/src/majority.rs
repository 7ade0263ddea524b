//! Tests of clients of an ensemble that has lost its majority, or whose leader stands alone.

use std::time::{Duration, Instant};

use fencelock::{Client, Code, Error, Guard, Result};

const TTL: Duration = Duration::from_secs(2);
/// The time that a loaded machine may add to the end of a lease.
const SLACK: Duration = Duration::from_secs(1);
/// How long the members may take to agree again.
const PATIENCE: Duration = Duration::from_secs(30);

async fn connect(url: &str) -> Result<Client> {
    let client = Client::builder()
        .option("ttl", TTL.as_millis() as u64)
        .option("timeout", "500ms")
        .option("connect_timeout", "2s");
    client.connect(url).await
}

/// Nothing is granted while most members are gone: whoever asks is told so, a hold ends on its own clock, also if its client comes later.
/// When they are back, the same clients go on, and tokens rise.
pub async fn is_needed<S>(
    set: &mut S,
    url: &str,
    lose: impl FnOnce(&mut S),
    back: impl FnOnce(&mut S),
) {
    let client = connect(url).await.expect("the members are there");
    let guard = client.lock("held").acquire().await.expect("nobody has it");
    tokio::task::block_in_place(|| lose(set));
    let lost = Instant::now();
    let asked = client.lock("other").try_acquire().await;
    is_unavailable(&asked.expect_err("nobody can grant it"));
    let waited = client.lock("other").acquire_within(SLACK).await;
    assert!(
        matches!(waited, Err(error) if matches!(error.code(), Code::Unavailable | Code::Timeout))
    );
    while guard.is_held() {
        assert!(lost.elapsed() < TTL + SLACK, "a hold ends on its own clock");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    match connect(url).await {
        Err(error) => is_unavailable(&error),
        Ok(late) => {
            let asked = late.lock("other").try_acquire().await;
            is_unavailable(&asked.expect_err("nobody can grant it"));
        }
    }
    tokio::task::block_in_place(|| back(set));
    let began = Instant::now();
    for name in ["held", "other"] {
        let next = loop {
            match client.lock(name).acquire_within(TTL * 2).await {
                Ok(next) => break next,
                Err(error) if began.elapsed() < PATIENCE => {
                    assert!(matches!(error.code(), Code::Unavailable | Code::Timeout), "{error}");
                }
                Err(error) => panic!("the members are back: {error}"),
            }
        };
        assert!(next.token() > guard.token() || name == "other");
        next.release().await.check().expect("the members are back");
    }
}

/// So many locks have a holder and a waiter while the fault happens.
pub const LOCKS: usize = 32;

/// One client holds all locks and another one waits for them while a fault happens. How many locks the waiter has in the end or after `patience`, how
/// many had two holders, and for how long at most. Mutexes, write locks and semaphores for one are of equal number.
pub async fn holders_at_once<T: Send + 'static>(
    [one, two]: [&Client; 2],
    patience: Duration,
    fault: impl FnOnce() -> T + Send + 'static,
) -> (usize, usize, Duration) {
    let lock = |client: &Client, number: usize| {
        let name = format!("x{number}");
        match number % 3 {
            0 => client.lock(&name),
            1 => client.write_lock(&name),
            _ => client.semaphore(&name, 1),
        }
    };
    let (mut holders, mut waiters) = (Vec::new(), Vec::new());
    for number in 0..LOCKS {
        holders.push(lock(one, number).acquire().await.expect("nobody has it"));
        waiters.push(tokio::spawn(lock(two, number).acquire_within(2 * patience)));
    }
    let faulty = tokio::task::spawn_blocking(fault);
    let began = Instant::now();
    let mut next: Vec<Option<Result<Guard>>> = (0..LOCKS).map(|_| None).collect();
    let (mut both, mut looked, mut some_has_two) = ([Duration::ZERO; LOCKS], began, true);
    while began.elapsed() < patience && (some_has_two || next.iter().any(Option::is_none)) {
        tokio::time::sleep(Duration::from_millis(2)).await;
        let now = Instant::now();
        some_has_two = false;
        for number in 0..LOCKS {
            if next[number].is_none() && waiters[number].is_finished() {
                next[number] = Some((&mut waiters[number]).await.expect("it does not panic"));
            }
            let other = next[number].as_ref().and_then(|won| won.as_ref().ok());
            if holders[number].is_held() && other.is_some_and(|guard| guard.is_held()) {
                both[number] += now - looked;
                some_has_two = true;
            }
        }
        looked = now;
    }
    drop(faulty.await.expect("the fault happens"));
    let taken = next.iter().flatten().filter(|won| won.is_ok()).count();
    let twice = both.iter().filter(|both| !both.is_zero()).count();
    (taken, twice, both.into_iter().max().unwrap_or_default())
}

/// It says that it may be asked again, and which servers were asked.
fn is_unavailable(error: &Error) {
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(error.retryable(), "{error}");
    assert!(format!("{error} {:?}", error.fields()).contains("127.0.0.1"), "{error}");
}
