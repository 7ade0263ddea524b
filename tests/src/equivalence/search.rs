//! Random cases, and the shortest one that differs.

use std::cell::Cell;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use super::{Move, Scale, Subject, Verdict, moves, run};

/// A case that differs, if there is one among so many, shortened in at most so many tries.
///
/// # Panics
/// If the machine is so slow that most cases prove nothing.
pub fn search<S: Subject>(
    seed: [u8; 32],
    cases: u32,
    shorten: u32,
    scale: &Scale,
    subject: impl Fn() -> S,
) -> Option<(Vec<Move>, String)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be made");
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
            let enough = slow.get() * 4 <= all.get();
            assert!(enough, "the machine is too slow: {slow:?} of {all:?} prove nothing");
            None
        }
        Err(TestError::Fail(difference, moves)) => Some((moves, difference.to_string())),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}
