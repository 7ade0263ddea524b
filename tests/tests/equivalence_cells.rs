//! Every store's cells against the model.

use std::cell::Cell;

use fencelock::mutation::{Mutant, activate};
use fencelock_tests::equivalence::cells::{Move, moves, run};
use fencelock_tests::equivalence::{
    MemorySubject, RedisSubject, SqliteSubject, Subject, Verdict, draw,
};
use fencelock_tests::servers::RedisServer;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

/// A case that differs, if there is one among so many.
fn search<S: Subject>(
    seed: [u8; 32],
    cases: u32,
    subject: impl Fn() -> S,
) -> Option<(Vec<Move>, String)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let slow = Cell::new(0);
    let result = TestRunner::new_with_rng(config, rng).run(&moves(), |moves| {
        match runtime.block_on(async { run(&subject(), &moves).await }) {
            Verdict::Alike => Ok(()),
            Verdict::TooSlow => {
                slow.set(slow.get() + 1);
                Ok(())
            }
            Verdict::Different(difference) => Err(TestCaseError::fail(difference)),
        }
    });
    if slow.get() > 0 {
        println!("{} of {cases} cases were too slow to prove anything", slow.get());
    }
    assert!(slow.get() * 4 <= cases, "the machine is too slow: {slow:?} of {cases} prove nothing");
    match result {
        Ok(()) => None,
        Err(TestError::Fail(difference, moves)) => Some((moves, difference.to_string())),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

fn check<S: Subject>(cases: u32, subject: impl Fn() -> S) {
    let (seed, cases) = draw(11, cases);
    if let Some((moves, difference)) = search(seed, cases, subject) {
        panic!("{difference}\nin {moves:#?}");
    }
}

#[test]
fn memory() {
    check(500, MemorySubject::new);
}

#[test]
fn sqlite() {
    check(200, SqliteSubject::new);
}

#[test]
fn redis() {
    let server = RedisServer::start();
    check(400, || RedisSubject::new(server.url()));
}

/// The suite is not blind: a model of a cell that is broken differs from the scripts.
#[test]
fn every_broken_clause_is_seen() {
    let server = RedisServer::start();
    for mutant in [
        Mutant::SwapWithoutVersionCheck,
        Mutant::BareCounterVersion,
        Mutant::DeletionForgotten,
        Mutant::TrailForgotten,
    ] {
        activate(Some(mutant));
        let found = search([11; 32], 200, || RedisSubject::new(server.url()));
        activate(None);
        assert!(found.is_some(), "200 cases do not see this: {}", mutant.describe());
    }
}
