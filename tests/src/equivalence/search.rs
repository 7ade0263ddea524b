//! Random cases, and the shortest one that differs.

use std::cell::Cell;
use std::fmt::Debug;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use super::{Move, Scale, Subject, Verdict, moves, run};

/// How often a case is played that the machine is too slow for.
const PLAYS: usize = 10;

/// A case that differs, if there is one among so many, shortened in at most so many tries.
///
/// # Panics
/// If the machine is so slow that many cases prove nothing.
pub fn search<S: Subject>(
    seed: [u8; 32],
    cases: u32,
    shorten: u32,
    scale: &Scale,
    subject: impl Fn() -> S,
) -> Option<(Vec<Move>, String)> {
    let config = Config { cases, max_shrink_iters: shorten, ..Config::default() };
    search_among(seed, &config, &moves(scale), &async |moves: &[Move]| {
        run(&subject(), scale, moves).await
    })
}

/// The same among other moves, played in another way.
///
/// # Panics
/// As [`search`].
pub fn search_among<M: Debug>(
    seed: [u8; 32],
    config: &Config,
    moves: &impl Strategy<Value = Vec<M>>,
    play: &impl AsyncFn(&[M]) -> Verdict,
) -> Option<(Vec<M>, String)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be made");
    let (cases, slow) = (config.cases, Cell::new(0));
    let config = Config { failure_persistence: None, ..config.clone() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let result = TestRunner::new_with_rng(config, rng).run(moves, |moves| {
        // A case that proved nothing, since the machine stood still, is no result: it is played again.
        let mut played = (0..PLAYS).map(|_| runtime.block_on(play(&moves)));
        match played.find(|played| *played != Verdict::TooSlow).unwrap_or(Verdict::TooSlow) {
            Verdict::Alike => Ok(()),
            Verdict::TooSlow => {
                slow.set(slow.get() + 1);
                Ok(())
            }
            Verdict::Different(difference) => Err(TestCaseError::fail(difference)),
        }
    });
    let slow = slow.get();
    if slow > 0 {
        println!("{slow} of {cases} cases were too slow to prove anything");
    }
    assert!(
        slow * 4 <= cases,
        "the machine is too slow: {slow} of {cases} prove nothing: {result:?}"
    );
    match result {
        Ok(()) => None,
        Err(TestError::Fail(difference, moves)) => Some((moves, difference.to_string())),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}
