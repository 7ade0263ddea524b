//! Every store against the model.

use std::cell::Cell;

use fencelock::mutation::{Mutant, activate};
use fencelock_tests::equivalence::{
    Hosted, MemorySubject, Move, RedisSubject, RunningRedis, Scale, SqliteSubject, Subject,
    Verdict, draw, moves, run,
};
use fencelock_tests::servers::RedisServer;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

/// Runs so many random cases; panics with the shortest one that differs.
fn check<S: Subject>(seed: u8, cases: u32, scale: &Scale, subject: impl Fn() -> S) {
    let (seed, cases) = draw(seed, cases);
    if let Some((moves, difference)) = search(seed, cases, 500, scale, subject) {
        panic!("{difference}\nin {moves:#?}");
    }
}

/// A case that differs, if there is one among so many, shortened in at most so many tries.
fn search<S: Subject>(
    seed: [u8; 32],
    cases: u32,
    shorten: u32,
    scale: &Scale,
    subject: impl Fn() -> S,
) -> Option<(Vec<Move>, String)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: shorten, ..Config::default() };
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let (all, slow) = (Cell::new(0), Cell::new(0));
    let result = runner.run(&moves(scale), |moves| {
        all.set(all.get() + 1);
        match runtime.block_on(async { run(&subject(), scale, &moves).await }) {
            Verdict::Alike => Ok(()),
            Verdict::TooSlow => {
                slow.set(slow.get() + 1);
                Ok(())
            }
            Verdict::Different(difference) => Err(TestCaseError::fail(difference)),
        }
    });
    if slow.get() > 0 {
        println!("{} of {} cases were too slow to prove anything", slow.get(), all.get());
    }
    match result {
        Ok(()) => {
            let proven = slow.get() * 4 <= all.get();
            assert!(proven, "the machine is too slow: {slow:?} of {all:?} prove nothing");
            None
        }
        Err(TestError::Fail(difference, moves)) => Some((moves, difference.to_string())),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
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
    check(7, 600, &Scale::moved(), || RedisSubject::new(server.url()));
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
    check(9, 600, &Scale::moved().as_redisson(), || RedisSubject::new(server.url()));
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

/// Clauses for which random moves are not asked: the simulator and `clauses` see them in the model.
const ELSEWHERE: &[Mutant] = &[
    Mutant::CallerCountsAsDeaf,
    Mutant::CounterForgottenEarly,
    Mutant::FloorOnlyWhenGranted,
    Mutant::FloorUnclamped,
    Mutant::HandOverGrantsWholeLease,
    Mutant::HandOverNotTold,
    Mutant::HeadMayNotEnter,
    Mutant::HeadPassedWithoutEnd,
    Mutant::LeaveDoesNotSettle,
    Mutant::LeaveForgetsTicket,
    Mutant::OpenNotTold,
    Mutant::OpenSurvivesVanishing,
    Mutant::OpenWithoutEnd,
    Mutant::RefreshDoesNotRenew,
    Mutant::RefreshDoesNotSettle,
    Mutant::RenewDoesNotSettle,
    Mutant::TakeDoesNotSettle,
    Mutant::TombstoneTooShort,
    Mutant::UnreachableWaiterServed,
];

/// The suite is not blind: a model that is broken in any other clause of the record differs from the scripts.
#[test]
fn every_broken_clause_is_seen() {
    let server = RedisServer::start();
    let mut unseen = Vec::new();
    for &mutant in Mutant::RECORD.iter().filter(|mutant| !ELSEWHERE.contains(mutant)) {
        for scale in [Scale::moved(), Scale::moved().as_redisson()] {
            activate(Some(mutant));
            let found = search([7; 32], 600, 0, &scale, || RedisSubject::new(server.url()));
            activate(None);
            if found.is_none() {
                unseen.push((mutant, scale.layout));
            }
        }
    }
    assert!(unseen.is_empty(), "600 cases do not see {unseen:?}");
}
