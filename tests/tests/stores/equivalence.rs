//! Every store against the model.

use fencelock_tests::equivalence::{
    Hosted, MemorySubject, Move, RedisSubject, RunningRedis, Scale, SqliteSubject, Subject, draw,
    found, run, search, search_among,
};
use fencelock_tests::servers::RedisServer;
use proptest::strategy::Just;
use proptest::test_runner::Config;

/// Runs so many random cases; panics with the shortest one that differs.
fn check<S: Subject>(seed: u8, cases: u32, scale: &Scale, subject: impl Fn() -> S) {
    let (seed, cases) = draw(seed, cases);
    if let Some((moves, difference)) = search(seed, cases, 500, scale, subject) {
        panic!("{difference}\nin {moves:#?}");
    }
}

#[test]
fn memory() {
    check(7, 1_000, &Scale::moved(), MemorySubject::new);
}

#[test]
fn sqlite() {
    check(7, 200, &Scale::moved(), SqliteSubject::new);
}

#[test]
fn redis() {
    let server = RedisServer::start();
    check(7, 300, &Scale::moved(), || RedisSubject::new(server.url()));
}

/// The scripts as they are told all numbers in digits, over a client of a host's.
#[test]
fn redis_over_a_host() {
    let server = RedisServer::start();
    check(8, 200, &Scale::moved(), || RedisSubject::<Hosted>::over(server.url()));
}

/// Locks that Redisson's clients share.
#[test]
fn redisson() {
    let server = RedisServer::start();
    check(9, 300, &Scale::moved().as_redisson(), || RedisSubject::new(server.url()));
}

#[test]
fn what_was_found_once_is_not_found_again() {
    let server = RedisServer::start();
    for (about, scale, moves) in found() {
        let config = Config { cases: 8, max_shrink_iters: 0, ..Config::default() };
        let found = search_among([0; 32], &config, &Just(moves), &async |moves: &[Move]| {
            run(&RedisSubject::new(server.url()), &scale, moves).await
        });
        assert!(found.is_none(), "{about}: {found:?}");
    }
}

/// The same with the server's own clock and the real end of leases.
#[test]
fn redis_in_real_time() {
    std::thread::scope(|scope| {
        for seed in 0..12 {
            scope.spawn(move || {
                let server = RedisServer::start();
                check(seed, 2, &Scale::running(), || RunningRedis::new(server.url()));
            });
        }
    });
}
